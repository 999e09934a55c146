//! The questions that a reading connection is asked.

use offshoot_model::{EventKind, RootId, RunId};
use offshoot_session_key::KeyKind;
use rusqlite::{Connection, OptionalExtension, Params, Row};

use super::column::{KeyColumn, RunColumn, TimeColumn};
use super::row;
use crate::pages::{PAGE, Page};
use crate::sought::Sought;
use crate::{FIND_LIMIT, Found, RootSummary, StoreError};

const PAGE_AFTER: &str = "SELECT seq, run, at, body, roots.root, number
    FROM events JOIN roots ON number = events.root
    WHERE (events.root, seq) > (?1, ?2) AND events.root <= ?3
    ORDER BY events.root, seq LIMIT ?4";

const BY_KEY: &str = "SELECT run, roots.root, events.key
    FROM events JOIN roots ON number = events.root
    WHERE events.key = ?1 ORDER BY run DESC LIMIT ?2";

// The last condition repeats that of the index, without which the index would not be used.
const BY_ID: &str = "SELECT run, roots.root, events.key
    FROM events JOIN roots ON number = events.root
    WHERE run BETWEEN ?1 AND ?2 AND kind = 'admitted' AND kind IN ('admitted', 'ended')
    ORDER BY run DESC LIMIT ?3";

const MILESTONE: &str = "SELECT roots.root, seq, body
    FROM events JOIN roots ON number = events.root
    WHERE run = ?1 AND kind = ?2 AND kind IN ('admitted', 'ended')
    ORDER BY events.root DESC, seq DESC LIMIT 1";

/// A place in the record: the number of a tree, and of an event in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) tree: i64,
    pub(super) seq: i64,
}

/// The number of a tree in the tables.
pub(super) fn number(connection: &Connection, root: RootId) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT number FROM roots WHERE root = ?1")?
        .query_row([RunColumn(root.run())], |row| row.get(0))
        .optional()
}

/// The page after a place, which is moved to its end. It does not go beyond the tree numbered `last`.
pub(super) fn page(
    connection: &Connection,
    after: &mut Place,
    last: i64,
) -> rusqlite::Result<Page> {
    let mut select = connection.prepare_cached(PAGE_AFTER)?;
    let mut rows = select.query((after.tree, after.seq, last, PAGE))?;
    let mut page = Page::new();
    while let Some(row) = rows.next()? {
        *after = Place { tree: row.get(5)?, seq: row.get(0)? };
        let RunColumn(root) = row.get(4)?;
        page.push(row::event(RootId::new(root), row)?);
    }
    Ok(page)
}

/// All trees, oldest first.
pub(super) fn roots(connection: &Connection) -> rusqlite::Result<Vec<RootSummary>> {
    connection
        .prepare_cached(
            "SELECT root, key, opened_at, last_seq, ended, last_at FROM roots ORDER BY number",
        )?
        .query_map((), |row| {
            let RunColumn(root) = row.get(0)?;
            let key: Option<KeyColumn> = row.get(1)?;
            let TimeColumn(opened_at) = row.get(2)?;
            let TimeColumn(last_at) = row.get(5)?;
            Ok(RootSummary {
                root: RootId::new(root),
                key: key.map(|KeyColumn(key)| key),
                opened_at,
                last_seq: row.get(3)?,
                ended: row.get(4)?,
                last_at,
            })
        })?
        .collect()
}

/// The runs that are meant, newest first.
pub(super) fn find(connection: &Connection, sought: &Sought) -> rusqlite::Result<Vec<Found>> {
    match sought {
        Sought::Nothing => Ok(Vec::new()),
        // The pattern lets through what only looks like a main session; the key itself knows.
        Sought::MainSessions => found(
            connection,
            "SELECT root, root, key FROM roots WHERE key LIKE 'agent:%:main' ORDER BY root DESC",
            (),
        )
        .map(|mut roots| {
            roots.retain(|found| found.key.kind() == KeyKind::Main);
            roots.truncate(FIND_LIMIT);
            roots
        }),
        Sought::Session(key) => found(connection, BY_KEY, (key.as_str(), FIND_LIMIT)),
        Sought::Runs(runs) => {
            found(connection, BY_ID, (RunColumn(*runs.start()), RunColumn(*runs.end()), FIND_LIMIT))
        }
    }
}

/// What the newest event of this kind about a run says.
pub(super) fn milestone(
    connection: &Connection,
    run: RunId,
    kind: &str,
) -> rusqlite::Result<Option<Result<EventKind, StoreError>>> {
    connection
        .prepare_cached(MILESTONE)?
        .query_row((RunColumn(run), kind), |row| {
            let RunColumn(root) = row.get(0)?;
            Ok(row::kind(RootId::new(root), row.get(1)?, row.get_ref(2)?.as_str()?))
        })
        .optional()
}

fn found(connection: &Connection, sql: &str, params: impl Params) -> rusqlite::Result<Vec<Found>> {
    let read = |row: &Row<'_>| {
        let (RunColumn(run), RunColumn(root), KeyColumn(key)) =
            (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(Found { run, root: RootId::new(root), key })
    };
    connection.prepare_cached(sql)?.query_map(params, read)?.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DataFolder, SqliteStore};

    #[test]
    fn no_question_about_one_run_reads_the_whole_record() {
        let home = tempfile::tempdir().unwrap();
        let folder = DataFolder::open(home.path()).unwrap();
        drop(SqliteStore::open(&folder).unwrap());
        let connection = Connection::open(folder.database()).unwrap();
        for (question, index) in [
            (BY_KEY, "INDEX sessions"),
            (BY_ID, "INDEX milestones"),
            (MILESTONE, "INDEX milestones"),
        ] {
            let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {question}")).unwrap();
            let nothing = rusqlite::params_from_iter(vec![""; plan.parameter_count()]);
            let steps = plan.query_map(nothing, |row| row.get::<_, String>(3)).unwrap();
            let steps: Vec<String> = steps.map(Result::unwrap).collect();
            assert!(steps.iter().any(|step| step.contains(index)), "{steps:?}");
            assert!(!steps.iter().any(|step| step.contains("SCAN")), "{steps:?}");
        }
    }
}
