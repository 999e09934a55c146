//! Turns after the first, letters into a turn, and what becomes of the process meanwhile.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use offshoot_fake_model_api::{Condition, Reply, Rule};
use offshoot_model::ToolUse;
use offshoot_real_clients::{Clients, install};
use offshoot_runtime::{
    Finished, Launch, LetterBox, Output, Ruling, RunContext, RunEvent, RunHost, Runtime, Stop,
    StopHandle, Turns,
};
use offshoot_runtime_claude::Parking;
use offshoot_test_support::{Listener, Told, Watched};
use serde_json::json;

use crate::Stage;

fn stage(clients: &Clients, parking: Parking, rules: impl IntoIterator<Item = Rule>) -> Stage {
    Stage::with(clients, rules, |options| options.parking = parking)
}

/// A run of this task under that engine, where letters to it are put, and how to stop it.
fn start(
    stage: &Stage,
    engine: &Listener,
    task: &str,
) -> (BoxFuture<'static, Finished>, LetterBox, StopHandle) {
    let host = RunHost::new(engine.clone());
    let letters = LetterBox::default();
    let turns = Turns::new(host.clone(), letters.clone());
    let (handle, stop) = StopHandle::new();
    let run = stage
        .place
        .claude
        .start(stage.place.launch(task), RunContext { turns, ..RunContext::new(host, stop) });
    (run, letters, handle)
}

/// Returns the answers of the turns, each with the number of letters that had been taken.
fn answers(engine: &Listener) -> Vec<String> {
    let told = |(answer, taken): (Option<Arc<str>>, u32)| {
        format!("{}, {taken} letters", answer.as_deref().unwrap_or("nothing"))
    };
    engine.answers().into_iter().map(told).collect()
}

fn at(turn: usize, reply: &str) -> Rule {
    Rule::when(Condition::Turn(turn), Reply::text(reply))
}

