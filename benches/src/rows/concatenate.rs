//! Writing the concatenation of stored results to a file beside `cat` of the same files.

use std::fs::{self, File};
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

/// The floor: the time of a program that copies on one processor and hashes on the other.
const FLOOR: &str = "cat, each file hashed meanwhile";

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
    let cat = installed("cat");
    let mut sides = vec![Side::new("offshoot", || {
        fresh()?;
        per(mebibytes, || Ok(values.write_file(&answer, &ValueFile::new(File::create(&out)?))?))
    })];
    let mut note = "0.8 × the speed of cat is 1.25 × its time";
    match &cat {
        Some(cat) => {
            let (fresh, files, out) = (&fresh, &files, &out);
            sides.push(Side::new("cat", move || {
                fresh()?;
                let mut cat = silent(cat);
                cat.args(files).stdout(File::create(out)?);
                per(mebibytes, || succeed(&mut cat))
            }));
            sides.push(Side::new(FLOOR, move || {
                fresh()?;
                let mut command = silent(cat);
                command.args(files).stdout(File::create(out)?);
                per(mebibytes, || {
                    let mut cat = command.spawn()?;
                    for file in files {
                        Hasher::new().update_mmap(file)?.finalize();
                    }
                    if cat.wait()?.success() { Ok(()) } else { Err("cat failed".into()) }
                })
            }));
        }
        None => note = "cat is not installed",
    }
    let samples = compare(setting, setting.few_rounds(), sides)?;
    let outcome = Outcome::new(Unit::Seconds("MiB"), samples).times("offshoot", 1.25, "cat");
    Ok(outcome.beside("offshoot", FLOOR).note(note))
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
