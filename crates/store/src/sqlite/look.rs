//! The questions that a reading connection is asked.

use offshoot_model::{Event, RootId, RunId};
use offshoot_session_key::KeyKind;
use rusqlite::{Connection, OptionalExtension, Params, Row};

use super::chain::{COLUMNS, Chain};
use super::column::{KeyColumn, RunColumn, TimeColumn};
use crate::pages::{PAGE, Page};
use crate::sought::Sought;
use crate::{FIND_LIMIT, FoundRun, RootSummary, StoreError};

const TREE_AFTER: &str = "SELECT number, root FROM roots WHERE number > ?1 ORDER BY number LIMIT 1";

const BY_KEY: &str = "SELECT run, roots.root, events.key
    FROM events JOIN roots ON number = events.root
    WHERE events.key = ?1 ORDER BY run DESC LIMIT ?2";

// The last condition repeats that of the index, without which the index would not be used.
const BY_ID: &str = "SELECT run, roots.root, events.key
    FROM events JOIN roots ON number = events.root
    WHERE run BETWEEN ?1 AND ?2 AND kind = 'admitted' AND kind IN ('admitted', 'ended')
    ORDER BY run DESC LIMIT ?3";

/// The number of the newest event of a kind about a run of a tree.
const MILESTONE: &str = "SELECT seq FROM events
    WHERE run = ?1 AND kind = ?2 AND kind IN ('admitted', 'ended') AND root = ?3
    ORDER BY seq DESC LIMIT 1";

/// A place in the record, where all trees are read one after the other.
#[derive(Debug, Default)]
pub(super) struct ReadPosition {
    /// The number of the last tree that was begun.
    tree: i64,
    /// The chain of that tree, until its end was reached.
    chain: Option<Chain>,
}

/// The number of a tree in the tables.
pub(super) fn number(connection: &Connection, root: RootId) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT number FROM roots WHERE root = ?1")?
        .query_row([RunColumn(root.run())], |row| row.get(0))
        .optional()
}

/// The page of a tree after what was read of it.
pub(super) fn page(view: &Connection, chain: &mut Chain) -> rusqlite::Result<Page> {
    let mut page = Page::default();
    page.more = !fill(view, chain, &mut page.events)?;
    Ok(page)
}

/// The page of the whole record after a place, which is moved to its end.
pub(super) fn page_of_all(view: &Connection, place: &mut ReadPosition) -> rusqlite::Result<Page> {
    let mut page = Page { events: Vec::new(), more: true };
    while page.events.len() < PAGE {
        let Some(chain) = &mut place.chain else {
            let next = view
                .prepare_cached(TREE_AFTER)?
                .query_row([place.tree], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            let Some((number, RunColumn(root))) = next else {
                page.more = false;
                break;
            };
            place.tree = number;
            place.chain = Some(Chain::start(RootId::new(root), number));
            continue;
        };
        if fill(view, chain, &mut page.events)? {
            place.chain = None;
        }
    }
    Ok(page)
}

/// Fills a page with what follows of a tree; whether its end was reached, which is compared with the line of the tree.
fn fill(
    view: &Connection,
    chain: &mut Chain,
    into: &mut Vec<Result<Event, StoreError>>,
) -> rusqlite::Result<bool> {
    let room = PAGE.saturating_sub(into.len());
    let mut select = view.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM events WHERE root = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3"
    ))?;
    let mut rows = select.query((chain.number, chain.seq.cast_signed(), room))?;
    let mut read = 0;
    while let Some(row) = rows.next()? {
        into.push(chain.read(row)?);
        read += 1;
    }
    if read == room {
        return Ok(false);
    }
    if let Err(error) = chain.check_end(view)? {
        into.push(Err(error));
    }
    Ok(true)
}

/// All trees, oldest first. Whether and when each ended is what its events say: the line of a tree is a copy of that.
pub(super) fn roots(connection: &Connection) -> rusqlite::Result<Vec<RootSummary>> {
    connection
        .prepare_cached(
            "SELECT root, key, opened_at, last_seq,
                    EXISTS (SELECT 1 FROM events WHERE events.root = number AND run = roots.root
                            AND kind = 'ended' AND kind IN ('admitted', 'ended')),
                    coalesce((SELECT at FROM events WHERE events.root = number AND seq = last_seq),
                             last_at)
             FROM roots ORDER BY number",
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
pub(super) fn find(connection: &Connection, sought: &Sought) -> rusqlite::Result<Vec<FoundRun>> {
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

/// The newest event of this kind about a run of a tree, read along the chain.
pub(super) fn milestone(
    connection: &Connection,
    root: RootId,
    run: RunId,
    kind: &str,
) -> rusqlite::Result<Option<Result<Event, StoreError>>> {
    let view = connection.unchecked_transaction()?;
    let Some(number) = number(&view, root)? else { return Ok(None) };
    let found: Option<u64> = view
        .prepare_cached(MILESTONE)?
        .query_row((RunColumn(run), kind, number), |row| row.get(0))
        .optional()?;
    let Some(seq) = found else { return Ok(None) };
    let mut chain = Chain::after(&view, root, number, seq.saturating_sub(1))?;
    view.prepare_cached(&format!("SELECT {COLUMNS} FROM events WHERE root = ?1 AND seq = ?2"))?
        .query_row((number, seq), |row| chain.read(row))
        .optional()
}

fn found(
    connection: &Connection,
    sql: &str,
    params: impl Params,
) -> rusqlite::Result<Vec<FoundRun>> {
    let read = |row: &Row<'_>| {
        let (RunColumn(run), RunColumn(root), KeyColumn(key)) =
            (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(FoundRun { run, root: RootId::new(root), key })
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
