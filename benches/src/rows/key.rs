//! Parsing a session key beside parsing a UUID: both read a short text and check each byte of it.

use std::hint::black_box;

use offshoot_session_key::SessionKey;
use uuid::Uuid;

use super::Row;
use crate::Result;
use crate::comparison::{Side, compare, per};
use crate::outcome::{Outcome, Unit};
use crate::setting::Setting;

pub(crate) const ROW: Row =
    Row { name: "key", what: "parse a canonical session key of depth 3", measure };

const KEY: &str = "agent:main:subagent:0198c0de-5a3b-7c41-9d2e-0123456789ab\
    :sub:0198c0de-5a3b-7c41-9d2e-0123456789ac:sub:0198c0de-5a3b-7c41-9d2e-0123456789ad";
const UUID: &str = "0198c0de-5a3b-7c41-9d2e-0123456789ab";

fn measure(setting: &Setting) -> Result<Outcome> {
    let count = setting.pick(1_000_000, 10_000);
    let samples = compare(
        setting,
        setting.rounds(),
        vec![Side::new("offshoot", || ours(count)), Side::new("uuid", || peer(count))],
    )?;
    let note = "the key holds three UUIDs, and its text is allocated";
    Ok(Outcome::new(Unit::Seconds("key"), samples)
        .at_most("offshoot", 300e-9)
        .beside("offshoot", "uuid")
        .note(note))
}

fn ours(count: u64) -> Result<f64> {
    per(count, || {
        for _ in 0..count {
            black_box(SessionKey::parse(black_box(KEY))?);
        }
        Ok(())
    })
}

fn peer(count: u64) -> Result<f64> {
    per(count, || {
        for _ in 0..count {
            black_box(Uuid::parse_str(black_box(UUID))?);
        }
        Ok(())
    })
}
