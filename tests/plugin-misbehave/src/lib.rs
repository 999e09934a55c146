//! A plugin for tests: it does what its task says, and none of it is what a plugin should do.
//!
//! | task | what it does |
//! |---|---|
//! | `panic in start`, `… in run`, `… in task` | panics there |
//! | `flood N` | tells N lines, then answers |
//! | `late` | answers, and goes on telling afterwards |
//! | `twice` | says twice that it has started |
//! | `silent` | never says that it has started |
//! | `interrupted`, `client gone`, `deadline`, `timeout`, `idle`, `pieces` | says that it ended so, which it cannot know |
//! | `no file` | answers with a file that is not there |
//! | `deaf` | never ends, even when asked to |
//! | `block` | never ends, and blocks its thread |
//! | `abort`, `exit`, `overflow` | ends the process |
//!
//! The runtime `breaks` takes turns, and breaks one rule of the contract, which its task names:
//!
//! | task | what it does |
//! |---|---|
//! | `silent` | never says that it has started |
//! | `early word` | says something before it says that it has started |
//! | `shrinks` | says that it used less than it said before |
//! | `one turn`, `no letters` | does not go on when it is told to; reads no letters |
//! | `more turns` | goes on when it is told to end |
//! | `stays` | answers, and keeps its host |
//! | `lies firmly` | goes on until it is stopped firmly, and says then that it completed |
//! | `asks` | asks for a child and waits for it, as it should |
//! | `asks, and fails` | the same; fails where the child is refused |
//! | `asks, and lies` | the same; says that it completed if it is stopped while it waits |
//!
//! The runtime `differs` does the same, and has other abilities than it states. It takes no settings.
//!
//! The runtime `greedy` asks for two children that are as greedy, and answers with what came of both.
//!
//! With `{"hook":"abort"}` as its settings, `misbehave` sees to it that the next panic ends the process.
//!
//! The merge function `misbehave` panics where its parameter says: `"begin"`, `"push"`, `"finish"`. With `"block"` it takes
//! its first result and never comes back.

use std::future::pending;
use std::sync::Arc;
use std::thread;

use offshoot_plugin_sdk::model::{
    CancelledBy, Cost, Payload, SpawnRequest, TokenCount, Usage, ValueKind,
};
use offshoot_plugin_sdk::{
    Abilities, BoxFuture, CostKnowledge, Error, Finished, FnRuntime, FutureExt, JsonText, Launch,
    MergeFn, MergeInput, MergeSetup, Output, Plugin, Reason, RunContext, RunHost, Runtime, Stop,
    StopSignal, WaitFor, export_plugin, json_of,
};

/// What it offers. The runtime `stillborn` panics while it is made.
pub fn plugin() -> Plugin {
    Plugin::new("does what no plugin should")
        .named("misbehave")
        .runtime("misbehave", "does what its task says", ABILITIES, |setup| {
            if setup.config.as_json().contains("abort") {
                std::panic::set_hook(Box::new(|_| std::process::abort()));
            }
            Ok(Misbehave)
        })
        .runtime("breaks", "breaks the rule that its task names", BREAKS, |_| Ok(Breaks))
        .runtime("differs", "has other abilities than it states", ABILITIES, |_| Ok(Breaks))
        .settings_schema(
            JsonText::parse(r#"{"maxProperties":0}"#.to_owned()).expect("the text is not JSON"),
        )
        .runtime("greedy", "asks for children without end", ABILITIES, |_| {
            Ok(FnRuntime::new("greedy", |launch, cx| greedy(launch, cx.host)))
        })
        .runtime("stillborn", "panics", ABILITIES, |_| -> Result<Misbehave, Error> {
            panic!("stillborn")
        })
        .merge::<MisbehavingMerge>("misbehave", "panics where it is told to")
}

export_plugin!(plugin());

const ABILITIES: Abilities =
    Abilities { cost: CostKnowledge::None, turns: false, resumes: false, enforces: None };

const BREAKS: Abilities = Abilities { cost: CostKnowledge::Unknown, turns: true, ..ABILITIES };

struct Breaks;

impl Runtime for Breaks {
    fn name(&self) -> &str {
        "breaks"
    }

    fn abilities(&self) -> Abilities {
        BREAKS
    }

    fn start(&self, launch: Launch, cx: RunContext) -> BoxFuture<'static, Finished> {
        breaks(launch.task, cx).boxed()
    }
}

async fn breaks(task: Arc<str>, cx: RunContext) -> Finished {
    let RunContext { host, mut stop, mut turns, .. } = cx;
    if &*task == "early word" {
        host.progress("here I come");
    }
    if &*task != "silent" {
        host.started(None);
    }
    match &*task {
        "lies firmly" => {
            if let Stop::Soft { .. } = stop.heard().await {
                return Finished::of(Reason::Cancelled { by: CancelledBy::Operator });
            }
            return Finished::text("done");
        }
        "shrinks" => [2, 1].into_iter().for_each(|tokens| {
            let input = TokenCount::Known(tokens);
            host.used(Usage { input, ..Usage::default() }, Cost::NONE);
        }),
        "more turns" => drop(turns.ended(None).await),
        "asks" | "asks, and fails" | "asks, and lies" => return asks(&task, &host, stop).await,
        _ => {}
    }
    turns.ended(None).await;
    match &*task {
        "one turn" => {}
        "no letters" => drop(host.turn_ended(None, 0).await),
        _ => drop(turns.ended(None).await),
    }
    if &*task == "stays" {
        spawn(async move {
            pending::<()>().await;
            drop(host);
        });
    }
    Finished::text(task)
}

