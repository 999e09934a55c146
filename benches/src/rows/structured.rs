//! Collecting results under their names beside an ordered table that keeps whatever it is given.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;

use offshoot_merge::Strategy;
use offshoot_model::Payload;

use super::{Row, vote};
use crate::Result;
use crate::comparison::{Side, compare, per};
use crate::outcome::{Outcome, Unit};
use crate::setting::Setting;

pub(crate) const ROW: Row =
    Row { name: "structured", what: "one object of results of up to 32 bytes", measure };

fn measure(setting: &Setting) -> Result<Outcome> {
    let count = setting.pick(1_000_000, 10_000);
    let keys = vote::keys(count);
    let values: Vec<Payload> =
        (0..count).map(|number| Payload::text(format!("the answer is {number}"))).collect();
    let tenth = count as usize / 10;
    let samples = compare(
        setting,
        setting.rounds(),
        vec![
            Side::new("texts", || vote::push(Strategy::Structured, &keys, &values)),
            Side::new("texts, a tenth of them", || {
                vote::push(Strategy::Structured, &keys[..tenth], &values[..tenth])
            }),
            Side::new("texts in a BTreeMap", || peer(&keys, &values)),
        ],
    )?;
    Ok(Outcome::new(Unit::Seconds("push"), samples)
        .at_most("texts", 1e-6)
        .beside("texts", "texts, a tenth of them")
        .beside("texts", "texts in a BTreeMap"))
}

fn peer(keys: &[Arc<str>], values: &[Payload]) -> Result<f64> {
    let results: Vec<_> = keys.iter().cloned().zip(values.iter().cloned()).collect();
    per(results.len() as u64, || {
        let mut table = BTreeMap::new();
        for (index, (key, value)) in (0_u32..).zip(results) {
            table.insert(index, (key, value));
        }
        black_box(table);
        Ok(())
    })
}
