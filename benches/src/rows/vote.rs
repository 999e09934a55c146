//! Counting votes beside counting texts in a table, which knows nothing of JSON values or of repeated places.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;

use offshoot_merge::{Fold, OnFailure, Strategy};
use offshoot_model::Payload;

use super::Row;
use crate::Result;
use crate::comparison::{Side, compare, per};
use crate::outcome::{Outcome, Unit};
use crate::setting::Setting;

pub(crate) const ROW: Row = Row {
    name: "vote",
    what: "vote over scalars of up to 32 bytes, and over small objects",
    measure,
};

/// As many answers as there are to choose from.
const CHOICES: u32 = 1000;

fn measure(setting: &Setting) -> Result<Outcome> {
    let count = setting.pick(1_000_000, 10_000);
    let keys = keys(count);
    let texts = ballots(count, |choice| Ok(Payload::text(format!("the answer is {choice}"))))?;
    let numbers = ballots(count, |choice| Ok(Payload::json(format!("{choice}.50"))?))?;
    let objects = ballots(count, |choice| {
        Ok(Payload::json(format!(r#"{{"answer":{choice},"sure":true}}"#))?)
    })?;
    let tenth = count as usize / 10;
    let samples = compare(
        setting,
        setting.rounds(),
        vec![
            Side::new("texts", || push(Strategy::Vote, &keys, &texts)),
            Side::new("texts, a tenth of them", || {
                push(Strategy::Vote, &keys[..tenth], &texts[..tenth])
            }),
            Side::new("numbers", || push(Strategy::Vote, &keys, &numbers)),
            Side::new("objects", || push(Strategy::Vote, &keys, &objects)),
            Side::new("texts in a HashMap", || peer(&texts)),
        ],
    )?;
    Ok(Outcome::new(Unit::Seconds("push"), samples)
        .at_most("texts", 1e-6)
        .at_most("numbers", 1e-6)
        .beside("texts", "texts in a HashMap")
        .beside("texts", "texts, a tenth of them"))
}

/// Merges these results.
pub(super) fn push(strategy: Strategy, keys: &[Arc<str>], values: &[Payload]) -> Result<f64> {
    // Handing over is part of a push; making what is handed over is not.
    let results: Vec<_> = keys.iter().cloned().zip(values.iter().cloned()).collect();
    let count = results.len();
    per(count as u64, || {
        let mut fold = Fold::new(strategy, OnFailure::Fail);
        for (index, (key, value)) in (0..).zip(results) {
            fold.push(index, key, Ok(value));
        }
        black_box(fold.finish(count as u32)?);
        Ok(())
    })
}

fn peer(ballots: &[Payload]) -> Result<f64> {
    per(ballots.len() as u64, || {
        let mut counts: HashMap<&str, u32> = HashMap::new();
        for ballot in ballots {
            if let Payload::Text(text) = ballot {
                *counts.entry(text).or_default() += 1;
            }
        }
        black_box(counts);
        Ok(())
    })
}

fn ballots(count: u32, ballot: impl Fn(u32) -> Result<Payload>) -> Result<Vec<Payload>> {
    (0..count).map(|number| ballot(number.wrapping_mul(2_654_435_761) % CHOICES)).collect()
}

/// The names of so many results.
pub(super) fn keys(count: u32) -> Vec<Arc<str>> {
    (0..count).map(|number| format!("piece-{number}").into()).collect()
}
