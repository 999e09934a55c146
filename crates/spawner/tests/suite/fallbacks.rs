//! Runs that go over to another runtime, because their own one fails or its quota is used up.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use offshoot_audit::Audit;
use offshoot_config::{Loader, Source, SourceKind};
use offshoot_model::{Event, Payload, Reason, RunStatus, SpawnRequest, Timestamp};
use offshoot_runtime::{Finished, FnRuntime};
use offshoot_spawner::{Clock, FanOut, Piece, RootSpec, RunSpec, Spawner, SpawnerError, TestClock};
use offshoot_store::{DataFolder, MemoryStore, SqliteStore, Store};
use tokio::sync::mpsc;

/// The runtimes that ran something, in order.
type Ran = Arc<Mutex<Vec<String>>>;

/// A runtime that ends each run in this way.
fn runtime(
    name: &'static str,
    ran: &Ran,
    ends: impl Fn() -> Option<Reason> + Clone + Send + Sync + 'static,
) -> FnRuntime {
    let ran = Arc::clone(ran);
    FnRuntime::new(name, move |launch, _cx| {
        let model = launch.model.as_deref().unwrap_or("none").to_owned();
        ran.lock().expect("no thread panicked").push(format!("{name} {model}"));
        let reason = ends();
        async move {
            match reason {
                Some(reason) => Finished::of(reason),
                None => Finished::text(format!("by {name} with {model}")),
            }
        }
    })
}

fn fault() -> Option<Reason> {
    Some(Reason::RuntimeError { message: "overloaded".into(), retryable: true })
}

/// The default agent, with these settings and these other runtimes.
fn config(limits: &str, fallbacks: &str) -> offshoot_config::Config {
    let text = format!(
        "[[agents.list]]\nid = \"main\"\nmodel = {{ primary = \"large\", fallbacks = [{fallbacks}] }}\n\
         [agents.defaults.subagents]\n{limits}\n"
    );
    let file = Source::new(SourceKind::User, "agents.toml", &*text);
    Loader::new().file(file).load().expect("the configuration was refused")
}

const BOTH: &str =
    "\"medium\", { runtime = \"second\", model = \"small\" }, { runtime = \"third\" }";

struct World {
    spawner: Spawner,
    store: Arc<dyn Store>,
    ran: Ran,
}

impl World {
    fn new(limits: &str, fallbacks: &str, runtimes: impl FnOnce(&Ran) -> Vec<FnRuntime>) -> Self {
        let ran = Ran::default();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let builder =
            Spawner::builder().config(config(limits, fallbacks)).store(Arc::clone(&store));
        let builder = builder.clock(Arc::new(TestClock::new()));
        let builder = runtimes(&ran).into_iter().fold(builder, |builder, it| builder.runtime(it));
        Self { spawner: builder.build().expect("a spawner"), store, ran }
    }

    /// Runs a root, and returns how it ended, its answer, and the number of milliseconds that it took.
    async fn run(&self) -> (RunStatus, Option<Payload>, u64) {
        let mut session = self.spawner.run(RootSpec::new("hello")).await.expect("a root");
        let envelope = session.answer().await.expect("an answer");
        session.ended().await.expect("a whole record");
        (envelope.status, envelope.data, envelope.execution_time_ms)
    }

    fn ran(&self) -> Vec<String> {
        self.ran.lock().expect("no thread panicked").clone()
    }

