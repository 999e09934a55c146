//! Sides that take turns.

use std::time::Instant;

use crate::{Result, setting::Setting};

/// One of those compared: a name, and a turn that answers how much one unit of work took.
pub(crate) struct Side<'a, T = f64> {
    name: &'static str,
    turn: Box<dyn FnMut() -> Result<T> + 'a>,
}

/// The times of one side, round by round.
#[derive(Clone, Debug)]
pub(crate) struct Samples {
    pub(crate) name: String,
    pub(crate) values: Vec<f64>,
}

impl<'a, T> Side<'a, T> {
    pub(crate) fn new(name: &'static str, turn: impl FnMut() -> Result<T> + 'a) -> Self {
        Self { name, turn: Box::new(turn) }
    }
}

impl Samples {
    pub(crate) fn median(&self) -> f64 {
        percentile(&self.values, 50)
    }
}

/// Gives every side its turn in each round, another one first each time: who comes after whom is part of the noise.
/// A round before the first warms up caches and does not count; a quick run goes without.
pub(crate) fn alternate<T>(
    setting: &Setting,
    rounds: usize,
    mut sides: Vec<Side<'_, T>>,
) -> Result<Vec<(&'static str, Vec<T>)>> {
    let warm_up = setting.pick(1, 0);
    let mut samples: Vec<_> = sides.iter().map(|side| (side.name, Vec::new())).collect();
    for round in 0..rounds + warm_up {
        for turn in 0..sides.len() {
            let index = (round + turn) % sides.len();
            let sample = (sides[index].turn)()?;
            if round >= warm_up {
                samples[index].1.push(sample);
            }
        }
    }
    Ok(samples)
}

/// The same, for sides that answer one number each.
pub(crate) fn compare(
    setting: &Setting,
    rounds: usize,
    sides: Vec<Side<'_>>,
) -> Result<Vec<Samples>> {
    let samples = alternate(setting, rounds, sides)?;
    Ok(samples.into_iter().map(|(name, values)| Samples { name: name.into(), values }).collect())
}

/// Seconds that the work took.
pub(crate) fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<(f64, T)> {
    let start = Instant::now();
    let result = work()?;
    Ok((start.elapsed().as_secs_f64(), result))
}

/// Seconds that each of `count` units of work took.
pub(crate) fn per(count: u64, work: impl FnOnce() -> Result<()>) -> Result<f64> {
    timed(work).map(|(seconds, ())| seconds / count as f64)
}

/// The value below which so many of a hundred lie; the mean of the middle two for the median of an even number.
pub(crate) fn percentile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len() - 1;
    if percent == 50 {
        return (sorted[last / 2] + sorted[last.div_ceil(2)]) / 2.0;
    }
    sorted[(last * percent).div_ceil(100)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(values: &[f64], percent: usize, expected: f64) {
        assert_eq!(percentile(values, percent), expected, "{values:?} at {percent}");
    }

    #[test]
    fn percentiles() {
        check(&[3.0], 50, 3.0);
        check(&[3.0], 99, 3.0);
        check(&[3.0, 1.0, 2.0], 50, 2.0);
        check(&[4.0, 1.0, 2.0, 3.0], 50, 2.5);
        let hundred: Vec<f64> = (1..=101).map(f64::from).collect();
        check(&hundred, 50, 51.0);
        check(&hundred, 99, 100.0);
        check(&hundred, 100, 101.0);
    }

    #[test]
    fn every_side_has_its_turn_and_another_one_is_first_each_time() {
        let order = std::cell::RefCell::new(String::new());
        let side = |name: &'static str| {
            let order = &order;
            Side::new(name, move || {
                order.borrow_mut().push_str(name);
                Ok(order.borrow().len() as f64)
            })
        };
        let setting = Setting::new(true, None).expect("a folder beside the test");
        let samples = compare(&setting, 3, vec![side("a"), side("b")]).expect("nothing fails");
        assert_eq!(*order.borrow(), "abbaab");
        assert_eq!(samples[0].values, [1.0, 4.0, 5.0]);
        assert_eq!(samples[1].values, [2.0, 3.0, 6.0]);
    }
}
