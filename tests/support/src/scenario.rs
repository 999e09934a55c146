//! One scenario in which everything happens: every event, every status, and text that is not to be trusted.
//!
//! ```text
//!  main (a map over a file; its root runs nothing itself)
//!  ├─ 0 README.md        completed, text
//!  ├─ 1 naïve/日本.txt    completed, JSON; had two children
//!  │    ├─ scout           completed, tokens and a reported cost; used more than reserved
//!  │    └─ scout           cancelled with an escape sequence in its label
//!  ├─ 2 big.log           completed, a result that stays in the store
//!  ├─ 3 seven             failed, exit code 7 with diagnostics that move a cursor
//!  ├─ 4 slow              timed out after a request to stop
//!  ├─ 5 gone              lost with its supervisor
//!  └─ 6 models            completed, tokens and cost unknown
//!  scout (a run that is still going)
//!  └─ scout               queued
//!  scout (a run in turns, whose supervisor dies in the middle)
//!  ├─ scout               completed; its result begins a further turn
//!  ├─ scout               interrupted and run again; its result begins the last turn
//!  └─ scout               completed after its parent was over: its result was not delivered
//!  main (a map that was over, and with which the operator goes on)
//!  ├─ 0 first             completed
//!  ├─ 1 second            failed
//!  └─ 1 second            completed instead of it
//! ```
//!
//! Ids and moments are fixed, so that every picture of it can be compared to the letter.

mod many;
mod script;

use std::collections::BTreeMap;

use offshoot_model::{
    Account, AgentId, BudgetGrant, CancelledBy, ContentHash, Cost, Ending, Event, EventKind,
    GovernedBy, JsonText, KeeperFault, MemoryShortage, MergeSummary, MicroUsd, Payload,
    PiecesAgain, Reason, Refusal, RefusalCode, RequestEnding, RootId, RootReopened, RunId,
    Timestamp, TokenCount, ToolUse, Usage, ValueKind, VariableRef,
};

pub use self::many::{many, two_maps};
use self::script::Script;

/// 2025-08-01T12:00:00Z, in microseconds.
const NOON: u64 = 1_754_049_600_000_000;

/// All of it, in the order in which it happened.
pub fn everything() -> Vec<Event> {
    let mut script = Script::default();
    map(&mut script);
    still_going(&mut script);
    in_turns(&mut script);
    goes_on(&mut script);
    script.events
}

/// The same, each of the four trees by itself.
pub fn trees() -> [Vec<Event>; 4] {
    let events = everything();
    let mut roots: Vec<RootId> = events.iter().map(|event| event.root).collect();
    roots.dedup();
    let of = |root| events.iter().filter(|event| event.root == root).cloned().collect();
    <[RootId; 4]>::try_from(roots).expect("there are four").map(of)
}

/// The id of the n-th run of the scenario, in the order of admission.
pub fn run(number: u8) -> RunId {
    numbered(number.into())
}

/// The same of many.
fn numbered(number: u32) -> RunId {
    let mut bytes = *b"\x01\x98\x5e\x3a\x00\x00\x70\x00\x80\x00\x00\x00\x00\x00\x00\x00";
    bytes[..4].copy_from_slice(&(0x0198_5e3a + number).to_be_bytes());
    bytes[12..].copy_from_slice(&number.to_be_bytes());
    RunId::from_bytes(bytes)
}

/// The bytes of the one result that stays in the store.
pub fn stored_result() -> Vec<u8> {
    "a line of a large result\n".repeat(1000).into_bytes()
}

