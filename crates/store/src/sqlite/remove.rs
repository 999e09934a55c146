//! Removing a tree, and what is named by those that stay.

use std::collections::HashSet;

use offshoot_model::{ContentHash, RootId, RunId};
use rusqlite::{Connection, TransactionBehavior};

use super::column::RunColumn;
use super::{SqliteStore, identity, look, schema};
use crate::StoreError;
use crate::error::Doing;
use crate::pages::PAGE;
use crate::sought::Sought;

/// The values and folders that a record names.
#[derive(Debug, Default)]
pub(crate) struct Named {
    pub(crate) values: HashSet<ContentHash>,
    pub(crate) runs: HashSet<RunId>,
}

impl SqliteStore {
    /// Removes a tree from the record, whole or not at all, and returns how many events it had. Refused with
    /// [`StoreError::Held`] while it is run. Its values and folders stay until the next [`sweep`](Self::sweep).
    ///
    /// Where it cannot be removed, the file that shows that it was held stays: processes of a supervisor that died may still
    /// be found by it.
    pub fn remove_tree(&self, root: RootId) -> Result<u64, StoreError> {
        let held = self.folder().hold(root)?;
        let removed = self.remove(root);
        match removed {
            Ok(_) => drop(held),
            Err(_) => held.abandon(),
        }
        removed
    }

    fn remove(&self, root: RootId) -> Result<u64, StoreError> {
        let folder = self.folder();
        let path = folder.database();
        let mut connection = schema::writer(&path)?;
        let _turn = folder.turn()?;
        let mut remove = || -> rusqlite::Result<u64> {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let Some(number) = look::number(&transaction, root)? else { return Ok(0) };
            let events = transaction.execute("DELETE FROM events WHERE root = ?1", [number])?;
            transaction.execute("DELETE FROM roots WHERE number = ?1", [number])?;
            transaction.execute(identity::COUNT, ())?;
            transaction.commit()?;
            Ok(events as u64)
        };
        let removed = remove().doing("write", &path)?;
        identity::check(&connection, folder).map(|()| removed)
    }

    /// Returns what the record names, leaving out some trees. Reads page by page: what is recorded meanwhile may be missing,
    /// and no writer is held up.
    pub(crate) fn named(&self, without: &[RootId]) -> Result<Named, StoreError> {
        let without: HashSet<RunId> = without.iter().map(RootId::run).collect();
        self.named_where(|root, _| !without.contains(&root))
    }

    /// Returns what the events of these runs name, and what all others do.
    pub(crate) fn named_by(&self, runs: &HashSet<RunId>) -> Result<(Named, Named), StoreError> {
        let theirs = self.named_where(|_, run| runs.contains(&run))?;
        Ok((theirs, self.named_where(|_, run| !runs.contains(&run))?))
    }

    /// Returns what the events of some roots and runs name.
    fn named_where(&self, counts: impl Fn(RunId, RunId) -> bool) -> Result<Named, StoreError> {
        let (mut found, mut at) = (Named::default(), (0, 0));
        while self.readers.ask(|connection| named(connection, &counts, &mut at, &mut found))? {}
        Ok(found)
    }

    /// The tree that a run was admitted to, by its own record.
    pub(crate) fn root_of(&self, run: RunId) -> Result<Option<RootId>, StoreError> {
        let found =
            self.readers.ask(|connection| look::find(connection, &Sought::Runs(run..=run)))?;
        Ok(found.first().map(|found| found.root))
    }
}

/// Takes in a page of the record; whether another follows.
fn named(
    connection: &Connection,
    counts: &impl Fn(RunId, RunId) -> bool,
    at: &mut (i64, i64),
    found: &mut Named,
) -> rusqlite::Result<bool> {
    let mut select = connection.prepare_cached(
        "SELECT roots.root, run, body, number, seq FROM events JOIN roots ON number = events.root
         WHERE (events.root, seq) > (?1, ?2) ORDER BY events.root, seq LIMIT ?3",
    )?;
    let mut rows = select.query((at.0, at.1, PAGE))?;
    let mut read = 0;
    while let Some(row) = rows.next()? {
        let (RunColumn(root), RunColumn(run)) = (row.get(0)?, row.get(1)?);
        if counts(root, run) {
            found.runs.insert(run);
            found.values.extend(hashes(row.get_ref(2)?.as_bytes()?));
        }
        (*at, read) = ((row.get(3)?, row.get(4)?), read + 1);
    }
    Ok(read == PAGE)
}

/// Returns each part of a text that has the form of a hash: one that is taken for a name by mistake keeps a value, one that is
/// missed loses it.
fn hashes(text: &[u8]) -> impl Iterator<Item = ContentHash> {
    const DIGITS: usize = 64;
    text.chunk_by(|a, b| a.is_ascii_hexdigit() == b.is_ascii_hexdigit())
        .filter(|chunk| chunk.len() == DIGITS)
        .filter_map(|chunk| std::str::from_utf8(chunk).ok()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_found_wherever_they_stand() {
        let hash = ContentHash::of(b"a value");
        let check = |text: String, expected: usize| {
            assert_eq!(hashes(text.as_bytes()).filter(|found| *found == hash).count(), expected);
        };
        check(hash.to_string(), 1);
        check(format!("{{\"hash\":\"{hash}\",\"more\":[\"{hash}\"]}}"), 2);
        check(format!("0{hash}"), 0);
        check(String::new(), 0);
    }
}
