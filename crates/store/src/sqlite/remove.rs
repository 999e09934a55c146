//! Removing a tree, and what is named by those that stay.

use std::collections::HashSet;

use offshoot_model::{ContentHash, RootId, RunId};
use rusqlite::{Connection, TransactionBehavior};

use super::column::RunColumn;
use super::schema;
use super::{SqliteStore, look};
use crate::StoreError;

/// What a record names.
#[derive(Debug, Default)]
pub(crate) struct Named {
    pub(crate) values: HashSet<ContentHash>,
    pub(crate) runs: HashSet<RunId>,
}

impl SqliteStore {
    /// Removes a tree from the record, whole or not at all, and returns how many events it had. Refused with
    /// [`StoreError::Held`] while somebody runs it. Its values and folders stay until the next
    /// [`sweep`](Self::sweep).
    pub fn remove_tree(&self, root: RootId) -> Result<u64, StoreError> {
        let folder = self.folder();
        let _held = folder.hold(root)?;
        let path = folder.database();
        let trouble = |error| StoreError::database("write", &path, error);
        let mut connection = schema::writer(&path)?;
        let turns = folder.writing_turn()?;
        let _turn = turns.take()?;
        let mut remove = || {
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let Some(number) = look::number(&transaction, root)? else { return Ok(0) };
            let events = transaction.execute("DELETE FROM events WHERE root = ?1", [number])?;
            transaction.execute("DELETE FROM roots WHERE number = ?1", [number])?;
            transaction.commit()?;
            Ok(events as u64)
        };
        remove().map_err(trouble)
    }

    /// What the record names, leaving out some trees.
    pub(crate) fn named(&self, without: &[RootId]) -> Result<Named, StoreError> {
        self.ask(|connection| named(connection, without))
    }
}

fn named(connection: &Connection, without: &[RootId]) -> rusqlite::Result<Named> {
    let mut found = Named::default();
    let mut select = connection
        .prepare("SELECT roots.root, run, body FROM events JOIN roots ON number = events.root")?;
    let without: HashSet<RunId> = without.iter().map(RootId::run).collect();
    let mut rows = select.query(())?;
    while let Some(row) = rows.next()? {
        let RunColumn(root) = row.get(0)?;
        if !without.contains(&root) {
            found.runs.insert(row.get::<_, RunColumn>(1)?.0);
            found.values.extend(hashes(row.get_ref(2)?.as_bytes()?));
        }
    }
    Ok(found)
}

/// Whatever in a text has the form of a hash, wherever it stands: one that is taken for a name by mistake keeps a value,
/// one that is missed loses it.
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