fn map(script: &mut Script) {
    let root = script.root("main", "everything", None);
    script.after(1).say(root, EventKind::Starting);
    script.say(root, EventKind::Started { process: None });
    script.say(root, EventKind::Waiting);
    let names = ["README.md", "naïve/日本.txt", "big.log", "seven", "slow", "gone", "models"];
    let mut pieces = names.map(|name| script.piece(root, name)).into_iter();
    let mut next = || pieces.next().expect("as many pieces as names");

    let readme = next();
    script.after(2).start(readme);
    let [available, reserved, kept] = [2_000_000_000, 600_000_000, 1_600_000_000];
    let shortage = MemoryShortage { available, reserved, kept, stalled: None };
    script.say(root, EventKind::MemoryShort(shortage));
    script.say(root, EventKind::MemoryEnough);
    script.say(root, EventKind::PoolShort { run: root });
    script.say(root, EventKind::PoolEnough { run: root });
    script.say(root, EventKind::HostBound { max_concurrent: 12 });
    script.say(root, EventKind::HostFull);
    script.say(root, EventKind::HostFree);
    script.say(
        root,
        EventKind::AccountBound { account: Account::of_runtime("claude"), max_concurrent: 4 },
    );
    script.say(root, EventKind::AccountFull { account: Account::of_runtime("claude") });
    script.say(root, EventKind::AccountFree { account: Account::of_runtime("claude") });
    script.say(root, EventKind::Alive);
    let output = Payload::text("12 lines");
    script.after(310).end(readme, Ending { output: Some(output), ..Ending::of(COMPLETED) });
    script.deliver(readme, false);

    delegating(script, next());

    let big = next();
    script.after(5).start(big);
    let bytes = stored_result();
    let reference = VariableRef {
        hash: ContentHash::of(&bytes),
        size: bytes.len() as u64,
        kind: ValueKind::Text,
    };
    script.after(900).end(big, Ending::completed(Payload::Stored(reference)));
    script.deliver(big, true);

    let seven = next();
    script.after(5).start(seven);
    let failure = Ending {
        output: Some(Payload::text("half an answer")),
        diagnostics: Some("\u{1b}[2J\u{1b}[1;1Hnothing happened\r\nreally\u{202e}".to_owned()),
        ..Ending::of(Reason::ExitCode { code: 7 })
    };
    script.after(70).end(seven, failure);

    let slow = next();
    script.after(5).start(slow);
    let timeout = Reason::Timeout { seconds: 65 };
    script.after(65_000).say(slow, EventKind::Stopping { reason: Box::new(timeout.clone()) });
    script.after(5_000).end(slow, Ending::of(timeout));

    let gone = next();
    script.after(5).start(gone);
    script.end(gone, Ending::of(Reason::Interrupted));

    let models = next();
    script.after(5).start(models);
    let ending = Ending {
        usage: Usage::UNKNOWN,
        cost: Cost::unknown(),
        ..Ending::completed(Payload::text("no bill was sent"))
    };
    script.after(3_661_000).end(models, ending);

    let output = Payload::text("12 lines\n---\n{\"words\":[1,2]}");
    let summary = MergeSummary {
        strategy: "concatenate".to_owned(),
        merged: 4,
        failed: 3,
        output: output.clone(),
        chosen: None,
    };
    script.say(root, EventKind::Paused);
    script.say(root, EventKind::Unpaused);
    let agent = AgentId::main();
    script.say(root, EventKind::BreakerOpened { agent: agent.clone(), faults: 5, wait_ms: 60_000 });
    script.say(root, EventKind::BreakerClosed { agent });
    let account = Account::of_runtime("claude");
    let (window, until) = (Some("five_hour".into()), Timestamp::from_micros(1_767_276_300_000_000));
    let seen = EventKind::QuotaSeen {
        account: account.clone(),
        window: "five_hour".into(),
        left: 70_000,
        until,
    };
    script.say(root, seen);
    let left = None;
    script.say(root, EventKind::Parked { account: account.clone(), window, until, left });
    script.say(root, EventKind::Unparked { account: account.clone() });
    script.say(root, EventKind::Paced { account: account.clone(), most: Some(2) });
    script.say(root, EventKind::Paced { account, most: None });
    script.say(root, EventKind::Priming { run: root, tokens: 9_000 });
    script.say(root, EventKind::Primed { run: root });
    script.say(root, EventKind::Merged(Box::new(summary)));
    let reason = Reason::PiecesFailed { failed: 3, total: 7 };
    script.end(root, Ending { output: Some(output), ..Ending::of(reason) });
}

