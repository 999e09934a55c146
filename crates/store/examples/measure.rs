//! Measures the store beside what it is made of: bare inserts of the same rows, and a plain copy with a plain hash.
//!
//! `cargo run --release -p offshoot-store --example measure [folder]`. Numbers of one machine at one moment: what
//! counts is the ratio, and that both sides ran in turn.

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use offshoot_model::{
    Admitted, AgentId, Cleanup, ContextEntry, Ending, Event, EventKind, Grant, OnNeedFailed,
    Origin, Payload, ProcessIdentity, RootId, RunId, SessionKey, Timestamp, Tree, ValueKind,
};
use offshoot_store::{Commit, DataFolder, NewValue, SharedContexts, SqliteStore, Store};
use rusqlite::{Connection, params};

const RUNS: u32 = 100_000;
const GIBIBYTE: u64 = 1 << 30;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let parent = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    for round in 1..=4 {
        say(&format!("round {round}"));
        let home = tempfile::tempdir_in(&parent)?;
        let recorded = record(home.path())?;
        reopen(home.path(), recorded)?;
        trees(home.path())?;
        values(home.path(), round)?;
    }
    Ok(())
}

/// `RUNS` runs in one tree, through the store and as bare inserts.
fn record(home: &Path) -> Result<RootId> {
    let events = events();
    let root = events[0][0].root;
    let rows: Vec<Event> = events.concat();

    let folder = DataFolder::open(home.join("data"))?;
    let store = SqliteStore::open(&folder)?;
    let (ours, commits) = timed(|| {
        let commits: Vec<Commit> = events.into_iter().map(|call| store.append(&call)).collect();
        for commit in commits {
            commit.wait()?;
        }
        Ok(store.commits())
    })?;
    let bare = bare_inserts(home, &rows, commits)?;
    say(&format!(
        "  append {} events of {RUNS} runs in {commits} transactions: {:.2} s, bare inserts {:.2} s, ratio {:.2}",
        rows.len(),
        ours.as_secs_f64(),
        bare.as_secs_f64(),
        ours.as_secs_f64() / bare.as_secs_f64(),
    ));
    Ok(root)
}

/// The same rows in the same tables in as many transactions, ready to be bound.
fn bare_inserts(home: &Path, events: &[Event], transactions: u64) -> Result<Duration> {
    let folder = DataFolder::open(home.join("bare"))?;
    drop(SqliteStore::open(&folder)?);
    let mut connection = Connection::open(folder.path().join("offshoot.db"))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", 4096)?;
    let rows: Vec<_> = events
        .iter()
        .map(|event| {
            let key = match &event.kind {
                EventKind::Admitted(admitted) => Some(admitted.key.as_str()),
                _ => None,
            };
            Ok((event, key, serde_json::to_string(&event.kind)?))
        })
        .collect::<Result<_>>()?;
    let (took, ()) = timed(|| {
        for group in rows.chunks(rows.len().div_ceil(transactions as usize)) {
            let transaction = connection.transaction()?;
            let mut insert = transaction.prepare_cached(
                "INSERT INTO events (root, seq, run, at, kind, key, body, chain)
                 VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, zeroblob(32))",
            )?;
            for (event, key, body) in group {
                let at = event.at.as_micros() as i64;
                let (seq, run) = (event.seq as i64, event.run.as_bytes());
                insert.execute(params![seq, run, at, event.kind.name(), key, body])?;
            }
            drop(insert);
            transaction.commit()?;
        }
        Ok(())
    })?;
    Ok(took)
}

/// Opening a large record, and drawing it.
fn reopen(home: &Path, root: RootId) -> Result<()> {
    let (took, tree) = timed(|| {
        let store = SqliteStore::open(&DataFolder::open(home.join("data"))?)?;
        let mut tree = Tree::new();
        for event in store.events(root, 0) {
            tree.apply(&event?);
        }
        Ok(tree)
    })?;
    let runs = tree.nodes().count();
    say(&format!("  reopen and fold {runs} runs: {:.2} s", took.as_secs_f64()));
    Ok(())
}

/// As many trees of one run each.
fn trees(home: &Path) -> Result<()> {
    let folder = DataFolder::open(home.join("trees"))?;
    let store = SqliteStore::open(&folder)?;
    let commits: Vec<Commit> = (0..RUNS)
        .map(|number| {
            let root = RootId::new(run_id(number));
            let kinds = [admitted(root.run(), None, 0), ended(number)];
            let event = |(at, kind)| event(root, at as u64 + 1, root.run(), kind);
            store.append(&kinds.into_iter().enumerate().map(event).collect::<Vec<_>>())
        })
        .collect();
    for commit in commits {
        commit.wait()?;
    }
    let (took, tree) = timed(|| {
        let store = SqliteStore::open(&folder)?;
        let mut tree = Tree::new();
        for event in store.all_events() {
            tree.apply(&event?);
        }
        Ok(tree)
    })?;
    let runs = tree.roots().count();
    say(&format!("  reopen and fold {runs} trees of one run: {:.2} s", took.as_secs_f64()));
    Ok(())
}

