//! Cutting a log beside reading and hashing it in one go, which is the least that cutting with hashes can be.

use std::hint::black_box;
use std::path::Path;

use offshoot_split::{Split, cut};

use super::Row;
use crate::Result;
use crate::comparison::{Side, compare, per};
use crate::log::write_log;
use crate::outcome::{Outcome, Unit};
use crate::setting::Setting;

pub(crate) const ROW: Row =
    Row { name: "cut", what: "cut a log into pieces, with hashes", measure };

/// 500 MB/s.
const LIMIT: f64 = (1 << 20) as f64 / 500e6;

fn measure(setting: &Setting) -> Result<Outcome> {
    let folder = setting.scratch()?;
    let mebibytes = setting.pick(1024, 16);
    let log = write_log(folder.path(), mebibytes)?;
    let ours = |split| {
        let log = &log;
        move || ours(log, mebibytes, split)
    };
    let samples = compare(
        setting,
        setting.few_rounds(),
        vec![
            Side::new("bytes:1m@lines", ours("bytes:1m@lines")),
            Side::new("lines:10000", ours("lines:10000")),
            Side::new("chunks:1000", ours("chunks:1000")),
            Side::new("read and hash", || peer(&log, mebibytes)),
        ],
    )?;
    let outcome = Outcome::new(Unit::Seconds("MiB"), samples);
    Ok(outcome
        .at_most("bytes:1m@lines", LIMIT)
        .at_most("lines:10000", LIMIT)
        .beside("bytes:1m@lines", "read and hash"))
}

fn ours(log: &Path, mebibytes: u64, split: &str) -> Result<f64> {
    let split: Split = split.parse()?;
    per(mebibytes, || {
        for piece in cut(&[log.to_owned()], split)? {
            black_box(piece?);
        }
        Ok(())
    })
}

fn peer(log: &Path, mebibytes: u64) -> Result<f64> {
    per(mebibytes, || {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(std::fs::File::open(log)?)?;
        black_box(hasher.finalize());
        Ok(())
    })
}
