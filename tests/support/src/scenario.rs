//! One scenario in which everything happens: every event, every status, and text that nobody should trust.
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
//! ```
//!
//! Ids and moments are fixed, so that every picture of it can be compared to the letter.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use offshoot_model::{
    Admitted, AgentId, BudgetGrant, CancelledBy, Cleanup, ContentHash, Cost, DeliveryId, Ending,
    Event, EventClass, EventKind, GovernedBy, Grant, InputRange, JsonText, MergeSummary, MicroUsd,
    Origin, Payload, ProcessIdentity, Reason, Refusal, RefusalCode, Rights, RootId, Rules, RunId,
    SessionKey, Timestamp, TokenCount, Usage, ValueKind, VariableRef,
};

/// 2025-08-01T12:00:00Z, in microseconds.
const NOON: u64 = 1_754_049_600_000_000;

/// All of it, in the order in which it happened.
pub fn everything() -> Vec<Event> {
    let mut script = Script::default();
    map(&mut script);
    still_going(&mut script);
    script.events
}

/// The same, each of the two trees by itself.
pub fn trees() -> (Vec<Event>, Vec<Event>) {
    let first = RootId::new(run(0));
    everything().into_iter().partition(|event| event.root == first)
}

/// The id of the n-th run of the scenario, in the order of admission.
pub fn run(number: u8) -> RunId {
    let mut bytes = *b"\x01\x98\x5e\x3a\x00\x00\x70\x00\x80\x00\x00\x00\x00\x00\x00\x00";
    bytes[3] = 0x3a + number;
    bytes[15] = number;
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
    };
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
    .governed_by(limit);
    script.budget = BudgetGrant { tokens: Some(12_000), usd: Some(MicroUsd::from_micros(35_000)) };
    let first = script.child(parent, "scout", None);
    script.budget = BudgetGrant::default();
    let second = script.child(parent, "scout", Some("red\u{1b}[31malert\u{7}\u{9b}2J"));
    script.say(parent, EventKind::Waiting);
    script.say(parent, EventKind::StallLent);
    script.after(3).start(first);
    script.say(first, EventKind::Refused { refusal: Box::new(refusal) });
    script.say(first, EventKind::Progress { text: "reading \u{1b}]0;title\u{7}chapter 2".into() });
    let usage = Usage {
        input: TokenCount::Known(11_000),
        output: TokenCount::Known(1_300),
        cache_read: TokenCount::Known(40),
        cache_write: TokenCount::Known(0),
    };
    let cost = Cost {
        known_usd: MicroUsd::from_micros(36_500),
        estimated_usd: MicroUsd::from_micros(0),
        unknown_runs: 0,
    };
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

fn json(text: &str) -> JsonText {
    JsonText::parse(text.to_owned()).expect("JSON")
}

/// Nobody below a root has what is for roots alone.
fn grant(is_below: bool, budget: BudgetGrant) -> Grant {
    let roots_alone = [
        "agents_list",
        "cron",
        "gateway",
        "memory_get",
        "memory_search",
        "session_status",
        "whatsapp_login",
    ];
    let deny = roots_alone.into_iter().filter(|_| is_below).map(str::to_owned).collect();
    let tools = Rights { allow: None, deny };
    Grant { run_timeout_seconds: 65, max_depth: 3, tools, budget, ..Grant::unbounded() }
}

const RULES: Rules = Rules {
    max_concurrent: 4,
    max_concurrent_per_level: None,
    max_children: None,
    max_spawns: 100,
    max_spawns_per_minute: None,
    cascade: false,
};

const COMPLETED: Reason = Reason::Completed { exit_code: Some(0) };

/// Writes events with the numbers and moments they need.
#[derive(Default)]
struct Script {
    events: Vec<Event>,
    admitted: u8,
    processes: u32,
    root: Option<RootId>,
    seq: u64,
    elapsed: Duration,
    /// What is reserved for whoever is admitted next.
    budget: BudgetGrant,
}

impl Script {
    fn after(&mut self, milliseconds: u64) -> &mut Self {
        self.elapsed += Duration::from_millis(milliseconds);
        self
    }

