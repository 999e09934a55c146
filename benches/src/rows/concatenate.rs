//! Writing the concatenation of stored results to a file beside `cat` of the same files.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blake3::Hasher;
use offshoot_merge::{Answer, Fold, OnFailure, Strategy};
use offshoot_model::{Payload, ValueKind};
use offshoot_spawner::StoredValues;
use offshoot_store::{DataFolder, NewValue, SqliteStore, Store, ValueFile};

use super::Row;
use crate::Result;
use crate::comparison::{Side, compare, per};
use crate::log::{MEBIBYTE, write_noise};
use crate::outcome::{Outcome, Unit};
use crate::programs::{installed, silent, succeed};
use crate::setting::Setting;

pub(crate) const ROW: Row =
    Row { name: "concatenate", what: "concatenate stored results of 1 MiB to a file", measure };

/// The same bytes as offshoot writes. The text between two results puts all that follows out of step with its pages.
const SAME: &str = "cat, with the same text between";
const ALONE: &str = "read, hashed and written by one thread";
/// The text that is written between two results.
const BETWEEN: &str = "\n---\n";

fn measure(setting: &Setting) -> Result<Outcome> {
    let folder = setting.scratch()?;
    let mebibytes = setting.pick(1024, 16);
    let (store, answer, files) = setup(setting, folder.path(), mebibytes)?;
    let values = StoredValues::new(store);
    let out = folder.path().join("out");
    let fresh = || match fs::remove_file(&out) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    let alone = || {
        fresh()?;
        let mut out = File::create(&out)?;
        per(mebibytes, || {
            for (number, file) in files.iter().enumerate() {
                let bytes = fs::read(file)?;
                Hasher::new().update(&bytes).finalize();
                if number > 0 {
                    out.write_all(BETWEEN.as_bytes())?;
                }
                out.write_all(&bytes)?;
            }
            Ok(())
        })
    };
    let mut sides = vec![
        Side::new("offshoot", || {
            fresh()?;
            per(mebibytes, || Ok(values.write_file(&answer, &ValueFile::new(File::create(&out)?))?))
        }),
        Side::new(ALONE, alone),
    ];
    let between = folder.path().join("between");
    fs::write(&between, BETWEEN)?;
    let with_between: Vec<&PathBuf> = files.iter().flat_map(|file| [&between, file]).collect();
    let mut note = "0.8 × the speed of cat is 1.25 × its time";
    match installed("cat") {
        Some(cat) => {
            let mut side = |name, files: Vec<&'_ PathBuf>| {
                let (fresh, cat, out) = (&fresh, cat.clone(), &out);
                let files: Vec<PathBuf> = files.into_iter().cloned().collect();
                sides.push(Side::new(name, move || {
                    fresh()?;
                    let mut cat = silent(&cat);
                    cat.args(&files).stdout(File::create(out)?);
                    per(mebibytes, || succeed(&mut cat))
                }));
            };
            side("cat", files.iter().collect());
            side(SAME, with_between[1..].to_vec());
        }
        None => note = "cat is not installed",
    }
    let samples = compare(setting, setting.few_rounds(), sides)?;
    let outcome = Outcome::new(Unit::Seconds("MiB"), samples).times("offshoot", 1.25, "cat");
    Ok(outcome.beside("offshoot", SAME).beside("offshoot", ALONE).note(note))
}

fn setup(
    setting: &Setting,
    folder: &Path,
    mebibytes: u64,
) -> Result<(Arc<dyn Store>, Answer, Vec<PathBuf>)> {
    let store = SqliteStore::open(&DataFolder::open(folder.join("data"))?)?;
    let mut fold = Fold::new(Strategy::Concatenate, OnFailure::Fail);
    let mut files = Vec::new();
    let runtime = setting.runtime()?;
    for number in 0..mebibytes {
        let file = folder.join("result");
        write_noise(&file, number, 1)?;
        let value = runtime.block_on(store.put(NewValue::adopt(ValueKind::Bytes, file)))?;
        assert_eq!(value.size, MEBIBYTE, "a result is one mebibyte");
        files.push(store.path(&value)?);
        fold.push(number as u32, "result".into(), Ok(Payload::Stored(value)));
    }
    Ok((Arc::new(store), fold.finish(mebibytes as u32)?, files))
}
