//! Trees whose supervisor dies, and whose agents go on where they were: with what was chosen for them, and with everything
//! that may not have reached them.

use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use offshoot_config::{Loader, Source, SourceKind};
use offshoot_model::{Event, EventKind, RootId, SpawnRequest};
use offshoot_runtime::{
    Abilities, Finished, FnRuntime, Launch, NextTurn, RunContext, Runtime, WaitFor,
};
use offshoot_spawner::{RootSpec, Session, Spawner, SpawnerError};
use offshoot_store::{DataFolder, SqliteStore, Store};
use tokio::sync::mpsc;

use crate::asking::ask;

/// A closure that goes on after an interruption.
struct GoesOn(FnRuntime);

impl Runtime for GoesOn {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn abilities(&self) -> Abilities {
        Abilities { resumes: true, ..self.0.abilities() }
    }

    fn start(&self, launch: Launch, cx: RunContext) -> BoxFuture<'static, Finished> {
        self.0.start(launch, cx)
    }
}

type Told = mpsc::UnboundedSender<String>;

/// Says who it is and what it was given. Then it asks for what its task says, unless it goes on, and tells each prompt of a
/// further turn and each letter; where it is told to hang it does nothing more.
fn runtime(name: &'static str, told: &Told, hangs: bool) -> GoesOn {
    let told = told.clone();
    let agents = FnRuntime::new(name, move |launch, mut cx| {
        let told = told.clone();
        async move {
            let Launch { agent, model, thinking, continues, .. } = &launch;
            let word = |word: &Option<Arc<str>>| word.as_deref().unwrap_or("none").to_owned();
            let (model, thinking) = (word(model), word(thinking));
            told.send(format!("{agent} by {name}, {model}, {thinking}, {continues}")).ok();
            let mut answer = launch.task.to_string();
            match &*launch.task {
                "wait for a scout" if !continues => {
                    let scout = Some("scout".parse().expect("an agent"));
                    let request = SpawnRequest { task: "look".into(), agent: scout, ..ask("") };
                    cx.host.spawn(request).await.expect("the spawn was refused");
                    drop(cx.host.wait(WaitFor::default()).await);
                }
                "wait for a scout" => drop(cx.host.wait(WaitFor::default()).await),
                "ask" if !continues => {
                    cx.host.spawn(ask("leaf")).await.expect("the spawn was refused");
                }
                "look" if hangs => std::future::pending().await,
                "read" if hangs => {
                    told.send(cx.turns.letter().await.to_string()).ok();
                    std::future::pending().await
                }
                _ => {}
            }
            while let NextTurn::Go(prompt) = cx.turns.ended(None).await {
                answer = prompt.to_string();
                told.send(prompt.to_string()).ok();
                if hangs {
                    std::future::pending().await
                }
            }
            Finished::text(answer)
        }
    });
    GoesOn(agents.with_turns())
}

fn spawner(home: &Path, config: &str, runtimes: Vec<GoesOn>) -> Spawner {
    let source = Source::new(SourceKind::User, "a.toml", config);
    let config = Loader::new().file(source).load().expect("the configuration was refused");
    let folder = Arc::new(DataFolder::open(home).expect("a data folder"));
    let store = Arc::new(SqliteStore::open(&folder).expect("a record"));
    let builder = Spawner::builder().config(config).store(store).folder(folder);
    let builder = runtimes.into_iter().fold(builder, |builder, it| builder.runtime(it));
    builder.build().expect("a spawner")
}

fn world() -> tokio::runtime::Runtime {
    let mut world = tokio::runtime::Builder::new_multi_thread();
    world.worker_threads(1).enable_all().build().expect("a runtime")
}

/// Opens a tree with this task, and kills everything once the agents have told so much.
fn killed(home: &Path, config: &str, task: &str, after: usize, letter: Option<&str>) -> RootId {
    let first = world();
    let (root, session) = first.block_on(async {
        let (told, mut heard) = mpsc::unbounded_channel();
        let runtimes = vec![runtime("first", &told, true), runtime("second", &told, true)];
        let spawner = spawner(home, config, runtimes);
        let session = spawner.run(RootSpec::new(task)).await.expect("a root");
        for number in 0..after {
            heard.recv().await.expect("nothing has begun");
            if let (0, Some(letter)) = (number, letter) {
                session.write(session.root().run(), letter).await.expect("it reads letters");
            }
        }
        (session.root(), session)
    });
    drop(first);
    drop(session);
    root
}

