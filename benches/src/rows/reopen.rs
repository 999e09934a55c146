//! Coming back to a large record: reading it all, and the commands that look at it.

use std::hint::black_box;
use std::path::Path;

use offshoot_merge::Strategy;
use offshoot_model::Tree;
use offshoot_spawner::RunSpec;
use offshoot_store::{DataFolder, SqliteStore, Store};

use super::Row;
use crate::Result;
use crate::comparison::{Side, compare, timed};
use crate::engine::{Engine, Record, closure, config, pieces};
use crate::outcome::{Outcome, Unit};
use crate::programs::{ours as our_programs, silent, succeed};
use crate::setting::Setting;

pub(crate) const ROW: Row =
    Row { name: "reopen", what: "come back to a record of 100,000 runs", measure };

fn measure(setting: &Setting) -> Result<Outcome> {
    let runs = setting.pick(100_000, 1_000);
    let folder = setting.scratch()?;
    setup(setting, folder.path(), runs)?;
    let offshoot = our_programs()?.offshoot;
    let look = |word: &'static str| {
        let (offshoot, folder) = (&offshoot, folder.path());
        move || {
            let mut look = silent(offshoot);
            look.arg("--data-dir").arg(folder).arg(word).current_dir(folder);
            timed(|| succeed(&mut look)).map(|(seconds, ())| seconds)
        }
    };
    let samples = compare(
        setting,
        setting.few_rounds(),
        vec![
            Side::new("open the store and fold the tree", || reopen(folder.path(), runs)),
            Side::new("offshoot tree", look("tree")),
            Side::new("offshoot list", look("list")),
        ],
    )?;
    Ok(Outcome::new(Unit::Seconds("time"), samples)
        .at_most("open the store and fold the tree", 2.0)
        .at_most("offshoot tree", 1.0)
        .at_most("offshoot list", 1.0)
        .note(format!("{runs} pieces below one root")))
}

fn setup(setting: &Setting, folder: &Path, runs: u64) -> Result<()> {
    let engine = Engine::new(Record::Sqlite, folder, config(8)?, closure())?;
    let tree = engine.run(pieces(runs), RunSpec::in_folder("/"), Strategy::Sum);
    setting.runtime()?.block_on(tree)
}

fn reopen(folder: &Path, runs: u64) -> Result<f64> {
    let (seconds, tree) = timed(|| {
        let store = SqliteStore::open(&DataFolder::open(folder)?)?;
        let mut tree = Tree::new();
        for event in store.all_events() {
            tree.apply(&event?);
        }
        Ok(black_box(tree))
    })?;
    assert_eq!(tree.nodes().count() as u64, runs + 1, "nothing is lost");
    Ok(seconds)
}