/// A piece whose agent asks for children of its own.
fn delegating(script: &mut Script, parent: RunId) {
    script.after(1).start(parent);
    let limit = GovernedBy {
        key: "subagents.maxDepth".to_owned(),
        agent: None,
        value: json("3"),
        origin: "built-in".to_owned(),
    };
    let refusal = Refusal::new(
        RefusalCode::DepthLimit,
        "Maximum subagent depth reached (3). Cannot spawn deeper.",
    )
    .with_hint("do it here")
    .governed_by(Some(Box::new(limit)));
    script.budget = BudgetGrant { tokens: Some(11_900), usd: Some(MicroUsd::from_micros(34_500)) };
    let first = script.child(parent, "scout", None);
    script.budget = BudgetGrant::default();
    let second = script.child(parent, "scout", Some("red\u{1b}[31malert\u{7}\u{9b}2J"));
    script.say(parent, EventKind::Waiting);
    script.say(parent, EventKind::StallLent);
    script.say(parent, EventKind::BusyWaiting { cpu_ms: 12_340, wait_ms: 60_100 });
    script.say(parent, EventKind::StrayEnded { pid: 4711, name: "redis\u{1b}[2J".into() });
    let (pid, found) = (4712, KeeperFault::Stopped);
    script.say(parent, EventKind::KeeperFailed { pid, found, error: None });
    script.after(3).start(first);
    let refusal = Box::new(refusal);
    script.say(first, EventKind::Refused { refusal: refusal.clone(), times: None });
    script.say(first, EventKind::Refused { refusal, times: Some(12_345) });
    script.say(first, EventKind::Progress { text: "reading \u{1b}]0;title\u{7}chapter 2".into() });
    for (name, input) in [("Read", "notes.txt"), ("Bash", "ls \u{1b}[2J")] {
        let used = ToolUse::new(name, &BTreeMap::from([("input", input)]));
        script.say(first, EventKind::ToolUsed(Box::new(used)));
    }
    script.say(first, EventKind::Repeats { tool: "Ba\u{1b}sh".into(), times: 10 });
    let until = Timestamp::from_micros(1_767_276_300_000_000);
    script.say(first, EventKind::BacksOff { why: "529 \u{1b}[2Joverloaded".into(), until });
    script.say(first, EventKind::Answered);
    script.say(first, EventKind::ModelChanged { model: "small\u{1b}[1m".into() });
    let usage = Usage {
        input: TokenCount::Known(11_000),
        output: TokenCount::Known(1_300),
        cache_read: TokenCount::Known(40),
        cache_write: TokenCount::Known(0),
    };
    let cost = Cost::known(MicroUsd::from_micros(36_500));
    let model: std::sync::Arc<str> = "sonnet".into();
    let (request, tokens, micro_usd) = (1, 2_100, Some(7_800));
    let held = EventKind::RequestHeld {
        request,
        model: model.clone(),
        tokens,
        micro_usd,
        for_others: false,
    };
    script.say(first, held);
    let reserved = EventKind::RequestReserved { request, model: model.clone(), tokens, micro_usd };
    script.say(first, reserved);
    let settled = EventKind::RequestSettled {
        request,
        model,
        ending: RequestEnding::NotSent,
        usage: Usage::default(),
        cost: Cost::NONE,
    };
    script.say(first, settled);
    let (code, message) = ("budget_exhausted".into(), "$0.0078 are more than what is left".into());
    script.say(first, EventKind::RequestRefused { code, message, times: None });
    script.say(first, EventKind::BudgetDrawn { tokens: 0, micro_usd: 0 });
    script.say(first, EventKind::BudgetRaised { tokens: 100, micro_usd: 500 });
    script.after(800).say(first, EventKind::Used { usage, cost });
    script.say(first, EventKind::BudgetNotice);
    script.say(first, EventKind::Overrun { tokens: 340, micro_usd: 1_500 });
    let answer = Payload::text("found it");
    let ending = Ending { usage, cost, ..Ending::completed(answer) };
    script.after(400).end(first, ending);
    script.deliver(first, false);
    let cancelled = Reason::Cancelled { by: CancelledBy::Parent };
    script.say(second, EventKind::Stopping { reason: Box::new(cancelled.clone()) });
    script.end(second, Ending::of(cancelled));
    script.deliver(second, false);
    script.after(1).say(parent, EventKind::Returned);
    let words = json("{ \"words\": [1, 2] }");
    script.after(20).end(parent, Ending::completed(Payload::Json(words)));
    script.deliver(parent, false);
}

fn still_going(script: &mut Script) {
    let root = script.root("scout", "look around", Some("claude"));
    script.after(1).start(root);
    let estimated = Cost { estimated_usd: MicroUsd::from_micros(1_234), ..Cost::NONE };
    let usage = Usage { output: TokenCount::Known(77), ..Usage::default() };
    script.after(10).say(root, EventKind::Used { usage, cost: estimated });
    script.child(root, "scout", None);
}

