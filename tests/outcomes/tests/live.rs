//! The table, live and on replay: what a parent is told is what the record says, and no process is left.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::join_all;
use offshoot_config::{Config, Loader};
use offshoot_model::{
    Envelope, Event, EventKind, InputRange, Payload, ProcessIdentity, RunId, SpawnRequest, Tree,
};
use offshoot_outcomes::{Agent, Ends, Prints, Row, rows};
use offshoot_process::{KeeperCommand, Options, Processes};
use offshoot_runtime::{FnRuntime, OutputFormat, WaitFor};
use offshoot_runtime_exec::{ExecOptions, ExecRuntime};
use offshoot_spawner::{FanAnswer, FanOut, Piece, RootSpec, RunSpec, Session, Spawner};
use offshoot_store::{DataFolder, SqliteStore, Store};
use offshoot_test_support::{Disk, fake_agent, named_pipe};
use tempfile::TempDir;

/// Where some rows ran.
struct Place {
    home: TempDir,
    folder: Arc<DataFolder>,
    store: Arc<SqliteStore>,
    /// For output, where there is not to be enough room.
    disk: Option<Disk>,
}

/// What came of one row.
struct Came {
    row: Row,
    envelope: Envelope,
    process: Option<ProcessIdentity>,
}

impl Place {
    fn new() -> Self {
        let home = tempfile::tempdir().expect("a folder for the test");
        let path = home.path().join("data");
        let folder = Arc::new(DataFolder::open(&path).expect("a data folder"));
        let store = Arc::new(SqliteStore::open(&folder).expect("a record"));
        Self { home, folder, store, disk: None }
    }

    /// The same with so much room for output. None where no disk can be mounted.
    fn with_room(bytes: u64) -> Option<Self> {
        let place = Self::new();
        let disk = Disk::over(&place.home.path().join("data/spool"), bytes)?;
        Some(Self { disk: Some(disk), ..place })
    }

    fn spawner(&self, exec: &ExecRuntime, settings: &[(&str, &str)]) -> Spawner {
        let panics = FnRuntime::new("panics", |_launch, _cx| async { panic!("on purpose") });
        Spawner::builder()
            .config(config(settings))
            .store(Arc::<SqliteStore>::clone(&self.store))
            .folder(Arc::clone(&self.folder))
            .runtime(exec.clone())
            .runtime(panics)
            .build()
            .expect("a spawner")
    }

    /// Runs these rows in one tree.
    async fn run(&self, exec: &ExecRuntime, rows: Vec<Row>) -> Vec<Came> {
        let spawner = self.spawner(exec, rows[0].settings);
        let session = spawner.open(RootSpec::new("table")).await.expect("a root");
        let mut events = session.events();
        let follow = async {
            let mut kept = Vec::new();
            while let Some(event) = events.next().await {
                kept.push(event.expect("a record that can be read"));
            }
            kept
        };
        let work = async {
            let fans = rows.iter().map(|row| self.start(&session, row));
            let answers = join_all(fans).await;
            let waited = session.wait(WaitFor::default()).await.expect("a whole record");
            assert!(waited.pending.is_empty(), "{:?}", waited.pending);
            session.conclude(&answers[0]).await.expect("a whole record");
            waited.ended
        };
        let (envelopes, events) = tokio::join!(work, follow);
        came(rows, envelopes, &events)
    }

    /// Starts one row, does to it what is to be done, and waits for its end.
    async fn start(&self, session: &Session, row: &Row) -> FanAnswer {
        let fifo = self.home.path().join(row.name);
        let piece = Piece::task(row.task.as_str()).label(row.name);
        let missing = || InputRange {
            path: Arc::new(self.home.path().join("missing")),
            offset: 0,
            length: 1,
            header: 0,
            hash: None,
        };
        let input = (row.ends == Ends::MissingInput).then(missing);
        let piece = Piece { input, ..piece };
        let piece = timed(piece, row);
        let beside = |args: &'static [&'static str]| {
            let command = command(Agent::Fake(args), &fifo);
            Piece::from(SpawnRequest { command: Some(command), ..SpawnRequest::default() })
        };
        let order = match row.ends {
            Ends::BesideAnAnswer => FanOut::new([piece, beside(&["print", "first"])])
                .merge("first".parse().expect("a strategy")),
            Ends::BesideAFailure => {
                FanOut { max_fail: Some(0), ..FanOut::new([piece, beside(&["exit", "1"])]) }
            }
            _ => FanOut::new([piece]),
        };
        let run_spec = Some(run_spec(row, &fifo, self.home.path()));
        let order = FanOut { run_spec, ..order };
        if row.ends == Ends::Cancelled {
            named_pipe(&fifo);
        }
        let fan = session.fan_out(order).await.expect("pieces");
        let cancelled = self.cancel(session, row, fifo);
        let (answer, _held) = tokio::join!(fan.answer(), cancelled);
        answer.expect("a whole record")
    }

    /// Cancels a row that is to be cancelled. What comes back keeps the agent's fifo open.
    async fn cancel(&self, session: &Session, row: &Row, fifo: PathBuf) -> Option<File> {
        let held = match row.ends {
            Ends::Cancelled => {
                // Opens as soon as the agent has come to it.
                let open = move || File::options().write(true).open(fifo).expect("a fifo");
                Some(tokio::task::spawn_blocking(open).await.expect("opening does not panic"))
            }
            Ends::CancelledInLine => None,
            _ => return None,
        };
        session.cancel(self.named(session, row.name).await, true);
        held
    }

    /// The run of a row, as soon as it is admitted.
    async fn named(&self, session: &Session, name: &str) -> RunId {
        let mut events = session.events();
        loop {
            let event = events.next().await.expect("it is admitted").expect("a record");
            match &event.kind {
                EventKind::Admitted(about) if about.label.as_deref() == Some(name) => {
                    return event.run;
                }
                _ => {}
            }
        }
    }
}