fn text(text: &str) -> Output {
    Output::Text(text.into())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_further_turn_goes_on_in_the_same_process() {
    let Some(clients) = install("a_further_turn_goes_on_in_the_same_process") else { return };
    let stage = stage(clients, Parking::Keep, [at(1, "one"), at(2, "two"), at(3, "{{prompt}}")]);
    let engine = Listener::default();
    for prompt in ["results", "/more"] {
        engine.goes_on(prompt);
    }
    let (run, _letters, _handle) = start(&stage, &engine, "x");
    let finished = run.await;
    assert_eq!(finished.output, text(" /more"), "{:?}", finished.reason);
    assert_eq!(answers(&engine), ["one, 0 letters", "two, 0 letters", " /more, 0 letters"]);
    assert_eq!(engine.processes().len(), 1);
    assert_eq!(finished.usage.expect("no usage was reported").total().known(), Some(45));
    assert_eq!(finished.cost.expect("no cost was reported").known_usd.as_micros(), 3 * 140);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_waits_is_ended_and_goes_on_in_another_process() {
    let name = "one_that_waits_is_ended_and_goes_on_in_another_process";
    let Some(clients) = install(name) else { return };
    let stage = stage(clients, Parking::Resume, [at(1, "one"), at(2, "two"), at(3, "three")]);
    let engine = Listener::default();
    let (first, second) = (engine.rules(), engine.rules());
    let mut told = engine.watch();
    let (run, _letters, _handle) = start(&stage, &engine, "x");
    let rule = async {
        for ruling in [first, second] {
            let process = loop {
                let told = told.recv().await.expect("the run is over");
                if let Told::Event(RunEvent::Started(Some(process))) = told {
                    break Watched::new(process.pid);
                }
            };
            while !matches!(told.recv().await.expect("the run is over"), Told::TurnEnded) {}
            let gone = tokio::task::spawn_blocking(move || {
                process.is_gone_within(Duration::from_secs(20))
            });
            assert!(gone.await.expect("looking does not panic"), "it holds nothing while it waits");
            ruling.send(Ruling::Go(Some("go on".to_owned()))).expect("it waits");
        }
    };
    let (finished, ()) = tokio::join!(run, rule);
    assert_eq!(finished.output, text("three"), "{:?}", finished.reason);
    assert_eq!(engine.processes().len(), 3);
    assert_eq!(engine.answers().len(), 3);
    assert_eq!(
        finished.usage.expect("no usage was reported").total().known(),
        Some(45),
        "each call is charged once"
    );
    assert_eq!(finished.cost.expect("no cost was reported").known_usd.as_micros(), 3 * 140);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_waits_is_ended_when_others_wait_for_memory() {
    let Some(clients) = install("one_that_waits_is_ended_when_others_wait_for_memory") else {
        return;
    };
    for parking in [Parking::Auto, Parking::Keep] {
        let stage = stage(clients, parking, [at(1, "one"), at(2, "two")]);
        let engine = Listener::default();
        let ruling = engine.rules();
        let mut told = engine.watch();
        let (run, _letters, _handle) = start(&stage, &engine, "x");
        let rule = async {
            while !matches!(told.recv().await.expect("the run is over"), Told::TurnEnded) {}
            let process = Watched::new(engine.processes()[0]);
            engine.memory_is_short();
            if parking == Parking::Auto {
                let gone = move || process.is_gone_within(Duration::from_secs(20));
                let gone = tokio::task::spawn_blocking(gone).await;
                assert!(gone.expect("looking does not panic"), "others need its memory");
            }
            ruling.send(Ruling::Go(Some("go on".to_owned()))).expect("it waits");
        };
        let (finished, ()) = tokio::join!(run, rule);
        assert_eq!(finished.output, text("two"), "{:?}", finished.reason);
        let processes = if parking == Parking::Auto { 2 } else { 1 };
        assert_eq!(engine.processes().len(), processes, "{parking:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_goes_into_the_turn_that_is_under_way() {
    let Some(clients) = install("a_letter_goes_into_the_turn_that_is_under_way") else { return };
    // The model uses one tool after the other until the letter has come.
    let rules = [
        Rule::when(Condition::System("LETTER".into()), Reply::text("read in turn {{turn}}")),
        Rule::when(Condition::Turn(1), Reply::call("Bash", json!({"command": "true"}))),
    ];
    let stage = stage(clients, Parking::Keep, rules);
    let engine = Listener::default();
    let mut told = engine.watch();
    let (run, letters, _handle) = start(&stage, &engine, "x");
    let write = async {
        let input = ToolUse::new("Bash", &json!({"command": "true"})).input;
        let uses = |told| {
            let Told::Event(RunEvent::ToolUsed(used)) = told else { return false };
            assert_eq!(used.input, input);
            &*used.name == "Bash"
        };
        while !uses(told.recv().await.expect("the run is over")) {}
        letters.put("LETTER".into());
    };
    let (finished, ()) = tokio::join!(run, write);
    assert_eq!(finished.output, text("read in turn 1"), "{:?}", finished.reason);
    assert_eq!(answers(&engine), ["read in turn 1, 1 letters"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_that_comes_too_late_for_a_turn_gets_one_of_its_own() {
    let name = "a_letter_that_comes_too_late_for_a_turn_gets_one_of_its_own";
    let Some(clients) = install(name) else { return };
    let slow = Reply::Slow { text: "one two three four five six".into(), pause_ms: 300 };
    let letter = Rule::when(Condition::Turn(2), Reply::text("to {{prompt}}"));
    let stage = stage(clients, Parking::Keep, [Rule::when(Condition::Turn(1), slow), letter]);
    let engine = Listener::default();
    let mut told = engine.watch();
    let (run, letters, _handle) = start(&stage, &engine, "x");
    let write = async {
        let speaks = |told| matches!(told, Told::Event(RunEvent::Used { .. }));
        while !speaks(told.recv().await.expect("the run is over")) {}
        letters.put("LETTER".into());
    };
    let (finished, ()) = tokio::join!(run, write);
    assert_eq!(finished.output, text("to LETTER"), "{:?}", finished.reason);
    assert_eq!(answers(&engine), ["to LETTER, 1 letters"], "one end, when all is answered");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_waits_can_be_stopped() {
    let Some(clients) = install("one_that_waits_can_be_stopped") else { return };
    for parking in [Parking::Keep, Parking::Resume] {
        let stage = stage(clients, parking, [at(1, "one")]);
        let engine = Listener::default();
        let _never = engine.rules();
        let mut told = engine.watch();
        let (run, _letters, handle) = start(&stage, &engine, "x");
        let stop = async {
            while !matches!(told.recv().await.expect("the run is over"), Told::TurnEnded) {}
            handle.stop(Stop::Soft { grace: Duration::from_secs(5) });
        };
        let (finished, ()) = tokio::join!(run, stop);
        assert_eq!(finished.reason.code(), "cancelled", "{parking:?}");
        assert!(engine.processes().iter().all(|pid| Watched::new(*pid).is_gone()), "{parking:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_run_goes_on_where_it_was() {
    let Some(clients) = install("an_interrupted_run_goes_on_where_it_was") else { return };
    let rules = [
        Rule::when(Condition::Prompt("You were interrupted".into()), Reply::text("on in {{turn}}")),
        Rule::when(Condition::Step(1), Reply::call("Bash", json!({"command": "true"}))),
        Rule::when(Condition::Step(2), Reply::Hang),
    ];
    let stage = stage(clients, Parking::Keep, rules);
    let run = |launch: Launch, engine: &Listener| {
        let host = RunHost::new(engine.clone());
        let turns = Turns::new(host.clone(), LetterBox::default());
        let (handle, stop) = StopHandle::new();
        (
            stage.place.claude.start(launch, RunContext { turns, ..RunContext::new(host, stop) }),
            handle,
        )
    };
    let launch = stage.place.launch("count");
    let (killed, handle) = run(launch.clone(), &Listener::default());
    let kill = async {
        // By then its transcript is written, with which it goes on.
        stage.api.asked_for_step(2).await;
        handle.stop(Stop::Firm);
    };
    let (killed, ()) = tokio::join!(killed, kill);
    assert_eq!(killed.reason.code(), "cancelled");
    let (again, _handle) = run(Launch { continues: true, ..launch }, &Listener::default());
    let finished = again.await;
    assert_eq!(finished.output, text("on in 2"), "{:?}", finished.reason);
    assert_eq!(
        finished.usage.expect("no usage was reported").total().known(),
        Some(15),
        "what went before is charged already"
    );
    assert_eq!(finished.cost.expect("no cost was reported").known_usd.as_micros(), 140);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_was_interrupted_before_it_began_begins() {
    let Some(clients) = install("one_that_was_interrupted_before_it_began_begins") else { return };
    let stage = stage(clients, Parking::Keep, [at(1, "you said {{prompt}}")]);
    let mut launch = stage.place.launch("count");
    launch.continues = true;
    let turns = Turns::new(RunHost::new(Listener::default()), LetterBox::default());
    let (_handle, stop) = StopHandle::new();
    let cx = RunContext { turns, ..RunContext::new(RunHost::new(Listener::default()), stop) };
    let finished = stage.place.claude.start(launch, cx).await;
    assert_eq!(finished.output, text("you said count"), "{:?}", finished.reason);
    assert_eq!(finished.usage.expect("no usage was reported").total().known(), Some(15));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_fails_is_the_last() {
    let Some(clients) = install("a_turn_that_fails_is_the_last") else { return };
    let broken = Rule::when(Condition::Turn(2), Reply::invalid("no such thing"));
    let stage = stage(clients, Parking::Resume, [at(1, "one"), broken]);
    let engine = Listener::default();
    for _ in 0..2 {
        engine.goes_on("go on");
    }
    let (run, _letters, _handle) = start(&stage, &engine, "x");
    let finished = run.await;
    assert_eq!(finished.reason.code(), "runtime_error", "{finished:?}");
    let expected = ["one, 0 letters"];
    assert_eq!(answers(&engine), expected, "the engine is not asked after a failure");
}