/// A large value: taking it in, and handing it on.
fn values(home: &Path, round: u32) -> Result<()> {
    let source = home.join("source");
    let mut file = File::create(&source)?;
    let mut block = vec![0_u8; 1 << 20];
    let mut noise = blake3::Hasher::new().finalize_xof();
    for _ in 0..GIBIBYTE >> 20 {
        noise.fill(&mut block);
        file.write_all(&block)?;
    }
    file.sync_all()?;
    let folder = DataFolder::open(home.join("data"))?;
    let store = SqliteStore::open(&folder)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;

    let copy = home.join("copy");
    let plainly = || -> Result<(Duration, Duration)> {
        let (copied, _) = timed(|| Ok(fs::copy(&source, &copy)?))?;
        let (hashed, _) = timed(|| {
            let mut hasher = blake3::Hasher::new();
            io::copy(&mut File::open(&copy)?, &mut hasher)?;
            Ok(hasher.finalize())
        })?;
        fs::remove_file(&copy)?;
        Ok((copied, hashed))
    };
    let put = || Ok(runtime.block_on(store.put(NewValue::file(ValueKind::Text, &source)))?);
    // Each goes first in every other round: the first copy after the writing of the source is slower.
    let ((took, value), (copied, hashed)) = match round % 2 {
        0 => (timed(put)?, plainly()?),
        _ => {
            let plain = plainly()?;
            (timed(put)?, plain)
        }
    };
    let plain = copied + hashed;
    say(&format!(
        "  take in 1 GiB, durably: {:.2} s, copy {:.2} s + hash on one core {:.2} s, ratio {:.2}",
        took.as_secs_f64(),
        copied.as_secs_f64(),
        hashed.as_secs_f64(),
        took.as_secs_f64() / plain.as_secs_f64(),
    ));
    let contexts = SharedContexts::new(&folder, RootId::new(run_id(RUNS)));
    let context = [ContextEntry { name: "the log".into(), value }];
    let (took, ()) = timed(|| {
        for _ in 0..100 {
            contexts.of(&store, &context)?;
        }
        Ok(())
    })?;
    say(&format!("  hand it to 100 children: {:.1} ms", took.as_secs_f64() * 1000.0));
    Ok(())
}

fn events() -> Vec<Vec<Event>> {
    let root = RootId::new(run_id(RUNS));
    let mut seq = 0;
    let mut next = |run, kind| {
        seq += 1;
        event(root, seq, run, kind)
    };
    let mut calls = vec![vec![next(root.run(), admitted(root.run(), None, 0))]];
    for number in 0..RUNS {
        let run = run_id(number);
        let process = Some(ProcessIdentity::new(number, 1 << 40));
        calls.push(vec![
            next(run, admitted(run, Some(root.run()), 1)),
            next(run, EventKind::Starting),
        ]);
        calls.push(vec![next(run, EventKind::Started { process })]);
        calls.push(vec![next(run, ended(number))]);
    }
    calls
}

fn event(root: RootId, seq: u64, run: RunId, kind: EventKind) -> Event {
    Event { root, seq, at: Timestamp::from_micros(1_700_000_000_000_000 + seq), run, kind }
}

fn admitted(run: RunId, parent: Option<RunId>, depth: u32) -> EventKind {
    let key = match depth {
        0 => format!("agent:main:run:{run}"),
        _ => format!("agent:main:subagent:{run}"),
    };
    EventKind::Admitted(Box::new(Admitted {
        key: SessionKey::parse(&key).expect("the key is malformed"),
        parent,
        agent: AgentId::main(),
        depth,
        origin: Origin::Piece,
        label: None,
        runtime: Some("exec".into()),
        task: Payload::text("count the errors"),
        input: None,
        place: None,
        instead: None,
        needs: Vec::new(),
        on_need_failed: OnNeedFailed::Skip,
        particulars: None,
        grant: Arc::new(Grant::unbounded()),
        rules: None,
        cleanup: Cleanup::Keep,
        archive_after_minutes: None,
        plan: None,
    }))
}

fn ended(number: u32) -> EventKind {
    EventKind::Ended(Box::new(Ending::completed(Payload::text(number.to_string()))))
}

/// Ids as they are minted: the first bytes grow with time.
fn run_id(number: u32) -> RunId {
    let noise = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    let mut bytes = [0; 16];
    bytes[2..6].copy_from_slice(&number.to_be_bytes());
    bytes[8..].copy_from_slice(&noise);
    RunId::from_bytes(bytes)
}

#[expect(clippy::disallowed_methods, reason = "measuring is what this is for")]
fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<(Duration, T)> {
    let start = Instant::now();
    let result = work()?;
    Ok((start.elapsed(), result))
}

#[expect(clippy::print_stdout, reason = "what it measured is what it is run for")]
fn say(line: &str) {
    println!("{line}");
}
