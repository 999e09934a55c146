//! Tests of the usage of a run, as its end tells it: exactly, as a lower bound, or not at all.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use offshoot_audit::Audit;
use offshoot_config::Loader;
use offshoot_model::{Cost, Envelope, Event, MicroUsd, Reason, TokenCount, Usage};
use offshoot_runtime::{
    Abilities, CostKnowledge, Finished, FnRuntime, Launch, RunContext, Runtime,
};
use offshoot_spawner::{RootSpec, Spawner};
use offshoot_store::{MemoryStore, Store};

/// A closure that costs something.
struct Paid(FnRuntime);

impl Runtime for Paid {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn abilities(&self) -> Abilities {
        Abilities { cost: CostKnowledge::Reported, ..self.0.abilities() }
    }

    fn start(&self, launch: Launch, cx: RunContext) -> BoxFuture<'static, Finished> {
        self.0.start(launch, cx)
    }
}

fn tokens(count: u64) -> Usage {
    Usage { input: TokenCount::Known(count), ..Usage::default() }
}

fn dollar() -> Cost {
    Cost::known(MicroUsd::from_micros(1_000_000))
}

/// Does what its task says, in words.
async fn act(launch: Launch, cx: RunContext) -> Finished {
    let fault = Reason::RuntimeError { message: "it broke".into(), retryable: false };
    for word in launch.task.split(' ') {
        match word {
            "tells" => cx.host.used(tokens(10_000), dollar()),
            "much" => cx.host.used(tokens(u64::MAX), dollar()),
            "panics" => panic!("as it was told"),
            "errs" => return Finished::of(fault),
            "cannot" => return Finished::of(Reason::CannotStart { message: "no".into() }),
            "zero" => {
                let (usage, cost) = (Some(Usage::default()), Some(Cost::NONE));
                return Finished { usage, cost, ..Finished::of(fault) };
            }
            "hangs" => std::future::pending().await,
            _ => {}
        }
    }
    Finished::text("done")
}

/// One run of this task with a budget of 100,000 tokens, which is cancelled where it hangs.
async fn run(task: &str, is_paid: bool) -> Envelope {
    let acts = FnRuntime::new("acts", act);
    let config = Loader::new()
        .flag("agents.defaults.subagents.budget.tokens", "100000", "test")
        .flag("agents.defaults.subagents.graceSeconds", "0", "test");
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let builder = Spawner::builder()
        .config(config.load().expect("the configuration was refused"))
        .store(Arc::clone(&store));
    let builder = match is_paid {
        true => builder.runtime(Paid(acts)),
        false => builder.runtime(acts),
    };
    let spawner = builder.build().expect("a spawner");
    let mut session = spawner.run(RootSpec::new(task)).await.expect("a root");
    if task.ends_with("hangs") {
        let agents = session.agents();
        agents.cancel_as_operator(session.root().run(), false).expect("the tree is over");
    }
    let envelope = session.answer().await.expect("an answer");
    session.ended().await.expect("a whole record");
    let events: Vec<Event> = store.all_events().collect::<Result<_, _>>().expect("a record");
    assert_eq!(Audit::of(&events).breaches, [], "{task}");
    envelope
}

#[tokio::test]
async fn what_was_told_last_holds_whatever_the_end() {
    let (known, at_least) = (TokenCount::Known(10_000), TokenCount::AtLeast(10_000));
    for (task, expected, unknown_runs) in [
        ("tells", known, 0),
        ("tells panics", at_least, 1),
        ("tells errs", at_least, 1),
        ("tells zero", at_least, 1),
        ("tells hangs", at_least, 1),
        ("is silent", TokenCount::Unknown, 1),
        ("panics", TokenCount::Unknown, 1),
        ("hangs", TokenCount::Unknown, 1),
        ("zero", TokenCount::Known(0), 0),
        ("cannot", TokenCount::Known(0), 0),
        ("much", TokenCount::Unknown, 0),
    ] {
        let envelope = run(task, true).await;
        assert_eq!(envelope.usage.total(), expected, "{task}");
        assert_eq!(envelope.cost.unknown_runs, unknown_runs, "{task}");
        let told = task.starts_with("tells") || task == "much";
        assert_eq!(envelope.cost.known_usd, if told { dollar() } else { Cost::NONE }.known_usd);
    }
    for (task, expected) in [("panics", TokenCount::Known(0)), ("tells panics", at_least)] {
        assert_eq!(run(task, false).await.usage.total(), expected, "it costs nothing: {task}");
    }
}
