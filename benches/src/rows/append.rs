//! Recording events beside the bare inserts of the same rows in as many transactions.

use std::cell::Cell;

use offshoot_merge::Strategy;
use offshoot_model::Event;
use offshoot_spawner::RunSpec;
use offshoot_store::{Commit, DataFolder, SqliteStore, Store};

use super::Row;
use crate::Result;
use crate::comparison::{Side, compare, timed};
use crate::engine::{Engine, Record, closure, config, pieces};
use crate::inserts::{Made, bare};
use crate::outcome::{Outcome, Unit};
use crate::setting::Setting;

pub(crate) const ROW: Row =
    Row { name: "append", what: "record the events of a tree, durably", measure };

fn measure(setting: &Setting) -> Result<Outcome> {
    let runs = setting.pick(100_000, 1_000);
    let events = setup(setting, runs)?;
    let count = events.len() as f64;
    // Of our last turn: the peer gets as many.
    let transactions = Cell::new(1);
    let samples = compare(
        setting,
        setting.few_rounds(),
        vec![
            Side::new("offshoot", || {
                let (seconds, commits) = ours(setting, &events)?;
                transactions.set(commits);
                Ok(seconds / count)
            }),
            Side::new("bare inserts", || {
                let folder = setting.scratch()?;
                Ok(bare(folder.path(), &events, transactions.get(), Made::Before)? / count)
            }),
        ],
    )?;
    let transactions = transactions.get();
    let note =
        format!("{count} events of {runs} runs, in {transactions} transactions the last time");
    Ok(Outcome::new(Unit::Seconds("event"), samples)
        .beside("offshoot", "bare inserts")
        .note(note)
        .note("the peer's JSON is made beforehand, and it hashes nothing"))
}

/// The events of a real tree.
fn setup(setting: &Setting, runs: u64) -> Result<Vec<Event>> {
    let folder = setting.scratch()?;
    let engine = Engine::new(Record::Memory, folder.path(), config(8)?, closure())?;
    let tree = engine.run(pieces(runs), RunSpec::in_folder("/"), Strategy::Sum);
    setting.runtime()?.block_on(tree)?;
    Ok(engine.store.all_events().collect::<std::result::Result<_, _>>()?)
}

/// Seconds, and the number of transactions.
fn ours(setting: &Setting, events: &[Event]) -> Result<(f64, u64)> {
    let folder = setting.scratch()?;
    let store = SqliteStore::open(&DataFolder::open(folder.path())?)?;
    // As many in a call as one step of the engine has.
    let calls: Vec<Vec<Event>> = events.chunks(4).map(<[Event]>::to_vec).collect();
    let (seconds, ()) = timed(|| {
        let commits: Vec<Commit> = calls.into_iter().map(|call| store.append(&call)).collect();
        commits.into_iter().try_for_each(Commit::wait)?;
        Ok(())
    })?;
    Ok((seconds, store.commits()))
}
