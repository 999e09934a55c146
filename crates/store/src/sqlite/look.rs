//! The questions that a reading connection is asked.

use offshoot_model::{EventKind, RootId, RunId};
use offshoot_session_key::KeyKind;
use rusqlite::{Connection, OptionalExtension, Params, Row};

use super::row::{self, KeyColumn, RunColumn, TimeColumn};
use crate::pages::{PAGE, Page};
use crate::sought::Sought;
use crate::{FIND_LIMIT, Found, RootSummary, StoreError};

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

/// One page of a tree's events: those after a number.
pub(super) fn page(connection: &Connection, root: RootId, after: u64) -> rusqlite::Result<Page> {
    // SQLite's numbers are signed, and no record is that long.
    let after = after.min(i64::MAX.cast_unsigned());
    connection
        .prepare_cached(
            "SELECT seq, run, at, body FROM events
             WHERE root = (SELECT number FROM roots WHERE root = ?1) AND seq > ?2
             ORDER BY seq LIMIT ?3",
        )?
        .query_map((RunColumn(root.run()), after, PAGE), |row| row::event(root, row))?
        .collect()
}

/// All trees, oldest first.
pub(super) fn roots(connection: &Connection) -> rusqlite::Result<Vec<RootSummary>> {
    connection
        .prepare_cached("SELECT root, key, opened_at, last_seq, ended FROM roots ORDER BY number")?
        .query_map((), |row| {
            let RunColumn(root) = row.get(0)?;
            let key: Option<KeyColumn> = row.get(1)?;
            let TimeColumn(opened_at) = row.get(2)?;
            Ok(RootSummary {
                root: RootId::new(root),
                key: key.map(|KeyColumn(key)| key),
                opened_at,
                last_seq: row.get(3)?,
                ended: row.get(4)?,
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