/// An agent that takes turns: between two of them it waits for its children, and for letters.
fn in_turns(script: &mut Script) {
    let root = script.root("scout", "turn by turn", Some("claude"));
    script.after(1).start(root);
    let first = script.child(root, "scout", Some("first"));
    let second = script.child(root, "scout", Some("again"));
    let answer = Payload::text("two are on their way");
    script
        .after(20)
        .say(root, EventKind::TurnEnded { answer: Some(answer), letters_taken: Some(0) });
    script.say(root, EventKind::Waiting);
    script.after(1).start(first);
    script.start(second);
    script.after(40).end(first, Ending::completed(Payload::text("one")));
    let text = Payload::text("and be \u{1b}[1mquick");
    script.after(5).say(root, EventKind::Letter { from: None, text });
    script.deliver(first, false);
    script.say(root, EventKind::Returned);
    script.after(5).say(root, EventKind::TurnEnded { answer: None, letters_taken: Some(0) });
    script.say(root, EventKind::Waiting);
    // Here its supervisor dies, and another one goes on a minute later.
    script.after(60_000).say(root, EventKind::Reopened);
    let resumed = |continues| EventKind::Resumed {
        attempt: 2,
        continues,
        after: None,
        wait_ms: None,
        changes: None,
    };
    script.say(root, resumed(true));
    script.say(second, resumed(false));
    script.start(root);
    script.start(second);
    let (runtime, model) = ("open\u{1b}[1mai".into(), Some("small".into()));
    script.say(second, EventKind::FellBack { number: 1, runtime, model });
    let message = "the model is \u{1b}[1moverloaded".to_owned();
    let fault = Box::new(Reason::RuntimeError { message, retryable: true });
    script.say(
        second,
        EventKind::Resumed {
            attempt: 3,
            continues: false,
            after: Some(fault),
            wait_ms: Some(2_000),
            changes: None,
        },
    );
    script.after(1200).start(second);
    let bytes = stored_result();
    let value = VariableRef {
        hash: ContentHash::of(&bytes),
        size: bytes.len() as u64,
        kind: ValueKind::Text,
    };
    script.say(root, EventKind::Kept { name: "the \u{1b}[2Jplan".into(), value });
    for text in ["half of it is read", "three \u{1b}[1mquarters are read"] {
        script.say(second, EventKind::Reported { text: text.into() });
    }
    let task_type = "review".parse().expect("a type of a task");
    script.say(second, EventKind::ObservationOpened { number: 1, task_type });
    script.say(second, EventKind::ObservationClosed { number: 1, success: true });
    let third = script.child(root, "scout", Some("late"));
    script.is_to_go(third);
    let text = Payload::text("be thorough");
    script.say(second, EventKind::Letter { from: Some(root), text });
    script.say(root, EventKind::TurnEnded { answer: None, letters_taken: Some(0) });
    script.say(root, EventKind::Waiting);
    script.after(30).end(second, Ending::completed(Payload::text("two")));
    script.deliver(second, false);
    script.say(root, EventKind::Returned);
    script.after(1).start(third);
    script.after(9).end(root, Ending::completed(Payload::text("one and two")));
    script.after(9).end(third, Ending::completed(Payload::text("three")));
    script.undelivered(third);
    let error = Some("cannot remove /data/runs/late: it is \u{1b}[5mbusy".into());
    script.say(third, EventKind::Removal { error });
}

/// A map of which one piece fails, and runs again.
fn goes_on(script: &mut Script) {
    let root = script.root("main", "goes on", None);
    let pieces = ["first", "se\u{1b}[1mcond"].map(|name| script.piece(root, name));
    let [first, second] = pieces;
    for (place, piece) in (0..).zip(pieces) {
        script.placed(piece, place, None);
    }
    script.after(5).start(first);
    script.after(20).end(first, Ending::completed(Payload::text("one")));
    script.start(second);
    script.after(20).end(second, Ending::of(Reason::ExitCode { code: 7 }));
    script.end(root, Ending::of(Reason::PiecesFailed { failed: 1, total: 2 }));
    script.after(60_000).say(root, EventKind::Reopened);
    let only = Some("se\u{1b}[1mcond".into());
    let again = PiecesAgain { failed: true, cancelled: false, only };
    let reopened = RootReopened {
        again,
        deadline_seconds: Some(7_200),
        idle_timeout_seconds: Some(1_800),
        ..RootReopened::default()
    };
    script.say(root, EventKind::RootReopened(Box::new(reopened)));
    let instead = script.piece(root, "se\u{1b}[1mcond");
    script.placed(instead, 1, Some(second));
    script.after(5).start(instead);
    script.after(20).end(instead, Ending::completed(Payload::text("two")));
    let output = Payload::text("one\n---\ntwo");
    script.end(root, Ending { output: Some(output), ..Ending::of(COMPLETED) });
}

fn json(text: &str) -> JsonText {
    JsonText::parse(text.to_owned()).expect("JSON")
}

const COMPLETED: Reason = Reason::Completed { exit_code: Some(0) };

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use offshoot_model::{RunStatus, Tree};

    use super::*;

    #[test]
    fn everything_happens() {
        let events = everything();
        let kinds: BTreeSet<&str> = events.iter().map(|event| event.kind.name()).collect();
        assert_eq!(kinds, EventKind::NAMES.iter().copied().collect(), "what is new happens too");
        let tree = Tree::of(&events);
        let statuses: BTreeSet<RunStatus> = tree.nodes().map(|node| node.status).collect();
        for status in [
            RunStatus::Queued,
            RunStatus::Running,
            RunStatus::Completed,
            RunStatus::Failed,
            RunStatus::TimedOut,
            RunStatus::Cancelled,
            RunStatus::Lost,
        ] {
            assert!(statuses.contains(&status), "{status}");
        }
        assert_eq!(tree.roots().count(), 4);
    }
}
