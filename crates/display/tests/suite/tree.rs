//! The layout of a tree, to the letter.

use std::sync::Arc;

use offshoot_display::{Shows, TreeText};
use offshoot_model::{
    Admitted, AgentId, Cleanup, Cost, Ending, Event, EventKind, Grant, MicroUsd, OnNeedFailed,
    Origin, Payload, Reason, RootId, RunId, SessionKey, Timestamp, TokenCount, Tree, Usage,
};

struct Events {
    events: Vec<Event>,
    runs: u32,
}

impl Events {
    fn say(&mut self, run: RunId, milliseconds: u64, kind: EventKind) {
        let (root, seq) = (RootId::new(id(0)), self.events.len() as u64 + 1);
        let at = Timestamp::from_micros(milliseconds * 1000);
        self.events.push(Event { root, seq, at, run, kind });
    }

    fn admit(&mut self, parent: Option<RunId>, agent: &str, depth: u32, origin: Origin) -> RunId {
        let run = id(self.runs);
        self.runs += 1;
        let key = match depth {
            0 => format!("agent:{agent}:run:{run}"),
            _ => format!("agent:{agent}:subagent:{run}"),
        };
        let admitted = Admitted {
            key: SessionKey::parse(&key).expect("a key"),
            parent,
            agent: AgentId::parse(agent).expect("an agent"),
            depth,
            origin,
            label: None,
            runtime: Some("exec".into()),
            task: Payload::text("task"),
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
        };
        self.say(run, 0, EventKind::Admitted(Box::new(admitted)));
        run
    }

    fn took(&mut self, run: RunId, milliseconds: u64, ending: Ending) {
        self.say(run, 0, EventKind::Starting);
        self.say(run, milliseconds, EventKind::Ended(Box::new(ending)));
    }
}

fn id(number: u32) -> RunId {
    let mut bytes = *b"\x01\x98\xc0\xde\x00\x00\x70\x00\x80\x00\x00\x00\x00\x00\x00\x00";
    bytes[12..].copy_from_slice(&number.to_be_bytes());
    RunId::from_bytes(bytes)
}

fn completed() -> Ending {
    Ending::of(Reason::Completed { exit_code: Some(0) })
}

fn script() -> Events {
    Events { events: Vec::new(), runs: 0 }
}

#[test]
fn a_tree_as_documented() {
    let mut script = script();
    let root = script.admit(None, "main", 0, Origin::Root);
    let workflow = script.admit(Some(root), "chezmoi-workflow", 1, Origin::Agent);
    let scan = script.admit(Some(workflow), "security-scanner", 2, Origin::Agent);
    let sync = script.admit(Some(workflow), "template-sync-agent", 2, Origin::Agent);
    let git = script.admit(Some(sync), "git-coordinator", 3, Origin::Agent);
    script.took(scan, 1_200, completed());
    let usage = Usage { output: TokenCount::Known(12_340), ..Usage::default() };
    let cost = Cost::known(MicroUsd::from_micros(40_000));
    script.took(git, 800, Ending { usage, cost, ..completed() });
    script.took(sync, 2_950, completed());
    script.took(workflow, 4_000, completed());
    script.took(root, 4_199, completed());
    let tree = Tree::of(&script.events);
    assert_eq!(
        TreeText::new(&tree).to_string(),
        "\
main 0198c0de-0000…  completed  4.1 s  12,340 tokens  $0.04
└─ chezmoi-workflow (depth 1)  completed  4.0 s  below 12,340 tokens  $0.04
   ├─ security-scanner (depth 2)  completed  1.2 s
   └─ template-sync-agent (depth 2)  completed  2.9 s  below 12,340 tokens  $0.04
      └─ git-coordinator (depth 3)  completed  0.8 s  12,340 tokens  $0.04"
    );
    let sync = tree.get(sync).expect("the run was not admitted");
    assert_eq!(
        TreeText::of(&tree, sync).to_string(),
        "\
template-sync-agent 0198c0de-0000… (depth 2)  completed  2.9 s  12,340 tokens  $0.04
└─ git-coordinator (depth 3)  completed  0.8 s  12,340 tokens  $0.04"
    );
}

#[test]
fn nothing_is_idle() {
    assert_eq!(TreeText::new(&Tree::new()).to_string(), "idle");
}