/// Takes the tree over and lets it end; answers what its agents told, sorted.
fn resumed(home: &Path, config: &str, root: RootId) -> Vec<String> {
    world().block_on(async {
        let (told, mut heard) = mpsc::unbounded_channel();
        let runtimes = vec![runtime("first", &told, false), runtime("second", &told, false)];
        let spawner = spawner(home, config, runtimes);
        let spec = RootSpec::new("?");
        let mut session: Session =
            spawner.resume(root, spec).await.expect("the tree cannot be resumed");
        session.ended().await.expect("a whole record");
        drop((session, spawner, told));
        let mut all = Vec::new();
        while let Ok(words) = heard.try_recv() {
            all.push(words);
        }
        all.sort_unstable();
        all
    })
}

fn events(home: &Path, root: RootId) -> Vec<Event> {
    let folder = DataFolder::open(home).expect("a data folder");
    let store = SqliteStore::open(&folder).expect("a record");
    store.events(root, 0).map(|event| event.expect("a whole record")).collect()
}

const RECURSIVE: &str =
    "agents.defaults.subagents = { allowRecursiveSpawn = true, allowAgents = [\"*\"] }\n";

#[test]
fn what_was_chosen_for_a_run_is_not_chosen_again() {
    let home = tempfile::tempdir().expect("a folder for the test");
    let main = |runtime: &str, model: &str| {
        format!(
            "{RECURSIVE}[[agents.list]]\nid = \"main\"\nruntime = \"{runtime}\"\nmodel = \"{model}\"\n\
             [[agents.list]]\nid = \"scout\"\nruntime = \"second\"\nsubagents = {{ model = \"tiny\", thinking = \"high\" }}\n"
        )
    };
    let root = killed(home.path(), &main("first", "large"), "wait for a scout", 2, None);
    let told = resumed(home.path(), &main("second", "small"), root);
    assert_eq!(told, ["main by first, large, none, true", "scout by second, none, none, true"]);
}

#[test]
fn a_tree_whose_runtime_is_gone_says_so_and_stays_as_it_is() {
    let home = tempfile::tempdir().expect("a folder for the test");
    let root = killed(home.path(), RECURSIVE, "ask", 2, None);
    let before = events(home.path(), root);
    world().block_on(async {
        let (told, _heard) = mpsc::unbounded_channel();
        let spawner = spawner(home.path(), RECURSIVE, vec![runtime("second", &told, false)]);
        let error = spawner.resume(root, RootSpec::new("?")).await.expect_err("it cannot go on");
        let expected =
            format!("the run {} was begun with the runtime `first`, which is not here", root.run());
        assert_eq!(error.to_string(), expected);
        assert!(error.hint().is_some_and(|hint| hint.ends_with("runtimes here: second")));
        assert!(!matches!(error, SpawnerError::Over));
    });
    assert_eq!(events(home.path(), root), before, "nothing was decided");
}

#[test]
fn what_a_turn_brought_right_before_a_crash_is_brought_again_and_says_so() {
    let home = tempfile::tempdir().expect("a folder for the test");
    // The parent, its child, and the prompt that nothing shows to have arrived.
    let root = killed(home.path(), RECURSIVE, "ask", 3, None);
    let told = resumed(home.path(), RECURSIVE, root);
    let [prompt, parent] = &told[..] else { panic!("the child is not run again: {told:?}") };
    assert_eq!(parent, "main by first, none, none, true");
    assert!(
        prompt.contains("sent again after an interruption") && prompt.contains("leaf"),
        "{prompt}"
    );
    let deliveries: Vec<(String, bool)> = events(home.path(), root)
        .into_iter()
        .filter_map(|event| match event.kind {
            EventKind::Delivered { delivery, redelivered } => {
                Some((delivery.as_str().to_owned(), redelivered))
            }
            _ => None,
        })
        .collect();
    let [(first, false), (second, true)] = &deliveries[..] else { panic!("{deliveries:?}") };
    assert_eq!(first, second, "under the same id");
}

#[test]
fn a_letter_that_may_not_have_been_read_is_sent_again_and_says_so() {
    let home = tempfile::tempdir().expect("a folder for the test");
    let root = killed(home.path(), RECURSIVE, "read", 2, Some("mind the gap"));
    let told = resumed(home.path(), RECURSIVE, root);
    let [letter, reader] = &told[..] else { panic!("{told:?}") };
    assert_eq!(reader, "main by first, none, none, true");
    assert_eq!(
        letter,
        "Sent again after an interruption; you may have read it before.\n\
         Message from the operator:\nmind the gap"
    );
}
