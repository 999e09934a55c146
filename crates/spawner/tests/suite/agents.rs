//! Running agents that are reached from outside, by the run that asks.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use offshoot_config::Loader;
use offshoot_model::{
    AgentId, AgentSummary, ContextEntry, Event, EventKind, Payload, ProcessIdentity, RefusalCode,
    RootId, RunId, RunStatus, SpawnRequest, ValueKind,
};
use offshoot_runtime::{Finished, FnRuntime, Pass, WaitFor, WaitMode};
use offshoot_spawner::{ChildRequest, LiveEvent, RootSpec, Session, Spawner, TicketIssuer};
use offshoot_store::NewValue;
use tokio::sync::mpsc;

use crate::asking::ask;

/// Notes who was let in, started and ended.
#[derive(Default)]
struct Notes(Mutex<Vec<(&'static str, RunId)>>);

impl Notes {
    fn note(&self, what: &'static str, run: RunId) {
        self.0.lock().expect("no holder panics").push((what, run));
    }
}

impl TicketIssuer for Notes {
    fn issue(&self, _root: RootId, run: RunId) -> Option<Pass> {
        self.note("admitted", run);
        Some(Pass { socket: Arc::new("/door".into()), ticket: run.to_string().into() })
    }

    fn started(&self, run: RunId, _process: Option<ProcessIdentity>) {
        self.note("started", run);
    }

    fn ended(&self, run: RunId) -> BoxFuture<'static, ()> {
        self.note("ended", run);
        Box::pin(async {})
    }
}

/// A tree whose agents tell their pass, and end when they are told to or at once.
async fn tree(
    notes: &Arc<Notes>,
    settings: &[(&str, &str)],
) -> (Session, mpsc::UnboundedReceiver<Pass>) {
    let (told, passes) = mpsc::unbounded_channel();
    let runtime = FnRuntime::new("held", move |launch, _cx| {
        told.send(launch.pass.clone().expect("the ticket issuer lets every run in")).ok();
        async move {
            if &*launch.task == "hold" {
                std::future::pending::<()>().await;
            }
            Finished::text(&*launch.task)
        }
    });
    let flag = |loader: Loader, (key, value): &(&str, &str)| {
        loader.flag(format!("agents.defaults.subagents.{key}"), *value, "test")
    };
    let recursive = [("allowRecursiveSpawn", "true")];
    let settings = settings.iter().chain(&recursive);
    let config = settings.fold(Loader::new(), flag).load().expect("settings");
    let spawner = Spawner::builder()
        .config(config)
        .ticket_issuer(Arc::<Notes>::clone(notes))
        .runtime(runtime)
        .build()
        .expect("a spawner");
    (spawner.open(RootSpec::new("root")).await.expect("a root"), passes)
}

fn run_of(pass: Option<Pass>) -> RunId {
    pass.expect("it has started").ticket.parse().expect("the ticket of this test is the run")
}

#[tokio::test(start_paused = true)]
async fn who_asks_is_an_argument_and_what_it_may_is_not() {
    let notes = Arc::new(Notes::default());
    let (session, mut passes) = tree(&notes, &[]).await;
    let agents = session.agents();
    session.spawn(ask("hold")).await.expect("a piece");
    let parent = run_of(passes.recv().await);
    session.spawn(ask("hold")).await.expect("another piece");
    let other = run_of(passes.recv().await);

    let child = agents.spawn(parent, ask("answer")).await.expect("a child");
    assert!(child.key.as_str().starts_with("agent:main:subagent:"), "{}", child.key);
    assert_eq!(child.key.depth(), 2);
    let answer = agents.wait(parent, WaitFor::default()).await.expect("an answer");
    assert_eq!(answer.ended[0].data, Some(Payload::text("answer")));
    assert_eq!(agents.subtree(parent).expect("a record"), [child.run]);

    let refusal = agents.cancel(other, child.run, false).await.expect_err("it is not below");
    assert_eq!(refusal.code, RefusalCode::InvalidRequest);
    let unknown = RunId::from_bytes([7; 16]);
    let refusal = agents.session(unknown).await.expect_err("no tree has it");
    assert_eq!(refusal.code, RefusalCode::CallerEnded);

    let held = agents.spawn(parent, ask("hold")).await.expect("a child");
    agents.cancel(parent, held.run, false).await.expect("it is below");
    let answer = agents.wait(parent, WaitFor { runs: vec![held.run], ..WaitFor::default() });
    assert_eq!(answer.await.expect("an answer").ended[0].status, RunStatus::Cancelled);

    drop(session);
    let noted = |what| notes.0.lock().expect("notes").contains(&(what, child.run));
    assert!(noted("admitted") && noted("started") && noted("ended"));
}

#[tokio::test(start_paused = true)]
async fn children_that_are_asked_for_at_once_share_what_is_left() {
    let notes = Arc::new(Notes::default());
    let settings = [("budget.tokens", "1000"), ("budget.share", "1"), ("maxSpawns", "2")];
    let (session, mut passes) = tree(&notes, &settings).await;
    let agents = session.agents();
    session.spawn(ask("hold")).await.expect("a piece");
    let parent = run_of(passes.recv().await);
    assert_eq!(
        agents.spawn_allowance(parent).await.expect("the tree is over").budget.tokens,
        Some(1000)
    );

    let children = ["hold", "", "hold", "hold"].map(|task| ChildRequest::from(ask(task)));
    let answers = agents.spawn_many(parent, children.into()).await.expect("the tree is over");
    let codes: Vec<_> =
        answers.iter().map(|answer| answer.as_ref().err().map(|no| no.code)).collect();
    let (invalid, spent) = (RefusalCode::InvalidRequest, RefusalCode::SpawnLimit);
    assert_eq!(codes, [None, Some(invalid), None, Some(spent)], "a refusal undoes nothing");
    let granted = answers.iter().flatten().map(|child| {
        let admitted =
            agents.store().admitted(agents.root(), child.run).expect("a record").expect("a run");
        admitted.grant.budget.tokens.expect("it has a budget")
    });
    // A fifth is kept. What is wrong in itself gets no part; what only the others left no room for does.
    assert_eq!(granted.collect::<Vec<_>>(), [266, 266]);
    let allowance = agents.spawn_allowance(parent).await.expect("the tree is over");
    assert_eq!(allowance.budget.tokens, Some(468));
    let own = AgentSummary { id: AgentId::main(), description: None, why: None };
    assert_eq!(allowance.agents, [own]);
    drop(session);
}

#[tokio::test(start_paused = true)]
async fn what_a_session_was_given_is_its_own_while_it_runs() {
    let notes = Arc::new(Notes::default());
    let (session, mut passes) = tree(&notes, &[]).await;
    let agents = session.agents();
    let value = NewValue::bytes(ValueKind::Text, *b"x");
    let value = agents.store().put(value).await.expect("the system has no room for it");
    let context = vec![ContextEntry { name: "plan".into(), value }];
    session.spawn(SpawnRequest { context: context.clone(), ..ask("hold") }).await.expect("a piece");
    let run = run_of(passes.recv().await);
    assert_eq!(*agents.context(run), context[..]);
    let mut seen = agents.live_events();
    session.cancel(run, false);
    while !matches!(
        seen.next().await.expect("the tree is over"),
        LiveEvent::Event(event) if matches!(event.kind, EventKind::Ended(_))
    ) {}
    assert!(agents.context(run).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_wait_whose_caller_has_gone_delivers_nothing() {
    let notes = Arc::new(Notes::default());
    let (session, mut passes) = tree(&notes, &[]).await;
    let agents = session.agents();
    session.spawn(ask("hold")).await.expect("a piece");
    let parent = run_of(passes.recv().await);
    let delivered = || {
        let events = agents.store().events(session.root(), 0);
        let kinds = events.map(|event| event.expect("a whole record").kind);
        kinds.filter(|kind| matches!(kind, EventKind::Delivered { .. })).count()
    };
    agents.spawn(parent, ask("hold")).await.expect("a child");
    let mut seen = agents.live_events();
    let done = agents.spawn(parent, ask("answer")).await.expect("a child").run;
    let mut wait = Box::pin(agents.wait(parent, WaitFor::default()));
    let happens = |event: &Event, run: RunId, kind: fn(&EventKind) -> bool| {
        event.run == run && kind(&event.kind)
    };
    let (mut waits, mut ended) = (false, false);
    while !(waits && ended) {
        tokio::select! {
            biased;
            answer = &mut wait => panic!("one of them never ends: {answer:?}"),
            sight = seen.next() => {
                let Some(LiveEvent::Event(event)) = sight else { panic!("the tree lives") };
                waits |= happens(&event, parent, |kind| matches!(kind, EventKind::Waiting));
                ended |= happens(&event, done, |kind| matches!(kind, EventKind::Ended(_)));
            }
        }
    }
    drop(wait);
    while !matches!(
        seen.next().await,
        Some(LiveEvent::Event(event)) if happens(&event, parent, |kind| *kind == EventKind::Returned)
    ) {}
    agents.session(parent).await.expect("it lives, and what came of the drop is on record");
    assert_eq!(delivered(), 0, "no parent was told");
    let any = WaitFor { mode: WaitMode::Any, ..WaitFor::default() };
    let answer = agents.wait(parent, any).await.expect("the tree is over");
    assert_eq!(answer.ended[0].data, Some(Payload::text("answer")));
    assert_eq!(delivered(), 1, "the next wait brings it");
    drop(session);
}