fn timed(mut piece: Piece, row: &Row) -> Piece {
    piece.request.run_timeout_seconds = row.timeout_seconds;
    piece
}

fn run_spec(row: &Row, fifo: &Path, folder: &Path) -> RunSpec {
    let run_spec = match row.agent {
        Agent::Panics => RunSpec { runtime: Some("panics".into()), ..RunSpec::in_folder(folder) },
        agent => RunSpec::command(folder, command(agent, fifo).iter()),
    };
    let output = if row.json { OutputFormat::Json } else { OutputFormat::Text };
    RunSpec { ok_exit: row.ok_exit.into(), output, ..run_spec }
}

fn command(agent: Agent, fifo: &Path) -> Arc<[String]> {
    let fake = fake_agent().to_str().expect("a path in UTF-8").to_owned();
    let fifo = fifo.to_str().expect("a path in UTF-8");
    let word = |word: &&str| if *word == "FIFO" { fifo.to_owned() } else { (*word).to_owned() };
    match agent {
        Agent::Fake(args) => [fake].into_iter().chain(args.iter().map(word)).collect(),
        Agent::Program(words) => words.iter().map(word).collect(),
        Agent::Panics => Arc::from([]),
    }
}

fn config(settings: &[(&str, &str)]) -> Config {
    // Some cannot be started at all, which is not to hold back the others.
    let usual = [("graceSeconds", "1"), ("maxConcurrent", "64"), ("breaker.failures", "0")];
    let flag = |loader: Loader, (key, value): &(&str, &str)| {
        loader.flag(format!("agents.defaults.subagents.{key}"), *value, "test")
    };
    let loader = usual.iter().chain(settings).fold(Loader::new(), flag);
    loader.load().expect("the settings of a test are right")
}

/// Puts together what was told of each row.
fn came(rows: Vec<Row>, envelopes: Vec<Envelope>, events: &[Arc<Event>]) -> Vec<Came> {
    let (mut runs, mut processes) = (HashMap::new(), HashMap::new());
    for event in events {
        match &event.kind {
            EventKind::Admitted(about) => {
                runs.extend(about.label.clone().map(|label| (label, event.run)));
            }
            EventKind::Started { process: Some(process), .. } => {
                processes.insert(event.run, *process);
            }
            _ => {}
        }
    }
    let mut envelopes: HashMap<RunId, Envelope> =
        envelopes.into_iter().map(|envelope| (envelope.run_id, envelope)).collect();
    rows.into_iter()
        .map(|row| {
            let run = runs[row.name];
            let envelope = envelopes.remove(&run).expect("each run has an envelope");
            Came { row, envelope, process: processes.get(&run).copied() }
        })
        .collect()
}

fn check_live(came: &Came) {
    let Came { row, envelope, .. } = came;
    let (name, expected) = (row.name, row.expected);
    let code = envelope.error.as_ref().map_or("completed", |error| &error.code);
    assert_eq!((envelope.status, code), (expected.status, expected.code), "{name}: {envelope:?}");
    let message = envelope.error.as_ref().map_or("", |error| &error.message);
    assert!(message.contains(expected.message), "{name}: {message}");
    let data = envelope.data.as_ref();
    match expected.prints {
        Prints::Nothing => {
            assert_eq!(data, None, "{name}");
            assert!(!envelope.partial);
        }
        Prints::Text(text) => assert_eq!(data, Some(&Payload::text(text)), "{name}"),
        Prints::Stored(size) => {
            let Some(Payload::Stored(reference)) = data else { panic!("{name}: {data:?}") };
            // One newline at the end belongs to the printing.
            assert!(reference.size == size || reference.size + 1 == size, "{name}: {reference:?}");
        }
        Prints::Pid => {
            let Some(Payload::Text(pid)) = data else { panic!("{name}: {data:?}") };
            assert!(!Path::new("/proc").join(&**pid).exists(), "{name}: {pid} is left");
        }
        Prints::Something => {}
    }
    assert_eq!(envelope.partial, data.is_some() && !envelope.status.is_success(), "{name}");
    let ran = came.process.is_some();
    assert!(!ran || expected.prints != Prints::Nothing, "{name}: it was not to be started");
}

