//! The questions that a reading connection is asked.

use std::sync::LazyLock;

use offshoot_model::{Event, RootId, RunId};
use offshoot_session_key::KeyKind;
use rusqlite::{Connection, OptionalExtension, Params, Row};

use super::chain::{COLUMNS, Chain};
use super::column::{KeyColumn, RunColumn, TimeColumn};
use crate::page::Page;
use crate::pages::PAGE;
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

// Reads all admissions: the text of an event is JSON to the tables.
const BY_LABEL: &str = "SELECT run, roots.root, events.key
    FROM events JOIN roots ON number = events.root
    WHERE kind = 'admitted' AND kind IN ('admitted', 'ended')
        AND body ->> '$.admitted.label' = ?1
    ORDER BY run DESC LIMIT ?2";

/// The admission and the ends of a run of a tree, each with the link of the event before it. The kinds are literals: where one
/// is a parameter, SQLite looks at each reading again whether the index fits, and prepares the question anew.
static MILESTONES: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {COLUMNS}, before.chain FROM events
         LEFT JOIN events AS before ON before.root = events.root AND before.seq = events.seq - 1
         WHERE events.run = ?1 AND events.kind IN ('admitted', 'ended') AND events.root = ?2"
    )
});

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
    page.more = !fill(view, chain, &mut page)?;
    Ok(page)
}

/// The page of the whole record after a place, which is moved to its end.
pub(super) fn page_of_all(view: &Connection, place: &mut ReadPosition) -> rusqlite::Result<Page> {
    let mut page = Page::of([], true);
    while page.len() < PAGE {
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
        if fill(view, chain, &mut page)? {
            place.chain = None;
        }
    }
    Ok(page)
}

/// Fills a page with what follows of a tree; whether its end was reached, which is compared with the line of the tree.
fn fill(view: &Connection, chain: &mut Chain, into: &mut Page) -> rusqlite::Result<bool> {
    let room = PAGE.saturating_sub(into.len());
    let mut select = view.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM events WHERE root = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3"
    ))?;
    let mut rows = select.query((chain.number, chain.seq.cast_signed(), room))?;
    let mut read = 0;
    while let Some(row) = rows.next()? {
        chain.read(row, into)?;
        read += 1;
    }
    if read == room {
        return Ok(false);
    }
    if let Err(error) = chain.check_end(view)? {
        into.push(Err(error), None);
    }
    Ok(true)
}

/// All trees, oldest first. When each ended is what its events say: the line of a tree is a copy of that. A tree is over where its
/// root has ended, and the line does not say that the root was reopened since.
pub(super) fn roots(connection: &Connection) -> rusqlite::Result<Vec<RootSummary>> {
    connection
        .prepare_cached(
            "SELECT root, key, opened_at, last_seq,
                    ended AND EXISTS (SELECT 1 FROM events WHERE events.root = number AND run = roots.root
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

/// The ids of all runs, in their order.
pub(super) fn runs(connection: &Connection) -> rusqlite::Result<Vec<RunId>> {
    connection
        .prepare_cached(
            "SELECT DISTINCT run FROM events
             WHERE kind = 'admitted' AND kind IN ('admitted', 'ended') ORDER BY run",
        )?
        .query_map((), |row| row.get(0).map(|RunColumn(run)| run))?
        .collect()
}

/// The runs that are meant, newest first.
pub(super) fn find(connection: &Connection, sought: &Sought) -> rusqlite::Result<Vec<FoundRun>> {
    match sought {
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
        Sought::Labelled(label) => found(connection, BY_LABEL, (label, FIND_LIMIT)),
    }
}

/// Returns true if the root of this tree is over.
fn is_over(connection: &Connection, root: RootId) -> rusqlite::Result<bool> {
    let over = connection
        .prepare_cached("SELECT ended FROM roots WHERE root = ?1")?
        .query_row([RunColumn(root.run())], |row| row.get(0))
        .optional()?;
    Ok(over.unwrap_or(false))
}

/// The admission and the last end of one run, each compared with its place in the chain; none where it is not recorded.
#[derive(Debug, Default)]
pub(super) struct Milestones {
    pub(super) admitted: Option<Result<Event, StoreError>>,
    pub(super) ended: Option<Result<Event, StoreError>>,
}

/// The milestones of these runs of a tree, in this order. The last end of a root that was reopened is not its end any more.
pub(super) fn milestones(
    connection: &Connection,
    root: RootId,
    runs: &[RunId],
) -> rusqlite::Result<Vec<Milestones>> {
    let view = connection.unchecked_transaction()?;
    let Some(number) = number(&view, root)? else {
        return Ok(runs.iter().map(|_| Milestones::default()).collect());
    };
    let mut select = view.prepare_cached(&MILESTONES)?;
    let mut of = |run: RunId| {
        let (mut found, mut last_end) = (Milestones::default(), 0);
        let mut rows = select.query((RunColumn(run), number))?;
        while let Some(row) = rows.next()? {
            let seq: u64 = row.get(0)?;
            let mut page = Page::default();
            Chain::before(root, number, seq, row.get(8).ok()).read(row, &mut page)?;
            let event = page.next().expect("a row is an entry");
            match row.get_ref(4)?.as_str()? {
                "ended" if seq < last_end => {}
                "ended" => (found.ended, last_end) = (Some(event), seq),
                _ => found.admitted = Some(event),
            }
        }
        if run == root.run() && !is_over(&view, root)? {
            found.ended = None;
        }
        Ok(found)
    };
    runs.iter().map(|run| of(*run)).collect()
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
            (&MILESTONES, "INDEX milestones"),
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