#[test]
fn many_pieces_are_counted() {
    let check = |pieces: u32, shows: Shows, lines: usize, last: &str| {
        let mut script = script();
        let root = script.admit(None, "main", 0, Origin::Root);
        for piece in 0..pieces {
            let run = script.admit(Some(root), "main", 1, Origin::Piece);
            let ending = match piece {
                3 => Ending::of(Reason::ExitCode { code: 1 }),
                _ => completed(),
            };
            script.took(run, 100, ending);
        }
        let tree = Tree::of(&script.events);
        let text = TreeText { shows, ..TreeText::new(&tree) }.to_string();
        assert_eq!(text.lines().count(), lines, "{text}");
        assert_eq!(text.lines().last(), Some(last));
        assert!(text.contains("failed  0.1 s  exited with code 1"), "{text}");
    };
    let piece = "└─ main (depth 1)  completed  0.1 s";
    // One line would only be replaced by another.
    check(17, Shows::Usual, 1 + 17, piece);
    check(18, Shows::Usual, 1 + 1 + 15 + 1, "└─ … 2 more completed");
    check(1001, Shows::Usual, 1 + 1 + 15 + 1, "└─ … 985 more completed");
    check(1001, Shows::All, 1 + 1001, piece);
}

#[test]
fn what_has_something_to_show_is_never_counted_away() {
    let mut script = script();
    let root = script.admit(None, "main", 0, Origin::Root);
    for _ in 0..40 {
        script.admit(Some(root), "main", 1, Origin::Piece);
    }
    let run = script.admit(Some(root), "main", 1, Origin::Piece);
    let child = script.admit(Some(run), "scout", 2, Origin::Agent);
    script.took(child, 5, Ending::of(Reason::Interrupted));
    script.took(run, 100, completed());
    for _ in 0..40 {
        let run = script.admit(Some(root), "scout", 1, Origin::Agent);
        script.took(run, 100, completed());
    }
    let tree = Tree::of(&script.events);
    let text = TreeText::new(&tree).to_string();
    assert!(
        text.contains("│  └─ scout (depth 2)  lost  5 ms  interrupted with its supervisor"),
        "{text}"
    );
    assert_eq!(text.matches("─ scout (depth 1)").count(), 15);
    assert!(
        text.ends_with("└─ … 25 more completed, 25 more queued")
            || text.ends_with("└─ … 25 more queued, 25 more completed"),
        "{text}"
    );
    // So it is however few lines there may be, and it is all that is left where failures are asked for.
    let lost = "└─ scout (depth 2)  lost  5 ms  interrupted with its supervisor";
    let few = TreeText { limit: Some(2), ..TreeText::new(&tree) }.to_string();
    assert!(few.contains(lost), "{few}");
    assert_eq!(few.lines().count(), 1 + 2 + 1, "{few}");
    let failed = TreeText { shows: Shows::Failed, ..TreeText::new(&tree) }.to_string();
    assert!(failed.contains(lost), "{failed}");
    assert_eq!(failed.lines().count(), 1 + 2 + 1, "{failed}");
    assert!(failed.ends_with("└─ … 40 more queued, 40 more completed"), "{failed}");
    let shallow = TreeText { depth: Some(1), ..TreeText::new(&tree) }.to_string();
    assert!(!shallow.contains("(depth 2)"), "{shallow}");
    assert!(
        shallow.contains("   └─ … 1 more lost") || shallow.contains("│  └─ … 1 more lost"),
        "{shallow}"
    );
}

#[test]
fn two_thousand_nested_runs_are_not_two_thousand_lines() {
    let mut script = script();
    let root = script.admit(None, "main", 0, Origin::Root);
    for _ in 0..40 {
        let parent = script.admit(Some(root), "main", 1, Origin::Agent);
        for _ in 0..50 {
            let child = script.admit(Some(parent), "scout", 2, Origin::Agent);
            script.took(child, 5, completed());
        }
        script.took(parent, 9, completed());
    }
    let tree = Tree::of(&script.events);
    let text = TreeText { limit: Some(30), ..TreeText::new(&tree) }.to_string();
    assert!(text.lines().count() <= 1 + 30 + 16, "{text}");
    assert!(text.contains("… 25 more completed"), "{text}");
    let all = TreeText { shows: Shows::All, ..TreeText::new(&tree) }.to_string();
    assert_eq!(all.lines().count(), 2041, "all of them");
}