async fn asks(task: &str, host: &RunHost, mut stop: StopSignal) -> Finished {
    let request = SpawnRequest { task: "a part".into(), ..SpawnRequest::default() };
    if let Err(refusal) = host.spawn(request).await {
        return match task {
            "asks, and fails" => {
                let message = refusal.message;
                Finished::of(Reason::RuntimeError { message, retryable: false })
            }
            _ => Finished::text(refusal.message),
        };
    }
    offshoot_plugin_sdk::tokio::select! {
        _ = host.wait(WaitFor::default()) => Finished::text("it has ended"),
        _ = stop.heard() => match task {
            "asks, and lies" => Finished::text("done"),
            _ => Finished::of(Reason::Cancelled { by: CancelledBy::Operator }),
        },
    }
}

struct Misbehave;

impl Runtime for Misbehave {
    fn name(&self) -> &str {
        "misbehave"
    }

    fn abilities(&self) -> Abilities {
        ABILITIES
    }

    fn start(&self, launch: Launch, cx: RunContext) -> BoxFuture<'static, Finished> {
        assert_ne!(&*launch.task, "panic in start", "as it was told");
        run(launch, cx.host).boxed()
    }
}

async fn run(launch: Launch, host: RunHost) -> Finished {
    let (deed, number) = match launch.task.split_once(' ') {
        Some(("flood", number)) => ("flood", number.parse().expect("a number of lines")),
        _ => (&*launch.task, 0),
    };
    if deed != "silent" {
        host.started(None);
    }
    match deed {
        "panic in run" => panic!("as it was told"),
        "panic in task" => {
            let task = spawn(async { panic!("as it was told") });
            return Finished::text(task.await.expect_err("it panicked").to_string());
        }
        "flood" => (0..number).for_each(|line: u64| host.progress(line.to_string())),
        "late" => {
            spawn(async move {
                loop {
                    host.progress("still here");
                    offshoot_plugin_sdk::tokio::task::yield_now().await;
                }
            });
        }
        "twice" => host.started(None),
        "no file" => {
            let path = launch.spool_folder.join("never written");
            let output = Output::File { path, kind: ValueKind::Text };
            return Finished { output, ..Finished::of(Reason::Completed { exit_code: None }) };
        }
        "interrupted" => return Finished::of(Reason::Interrupted),
        "client gone" => return Finished::of(Reason::ClientGone),
        "deadline" => return Finished::of(Reason::Deadline),
        "timeout" => return Finished::of(Reason::Timeout { seconds: 1 }),
        "idle" => return Finished::of(Reason::Idle { seconds: 1 }),
        "pieces" => return Finished::of(Reason::PiecesFailed { failed: 1, total: 2 }),
        "deaf" => pending().await,
        "block" => loop {
            thread::park();
        },
        "abort" => std::process::abort(),
        "exit" => exit(),
        "overflow" => {
            overflow(0);
        }
        _ => {}
    }
    Finished::text(deed)
}

async fn greedy(launch: Launch, host: RunHost) -> Finished {
    let mut said = Vec::new();
    for _ in 0..2 {
        let request = SpawnRequest { task: launch.task.clone(), ..SpawnRequest::default() };
        match host.spawn(request).await {
            Err(refusal) => said.push(refusal.code.to_string()),
            Ok(child) => {
                let wait = WaitFor { runs: vec![child], ..WaitFor::default() };
                let waited = host.wait(wait).await.map(|mut answer| answer.ended.pop());
                said.push(match waited.ok().flatten().and_then(|envelope| envelope.data) {
                    Some(Payload::Text(text)) => text.to_string(),
                    other => format!("{other:?}"),
                });
            }
        }
    }
    Finished::text(format!("[{}]", said.join(" ")))
}

#[expect(clippy::disallowed_methods, reason = "a plugin that starts tasks and leaves them")]
fn spawn<T: Send + 'static>(
    task: impl Future<Output = T> + Send + 'static,
) -> offshoot_plugin_sdk::tokio::task::JoinHandle<T> {
    offshoot_plugin_sdk::tokio::spawn(task)
}

#[expect(clippy::disallowed_methods, reason = "a plugin that ends its host")]
fn exit() -> ! {
    std::process::exit(3)
}

/// Uses up the stack, which no guard can catch.
fn overflow(depth: u64) -> u64 {
    let room = std::hint::black_box([depth; 1024]);
    if depth == u64::MAX { 0 } else { overflow(depth + 1) + room[0] }
}

/// Panics where its parameter says.
struct MisbehavingMerge(String);

impl MergeFn for MisbehavingMerge {
    fn begin(setup: MergeSetup) -> Result<Self, Error> {
        let place: String = setup.params.parse()?;
        assert_ne!(place, "begin", "as it was told");
        Ok(Self(place))
    }

    fn push(&mut self, _index: u32, _result: MergeInput) -> Result<Option<JsonText>, Error> {
        assert_ne!(self.0, "push", "as it was told");
        if self.0 == "block" {
            loop {
                thread::park();
            }
        }
        Ok(None)
    }

    async fn finish(self) -> Result<JsonText, Error> {
        assert_ne!(self.0, "finish", "as it was told");
        json_of(&self.0)
    }
}