/// The same, from a record that was opened anew.
fn check_replay(place: &Place, all: &[Came]) {
    let folder = DataFolder::open(place.folder.path()).expect("the same folder");
    let store = SqliteStore::open(&folder).expect("the same record");
    let events: Vec<Event> =
        store.all_events().collect::<Result<_, _>>().expect("a record that can be read");
    let tree = Tree::of(&events);
    for Came { row, envelope, .. } in all {
        let run = envelope.run_id;
        let node = tree.get(run).expect("each run is in the record");
        assert_eq!(node.label.as_deref(), Some(row.name));
        assert_eq!(node.status, row.expected.status, "{}", row.name);
        let reason = node.reason.as_ref().map(|reason| reason.code());
        assert_eq!(reason, Some(row.expected.code), "{}", row.name);
        let root = node.root;
        let ending = store.ending(root, run).expect("a record").expect("it has ended");
        let about = store.admitted(root, run).expect("a record").expect("the run was not admitted");
        let again = Envelope::of(&ending, about.key, run, about.agent, about.depth);
        assert_eq!(&again, envelope, "{}: asking again repeats the same answer", row.name);
        if let Some(Payload::Stored(reference)) = &envelope.data {
            store.verify(reference).expect("what it printed is kept");
        }
    }
    assert!(tree.nodes().all(|node| node.status.is_terminal()), "nothing is left alive in it");
}

/// No process of any run is left, neither its own nor one that carries its name.
fn check_nothing_is_left(all: &[Came]) {
    let own = all.iter().filter_map(|came| Some((came.process?, came.row.name)));
    for (ProcessIdentity { pid, start_time, .. }, name) in own {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields = stat.rsplit(')').next().unwrap_or_default();
        let started = fields.split_whitespace().nth(19).and_then(|field| field.parse().ok());
        assert_ne!(started, Some(start_time), "{name}: process {pid} is left");
    }
    let names: HashMap<Vec<u8>, &str> = all
        .iter()
        .map(|came| {
            (format!("OFFSHOOT_RUN_ID={}", came.envelope.run_id).into_bytes(), came.row.name)
        })
        .collect();
    for process in fs::read_dir("/proc").expect("processes are listed").flatten() {
        // Those of others, and those that end right now, cannot be read.
        let environment = fs::read(process.path().join("environ")).unwrap_or_default();
        let left = environment.split(|&byte| byte == 0).find_map(|variable| names.get(variable));
        assert_eq!(left, None, "{} is left", process.path().display());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_agent_ends_as_the_table_says() {
    // Built before anything else starts a process: from then on orphans of this process are the runs'.
    let keeper =
        KeeperCommand { program: fake_agent().to_owned(), args: vec!["keeper".into()], log: None };
    let options = Options { keeper: Some(keeper), subreaper: true, ..Options::default() };
    let processes = Processes::start(options).expect("processes");
    let environment = vec![("PATH".into(), "/usr/bin:/bin".into())];
    let exec = ExecRuntime::new(processes, ExecOptions::inheriting(environment));

    let (full, usual): (Vec<Row>, Vec<Row>) =
        rows().into_iter().partition(|row| row.ends == Ends::FullDisk);
    let mut trees: BTreeMap<_, Vec<Row>> = BTreeMap::new();
    for row in usual {
        trees.entry(row.settings).or_default().push(row);
    }
    // All trees of one place share its record.
    let mut places = vec![(Place::new(), trees.into_values().collect::<Vec<_>>())];
    if let Some(place) = Place::with_room(64 * 1024) {
        places.push((place, vec![full]));
    }
    let run = places.into_iter().map(|(place, trees)| async {
        let came = join_all(trees.into_iter().map(|rows| place.run(&exec, rows))).await;
        (place, came.into_iter().flatten().collect::<Vec<_>>())
    });
    for (mut place, came) in join_all(run).await {
        came.iter().for_each(check_live);
        check_nothing_is_left(&came);
        assert_eq!(spooled(&place), 0, "what was spooled is a value now, or gone");
        // The file beside the record is written where output is, and cannot be moved from there to another disk.
        drop(place.disk.take());
        check_replay(&place, &came);
    }
}

/// How many files are left where output goes that has no other place yet.
fn spooled(place: &Place) -> usize {
    fs::read_dir(place.folder.spool_folder()).expect("a spool folder").count()
}