    /// Returns the texts of the events of this kind. The record is whole.
    fn texts(&self, kind: &str) -> Vec<String> {
        let events: Vec<Event> =
            self.store.all_events().collect::<Result<_, _>>().expect("a record in memory");
        assert_eq!(Audit::of(&events).breaches, []);
        let of_kind = events.iter().filter(|event| event.kind.name() == kind);
        of_kind.map(|event| event.kind.text()).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn when_no_attempt_is_left_the_next_runtime_has_all_of_them_again() {
    let world = World::new("retries = { count = 1 }", BOTH, |ran| {
        vec![
            runtime("first", ran, fault),
            runtime("second", ran, fault),
            runtime("third", ran, || None),
        ]
    });
    let (status, data, _) = world.run().await;
    assert_eq!(status, RunStatus::Completed);
    assert_eq!(data, Some(Payload::text("by third with none")));
    let expected = ["first large", "first large", "second small", "second small", "third none"];
    assert_eq!(world.ran(), expected);
    let expected = ["to the runtime second, with the model small", "to the runtime third"];
    assert_eq!(world.texts("fell_back"), expected);
    assert_eq!(world.texts("resumed").len(), 4);
}

#[tokio::test(start_paused = true)]
async fn without_retries_it_goes_over_at_once_and_where_none_is_left_the_fault_is_the_end() {
    let world = World::new("retries = { count = 0 }", BOTH, |ran| {
        ["first", "second", "third"].map(|name| runtime(name, ran, fault)).into()
    });
    let (status, data, ms) = world.run().await;
    assert_eq!((status, data), (RunStatus::Failed, None));
    assert_eq!(world.ran(), ["first large", "second small", "third none"]);
    assert!(ms < 1_000, "another runtime is asked at once: {ms}");
    world.texts("ended");
}

#[tokio::test(start_paused = true)]
async fn what_no_attempt_can_mend_goes_over_to_no_other() {
    let broken = || Some(Reason::RuntimeError { message: "no such key".into(), retryable: false });
    let code = || Some(Reason::ExitCode { code: 1 });
    let ends: [fn() -> Option<Reason>; 2] = [broken, code];
    for end in ends {
        let world = World::new("", BOTH, |ran| {
            vec![
                runtime("first", ran, end),
                runtime("second", ran, || None),
                runtime("third", ran, || None),
            ]
        });
        assert_eq!(world.run().await.0, RunStatus::Failed);
        assert_eq!(world.ran(), ["first large"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_asked_for_a_child_never_begins_anew_elsewhere() {
    let ran = Ran::default();
    let seen = Arc::clone(&ran);
    let parent = FnRuntime::new("first", move |launch, cx| {
        seen.lock().expect("no thread panicked").push("first".to_owned());
        async move {
            if &*launch.task == "hello" {
                let request = SpawnRequest { task: "below".into(), ..SpawnRequest::default() };
                cx.host.spawn(request).await.expect("a child");
                return Finished::of(fault().expect("a fault"));
            }
            Finished::text("child")
        }
    });
    let others = [runtime("second", &ran, || None), runtime("third", &ran, || None)];
    let builder = Spawner::builder().config(config("retries = { count = 0 }", BOTH));
    let builder = builder.clock(Arc::new(TestClock::new())).runtime(parent);
    let builder = others.into_iter().fold(builder, |builder, it| builder.runtime(it));
    let spawner = builder.build().expect("a spawner");
    let mut session = spawner.run(RootSpec::new("hello")).await.expect("a root");
    let status = session.answer().await.expect("an answer").status;
    assert_eq!(status, RunStatus::Failed);
    session.ended().await.expect("a whole record");
    let ran = ran.lock().expect("no thread panicked");
    assert!(ran.iter().all(|name| name == "first"), "{ran:?}");
}

/// The first piece meets the wall; it and the others go over, and none waits for the reset.
#[tokio::test(start_paused = true)]
async fn at_a_wall_runs_and_those_behind_it_go_over() {
    let clock = Arc::new(TestClock::new());
    let until: Timestamp = clock.now().plus(Duration::from_secs(3_600));
    let wall = move || Some(Reason::Quota { window: Some("five_hour".into()), until: Some(until) });
    for (on_wall, expected) in [
        ("fallback", vec!["first large", "second small", "second small", "second small"]),
        ("fail", vec!["first large"]),
    ] {
        let limits = format!("maxConcurrent = 1\nquota = {{ onWall = \"{on_wall}\" }}");
        let world = World::new(&limits, BOTH, |ran| {
            vec![
                runtime("first", ran, wall),
                runtime("second", ran, || None),
                runtime("third", ran, || None),
            ]
        });
        let session = world.spawner.open(RootSpec::new("pieces")).await.expect("a root");
        let fan = FanOut::new(["one", "two", "three"].map(Piece::task));
        let answer = session.fan_out(fan).await.expect("it was admitted").answer().await;
        let answer = answer.expect("an answer");
        let completed = answer.completed;
        session.conclude(&answer).await.expect("a whole record");
        assert_eq!(world.ran(), expected);
        let (fallen, all) = if on_wall == "fallback" { (3, 3) } else { (0, 0) };
        assert_eq!((world.texts("fell_back").len(), completed), (fallen, all));
        assert_eq!(world.texts("parked").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_runtime_that_is_not_here_is_named_before_anything_runs() {
    for (other, expected) in [
        ("secnd", "there is no runtime `secnd` here"),
        ("exec", "the runtime `exec` of model.fallbacks runs no model"),
    ] {
        let world = World::new("", &format!("{{ runtime = \"{other}\" }}"), |ran| {
            vec![runtime("first", ran, || None), runtime("second", ran, || None)]
        });
        let Err(SpawnerError::Refused(refusal)) = world.spawner.run(RootSpec::new("x")).await
        else {
            panic!("{other} was not refused");
        };
        assert_eq!(refusal.message, expected);
        assert!(world.ran().is_empty());
    }
}

/// The same agent runs a program of the operator's: nothing of its models is about that.
#[tokio::test(start_paused = true)]
async fn no_model_stands_in_for_a_program() {
    let world = World::new("", "{ runtime = \"nowhere\" }", |ran| {
        vec![runtime("first", ran, || None), runtime("exec", ran, || None)]
    });
    let run_spec = RunSpec { runtime: Some("exec".into()), ..RunSpec::in_folder("/") };
    let spec = RootSpec { run_spec, ..RootSpec::new("hello") };
    let mut session = world.spawner.run(spec).await.expect("it is not refused");
    session.answer().await.expect("an answer");
    session.ended().await.expect("a whole record");
    assert_eq!(world.ran(), ["exec large"]);
}

/// The supervisor dies while the second runtime is at work. The next one begins anew there, and not on the runtime that has failed.
#[test]
fn after_a_crash_a_run_is_on_the_runtime_that_took_it_over() {
    let home = tempfile::tempdir().expect("a folder for the test");
    let ran = Ran::default();
    let spawner = |hangs: Option<mpsc::UnboundedSender<()>>| {
        let seen = Arc::clone(&ran);
        let second = FnRuntime::new("second", move |launch, _cx| {
            let (model, hangs) = (launch.model, hangs.clone());
            seen.lock().expect("no thread panicked").push(format!("second {model:?}"));
            async move {
                if let Some(told) = hangs {
                    let _ = told.send(());
                    std::future::pending::<()>().await;
                }
                Finished::text("whole")
            }
        });
        let folder = Arc::new(DataFolder::open(home.path()).expect("a data folder"));
        let store = Arc::new(SqliteStore::open(&folder).expect("a record"));
        let config = config("retries = { count = 0 }", BOTH);
        let builder = Spawner::builder().config(config).store(store).folder(folder);
        let builder = builder.runtime(runtime("first", &ran, fault)).runtime(second);
        builder.runtime(runtime("third", &ran, || None)).build().expect("a spawner")
    };
    let world = || {
        let mut world = tokio::runtime::Builder::new_multi_thread();
        world.worker_threads(1).enable_all().build().expect("a runtime")
    };
    let first = world();
    let (told, mut hanging) = mpsc::unbounded_channel();
    let (root, held) = first.block_on(async {
        let session = spawner(Some(told)).open(RootSpec::new("pieces")).await.expect("a root");
        let fan = session.fan_out(FanOut::new([Piece::task("one")])).await.expect("a piece");
        hanging.recv().await.expect("the second runtime is at work");
        (session.root(), (session, fan))
    });
    drop(first);
    drop(held);
    world().block_on(async {
        let session = spawner(None).resume(root, RootSpec::new("pieces")).await.expect("a tree");
        let fan = session.fan_out(FanOut::new([Piece::task("one")])).await.expect("a piece");
        let answer = fan.answer().await.expect("an answer");
        assert_eq!(answer.completed, 1);
        session.conclude(&answer).await.expect("a whole record");
    });
    let small = "second Some(\"small\")";
    assert_eq!(*ran.lock().expect("no thread panicked"), ["first large", small, small]);
    let folder = DataFolder::open(home.path()).expect("a data folder");
    let store = SqliteStore::open(&folder).expect("a record");
    let events: Vec<Event> = store.events(root, 0).collect::<Result<_, _>>().expect("a record");
    assert_eq!(Audit::of(&events).breaches, []);
}
