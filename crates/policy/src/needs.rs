//! The order of tasks that need each other: names become places, and a task comes behind all that it needs.
//!
//! Nothing here runs or waits. The places of one task are those of the tasks whose answers it needs.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use offshoot_config::nearest;

/// A task as far as its order goes.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// The name by which others need it.
    pub id: Option<&'a str>,
    /// The names of the tasks that it needs.
    pub needs: &'a [String],
}

/// Tasks that have no order. Places count from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NeedsError {
    /// Two tasks have the same id.
    #[error("two tasks have the id `{id}`")]
    Twice {
        /// The place of the second.
        at: usize,
        /// The id of both.
        id: String,
    },
    /// A task needs the same one twice.
    #[error("`{id}` stands twice in `needs`")]
    Repeated {
        /// The place of the task.
        at: usize,
        /// The id that stands twice.
        id: String,
    },
    /// A task needs one that is not there.
    #[error("no task has the id `{id}`{}", .nearest.as_ref().map(|it| format!("; the nearest is `{it}`")).unwrap_or_default())]
    Unknown {
        /// The place of the task that needs it.
        at: usize,
        /// The id that no task has.
        id: String,
        /// The id that is most like it.
        nearest: Option<String>,
    },
    /// Tasks need each other in a cycle.
    #[error("tasks need each other in a cycle: {}", .cycle.join(" → "))]
    Cycle {
        /// The place of the first of them.
        at: usize,
        /// The names of all, the first of them again at the end.
        cycle: Vec<String>,
    },
}

impl NeedsError {
    /// Returns the place of the task that is wrong.
    pub fn at(&self) -> usize {
        match self {
            Self::Twice { at, .. }
            | Self::Repeated { at, .. }
            | Self::Unknown { at, .. }
            | Self::Cycle { at, .. } => *at,
        }
    }
}

/// Returns the places that each task needs, in the order in which it names them.
///
/// # Errors
///
/// Names an id that is not there, that two tasks have or that one task needs twice, and tasks that need each other.
pub fn places(tasks: &[Named<'_>]) -> Result<Vec<Vec<usize>>, NeedsError> {
    let mut by_id: HashMap<&str, usize> = HashMap::new();
    for (at, task) in tasks.iter().enumerate() {
        let Some(id) = task.id else { continue };
        if by_id.insert(id, at).is_some() {
            return Err(NeedsError::Twice { at, id: id.to_owned() });
        }
    }
    let mut all = Vec::with_capacity(tasks.len());
    for (at, task) in tasks.iter().enumerate() {
        let mut needs: Vec<usize> = Vec::with_capacity(task.needs.len());
        for id in task.needs {
            let Some(&place) = by_id.get(id.as_str()) else {
                let ids: Vec<&str> = tasks.iter().filter_map(|task| task.id).collect();
                let nearest = nearest(id, &ids).map(str::to_owned);
                return Err(NeedsError::Unknown { at, id: id.clone(), nearest });
            };
            needs.push(place);
        }
        if let Some(id) = repeated(&needs).map(|at| task.needs[at].clone()) {
            return Err(NeedsError::Repeated { at, id });
        }
        all.push(needs);
    }
    let name = |at: usize| tasks[at].id.map_or_else(|| (at + 1).to_string(), str::to_owned);
    order(&all).map_err(|cycle| {
        let at = cycle[0];
        NeedsError::Cycle { at, cycle: cycle.into_iter().map(name).collect() }
    })?;
    Ok(all)
}

/// Returns the index of the first place that stands there for the second time.
fn repeated(needs: &[usize]) -> Option<usize> {
    // A task may need ten thousand others.
    let mut sorted: Vec<(usize, usize)> = needs.iter().copied().zip(0..).collect();
    sorted.sort_unstable();
    let pairs = sorted.windows(2).filter(|pair| pair[0].0 == pair[1].0);
    pairs.map(|pair| pair[1].1).min()
}

/// Returns all places so that each comes behind those that it needs, and else in their own order.
///
/// # Errors
///
/// Places that need each other in a cycle: each needs the next, and the last is the first again.
///
/// # Panics
///
/// Panics where a place is none of these.
pub fn order(needs: &[Vec<usize>]) -> Result<Vec<usize>, Vec<usize>> {
    if needs.iter().enumerate().all(|(at, needs)| needs.iter().all(|&need| need < at)) {
        return Ok((0..needs.len()).collect());
    }
    let mut open: Vec<usize> = needs.iter().map(Vec::len).collect();
    let mut needed_by = vec![Vec::new(); needs.len()];
    for (at, needs) in needs.iter().enumerate() {
        needs.iter().for_each(|&need| needed_by[need].push(at));
    }
    let is_free = |at: &usize| open[*at] == 0;
    let mut free: BinaryHeap<_> = (0..needs.len()).filter(is_free).map(Reverse).collect();
    let mut order = Vec::with_capacity(needs.len());
    while let Some(Reverse(at)) = free.pop() {
        order.push(at);
        for &next in &needed_by[at] {
            open[next] -= 1;
            if open[next] == 0 {
                free.push(Reverse(next));
            }
        }
    }
    match open.iter().position(|&open| open > 0) {
        None => Ok(order),
        Some(from) => Err(cycle(needs, &open, from)),
    }
}

/// Returns the cycle that is reached by going from a place that is not free to one that it needs, again and again.
fn cycle(needs: &[Vec<usize>], open: &[usize], from: usize) -> Vec<usize> {
    let mut seen_at = HashMap::new();
    let mut way = Vec::new();
    let mut at = from;
    while !seen_at.contains_key(&at) {
        seen_at.insert(at, way.len());
        way.push(at);
        let is_open = |need: &&usize| open[**need] > 0;
        at = *needs[at].iter().find(is_open).expect("what is not free needs what is not free");
    }
    way.drain(..seen_at[&at]);
    // A cycle has no beginning: the first of its tasks is named first.
    let first = (0..way.len()).min_by_key(|&index| way[index]).expect("a cycle has a place");
    way.rotate_left(first);
    way.push(way[0]);
    way
}

/// Returns the wave in which each place can start at the earliest, from 0: one behind the last of those that it needs.
///
/// # Panics
///
/// Panics where places need each other in a cycle.
pub fn waves(needs: &[Vec<usize>]) -> Vec<usize> {
    let order = order(needs).expect("places in a cycle have no wave");
    let mut waves = vec![0; needs.len()];
    for at in order {
        waves[at] = needs[at].iter().map(|&need| waves[need] + 1).max().unwrap_or(0);
    }
    waves
}

#[cfg(test)]
mod tests;
