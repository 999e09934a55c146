//! Taking in a large file beside copying it and hashing the copy; and handing it on.

use std::fs;
use std::path::Path;

use offshoot_model::{ContextEntry, RootId, RunId, ValueKind};
use offshoot_store::{DataFolder, NewValue, SharedContexts, SqliteStore, Store};

use super::Row;
use crate::Result;
use crate::comparison::{Samples, Side, alternate, timed};
use crate::log::write_noise;
use crate::outcome::{Outcome, Unit};
use crate::programs::{installed, silent, succeed};
use crate::setting::Setting;

pub(crate) const ROW: Row =
    Row { name: "variable", what: "take in 1 GiB, then hand it to 100 children", measure };

const CHILDREN: u64 = 100;
/// The least that handing on can take: each child has a folder of its own.
const LINKS: &str = "two folders and a link for each of 100";

fn measure(setting: &Setting) -> Result<Outcome> {
    let folder = setting.scratch()?;
    let mebibytes = setting.pick(1024, 16);
    let source = folder.path().join("source");
    write_noise(&source, 0, mebibytes)?;
    let Some(cp) = installed("cp") else { return Err("there is no program `cp`".into()) };
    let peer = |flush: bool| {
        let (cp, source, folder) = (&cp, &source, folder.path());
        move || peer(cp, source, folder, flush)
    };
    let sides = alternate(
        setting,
        setting.few_rounds(),
        vec![
            Side::new("offshoot, taken in and flushed", || ours(setting, &source)),
            Side::new("cp, then b3sum", peer(false)),
            Side::new("cp, flush, then b3sum", peer(true)),
            Side::new(LINKS, || links(setting, &source)),
        ],
    )?;
    let mut samples: Vec<Samples> = Vec::new();
    for (name, turns) in &sides {
        let values = turns.iter().map(|(took, _)| *took).collect();
        samples.push(Samples { name: (*name).to_owned(), values });
    }
    let values = sides[0].1.iter().map(|(_, handed)| *handed).collect();
    samples.push(Samples { name: "offshoot, handed to 100 children".to_owned(), values });
    Ok(Outcome::new(Unit::Seconds("file"), samples)
        .times("offshoot, taken in and flushed", 1.2, "cp, then b3sum")
        .times("offshoot, taken in and flushed", 1.2, "cp, flush, then b3sum")
        .at_most("offshoot, handed to 100 children", 50e-3)
        .beside("offshoot, handed to 100 children", LINKS)
        .note("offshoot's copy is on the disk before it answers; cp's is only with `flush`")
        .note("b3sum is the same library, mapped into memory and on all cores, without the start of a process"))
}

/// Taking it in, and handing it on. Each time into a folder of its own: the same value is not taken in twice.
fn ours(setting: &Setting, source: &Path) -> Result<(f64, f64)> {
    let scratch = setting.scratch()?;
    let folder = DataFolder::open(scratch.path())?;
    let store = SqliteStore::open(&folder)?;
    let runtime = setting.runtime()?;
    let put = || Ok(runtime.block_on(store.put(NewValue::file(ValueKind::Bytes, source)))?);
    let (took, value) = timed(put)?;
    let contexts = SharedContexts::new(&folder, RootId::new(RunId::from_bytes([7; 16])));
    let context = [ContextEntry { name: "the log".into(), value }];
    let (handed, ()) = timed(|| {
        for _ in 0..CHILDREN {
            contexts.of(&store, &context)?;
        }
        Ok(())
    })?;
    Ok((took, handed))
}

/// The folders and links alone.
fn links(setting: &Setting, source: &Path) -> Result<(f64, f64)> {
    let scratch = setting.scratch()?;
    let (took, ()) = timed(|| {
        for number in 0..CHILDREN {
            let folder = scratch.path().join(number.to_string()).join("context");
            fs::create_dir_all(&folder)?;
            fs::hard_link(source, folder.join("the log"))?;
        }
        Ok(())
    })?;
    Ok((took, 0.0))
}

fn peer(cp: &Path, source: &Path, folder: &Path, flush: bool) -> Result<(f64, f64)> {
    let copy = folder.join("copy");
    let (took, ()) = timed(|| {
        succeed(silent(cp).arg(source).arg(&copy))?;
        if flush {
            fs::File::open(&copy)?.sync_all()?;
        }
        blake3::Hasher::new().update_mmap_rayon(&copy)?.finalize();
        Ok(())
    })?;
    fs::remove_file(&copy)?;
    Ok((took, 0.0))
}