    fn say(&mut self, run: RunId, kind: EventKind) {
        if kind.class() == EventClass::Kept {
            self.seq += 1;
        }
        let root = self.root.expect("a root comes first");
        let at = Timestamp::from_micros(NOON).plus(self.elapsed);
        self.events.push(Event { root, seq: self.seq, at, run, kind });
    }

    fn root(&mut self, agent: &str, label: &str, runtime: Option<&str>) -> RunId {
        let run = run(self.admitted);
        (self.root, self.seq) = (Some(RootId::new(run)), 0);
        let key = format!("agent:{agent}:run:{run}");
        let plan = json("{\"split\":\"files\"}");
        let runtime = runtime.map(Arc::from);
        self.admit(None, &key, agent, |admitted| {
            admitted.origin = Origin::Root;
            admitted.label = Some(label.into());
            admitted.runtime = runtime;
            admitted.plan = Some(plan);
        })
    }

    fn piece(&mut self, parent: RunId, name: &str) -> RunId {
        let path = PathBuf::from(format!("/data/{name}"));
        let input = InputRange { path: Arc::new(path), offset: 0, length: 4096, hash: None };
        let key = format!("agent:main:subagent:{}", run(self.admitted));
        self.admit(Some(parent), &key, "main", |admitted| {
            admitted.origin = Origin::Piece;
            admitted.label = Some(name.into());
            admitted.input = Some(input);
        })
    }

    fn child(&mut self, parent: RunId, agent: &str, label: Option<&str>) -> RunId {
        let key = match self.key(parent) {
            key if key.is_subagent() => format!("{key}:sub:{}", run(self.admitted)),
            _ => format!("agent:{agent}:subagent:{}", run(self.admitted)),
        };
        let label = label.map(Arc::from);
        self.admit(Some(parent), &key, agent, |admitted| admitted.label = label)
    }

    fn admit(
        &mut self,
        parent: Option<RunId>,
        key: &str,
        agent: &str,
        change: impl FnOnce(&mut Admitted),
    ) -> RunId {
        let run = run(self.admitted);
        self.admitted += 1;
        let key = SessionKey::parse(key).expect("a key");
        let budget = self.budget;
        let mut admitted = Admitted {
            depth: key.depth() as u32,
            key,
            parent,
            agent: AgentId::parse(agent).expect("an agent"),
            origin: Origin::Agent,
            label: None,
            runtime: Some("exec".into()),
            task: Payload::text("count the words"),
            input: None,
            place: None,
            particulars: None,
            grant: Arc::new(grant(parent.is_some(), budget)),
            rules: parent.is_none().then(|| Arc::new(RULES)),
            cleanup: Cleanup::Keep,
            archive_after_minutes: None,
            plan: None,
        };
        change(&mut admitted);
        self.say(run, EventKind::Admitted(Box::new(admitted)));
        run
    }

    fn start(&mut self, run: RunId) {
        self.say(run, EventKind::Starting);
        self.processes += 1;
        let process = ProcessIdentity { pid: 4000 + self.processes, start_time: 123_456 };
        self.say(run, EventKind::Started { process: Some(process) });
    }

    fn end(&mut self, run: RunId, mut ending: Ending) {
        let started = self.events.iter().find_map(|event| match event.kind {
            EventKind::Starting if event.run == run => Some(event.at),
            _ => None,
        });
        let now = Timestamp::from_micros(NOON).plus(self.elapsed);
        ending.execution_time_ms = started.map_or(0, |at| now.since(at).as_millis() as u64);
        self.say(run, EventKind::Ended(Box::new(ending)));
    }

    fn deliver(&mut self, run: RunId, redelivered: bool) {
        let delivery = DeliveryId::new(&self.key(run), run);
        self.say(run, EventKind::Delivered { delivery, redelivered });
    }

    fn key(&self, run: RunId) -> SessionKey {
        let found = self.events.iter().find_map(|event| match &event.kind {
            EventKind::Admitted(admitted) if event.run == run => Some(admitted.key.clone()),
            _ => None,
        });
        found.expect("it was admitted")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use offshoot_model::{RunStatus, Tree};

    use super::*;

    #[test]
    fn everything_happens() {
        let events = everything();
        let kinds: BTreeSet<&str> = events.iter().map(|event| event.kind.name()).collect();
        assert_eq!(kinds.len(), 15, "{kinds:?}");
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
        assert_eq!(tree.roots().count(), 2);
    }
}
