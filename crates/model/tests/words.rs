//! Tables for the words that carry rules: sums, money, endings, rights, envelopes and the tree.

use std::sync::Arc;

use offshoot_model::{
    Admitted, AgentId, CancelledBy, Cleanup, Cost, Ending, Envelope, Event, EventKind, Grant,
    MicroUsd, OnNeedFailed, Origin, Payload, Reason, Refusal, RefusalCode, Rights, RootId, RunId,
    RunStatus, SaidError, SessionKey, Timestamp, TokenCount, Tree, Usage,
};
use proptest::prelude::*;
use uuid::Uuid;

#[test]
fn unknown_is_not_zero() {
    let known = Usage { input: TokenCount::Known(5), ..Usage::default() };
    assert_eq!(known.total(), TokenCount::Known(5));
    let sum = known + Usage { output: TokenCount::Unknown, ..Usage::default() };
    assert_eq!(sum.input, TokenCount::Known(5), "what is known stays known");
    assert_eq!(sum.total(), TokenCount::AtLeast(5), "what is not does not become zero");
    let cost = Cost::known(MicroUsd::from_micros(10)) + Cost::unknown() + Cost::unknown();
    assert_eq!((cost.known_usd.as_micros(), cost.unknown_runs), (10, 2));
    let json = serde_json::to_value(sum).expect("counts");
    assert_eq!((&json["output"], &json["atLeast"]), (&serde_json::Value::Null, &json["absent"]));
    let cut_off = known.cut_off();
    assert_eq!(cut_off.total(), TokenCount::AtLeast(5));
    assert_eq!((cut_off + known).input, TokenCount::AtLeast(10), "a lower bound stays one");
    assert_eq!(cut_off.output, TokenCount::Unknown, "a lower bound of zero says nothing");
    let json = serde_json::to_value(cut_off).expect("counts");
    assert_eq!((&json["input"], &json["atLeast"]), (&5.into(), &serde_json::json!(["input"])));
    let old = r#"{"input": 5, "output": null, "cacheRead": 0, "cacheWrite": 0}"#;
    let old: Usage = serde_json::from_str(old).expect("of an earlier version");
    assert_eq!((old.input, old.output), (TokenCount::Known(5), TokenCount::Unknown));
}

proptest! {
    #[test]
    fn every_number_that_is_recorded_is_read_back(
        micros in any::<[u64; 2]>(), counts in any::<[Option<u64>; 4]>(), bounds in any::<[bool; 4]>(),
        dollars in any::<f64>(),
    ) {
        let [known_usd, estimated_usd] = micros.map(MicroUsd::from_micros);
        let metered_usd = estimated_usd;
        let cost = Cost { metered_usd, known_usd, estimated_usd, unknown_runs: 1 } + Cost::known(known_usd);
        let text = serde_json::to_string(&cost).expect("amounts");
        prop_assert_eq!(serde_json::from_str::<Cost>(&text).expect("amounts"), cost);
        prop_assert_eq!(known_usd.to_string().parse::<MicroUsd>().expect("an amount"), known_usd);
        if let Some(amount) = MicroUsd::from_f64(dollars) {
            let text = serde_json::to_string(&amount).expect("an amount");
            prop_assert_eq!(serde_json::from_str::<MicroUsd>(&text).expect("an amount"), amount);
        }
        let count = |at: usize| match (counts[at], bounds[at]) {
            (None, _) | (Some(0), true) => TokenCount::Unknown,
            (Some(count), true) => TokenCount::AtLeast(count),
            (Some(count), false) => TokenCount::Known(count),
        };
        let [input, output, cache_read, cache_write] = [0, 1, 2, 3].map(count);
        let usage = Usage { input, output, cache_read, cache_write };
        for usage in [usage, usage + usage, usage.cut_off()] {
            let text = serde_json::to_string(&usage).expect("counts");
            prop_assert_eq!(serde_json::from_str::<Usage>(&text).expect("counts"), usage);
        }
    }
}

#[test]
fn amounts_beyond_all_reason_are_refused_or_bounded() {
    for text in ["1000000000.000001", "9999999999999", "99999999999999999999"] {
        let error = text.parse::<MicroUsd>().expect_err(text).to_string();
        assert_eq!(
            error,
            format!("`{text}` is more than the largest amount, 1000000000.00 dollars")
        );
    }
    assert_eq!("1000000000".parse(), Ok(MicroUsd::MAX));
    assert_eq!(MicroUsd::from_f64(1e9 + 1.0), None);
    assert_eq!(MicroUsd::from_micros(u64::MAX), MicroUsd::MAX);
    assert_eq!(MicroUsd::MAX + MicroUsd::MAX, MicroUsd::MAX);
    let old: MicroUsd = serde_json::from_str("9999999999999.0").expect("of an earlier version");
    assert_eq!(old, MicroUsd::MAX);
    assert!(serde_json::from_str::<MicroUsd>("-1").is_err());
}

#[test]
fn dollars_are_read_and_written_exactly() {
    for (text, micros) in
        [("0", 0), ("0.25", 250_000), ("5", 5_000_000), ("0.000001", 1), ("12.5", 12_500_000)]
    {
        let amount: MicroUsd = text.parse().expect("an amount");
        assert_eq!(amount.as_micros(), micros, "{text}");
    }
    for text in ["", "-1", "1e3", ".5", "0.0000001", "1,5", "abc", "99999999999999999999"] {
        assert!(text.parse::<MicroUsd>().is_err(), "{text}");
    }
    for (micros, shown) in
        [(0, "0.00"), (40_000, "0.04"), (1_000_001, "1.000001"), (1_500_000, "1.50")]
    {
        assert_eq!(MicroUsd::from_micros(micros).to_string(), shown);
    }
}

#[test]
fn the_status_follows_from_the_reason() {
    let text = String::new;
    let table = [
        (Reason::Completed { exit_code: None }, RunStatus::Completed, false),
        (Reason::ExitCode { code: 7 }, RunStatus::Failed, false),
        (Reason::Signal { signal: 11 }, RunStatus::Failed, false),
        (Reason::CannotStart { message: text() }, RunStatus::Failed, true),
        (Reason::InputUnreadable { message: text() }, RunStatus::Failed, false),
        (Reason::RuntimeError { message: text(), retryable: true }, RunStatus::Failed, true),
        (Reason::PluginPanic { message: text() }, RunStatus::Failed, true),
        (Reason::TurnLimit, RunStatus::Failed, false),
        (Reason::Budget { unit: text(), request: None }, RunStatus::Failed, false),
        (Reason::PiecesFailed { failed: 1, total: 2 }, RunStatus::Failed, false),
        (Reason::MergeFailed { message: text() }, RunStatus::Failed, false),
        (Reason::NotRecorded { message: text() }, RunStatus::Failed, false),
        (Reason::Isolation { message: text() }, RunStatus::Failed, false),
        (Reason::Timeout { seconds: 1 }, RunStatus::TimedOut, false),
        (Reason::Idle { seconds: 1 }, RunStatus::TimedOut, false),
        (Reason::Repeated { tool: "Read".into(), times: 10 }, RunStatus::Failed, false),
        (Reason::OutOfMemory { bytes: None }, RunStatus::Failed, false),
        (Reason::CpuLimit { seconds: 1 }, RunStatus::Failed, false),
        (Reason::OpenFileLimit { files: 1 }, RunStatus::Failed, false),
        (Reason::OutputLimit { bytes: 1 }, RunStatus::Failed, false),
        (Reason::SchemaMismatch { path: text(), message: text() }, RunStatus::Failed, false),
        (Reason::Quota { window: None, until: None }, RunStatus::Failed, false),
        (Reason::ParkLimit { seconds: 1 }, RunStatus::TimedOut, false),
        (Reason::Deadline, RunStatus::TimedOut, false),
        (Reason::Cancelled { by: CancelledBy::Operator }, RunStatus::Cancelled, false),
        (Reason::Interrupted, RunStatus::Lost, false),
    ];
    for (reason, status, fault) in table {
        assert_eq!(reason.status(), status, "{reason:?}");
        assert_eq!(reason.is_runtime_fault(), fault, "{reason:?}");
        assert_eq!(status.is_success(), matches!(reason, Reason::Completed { .. }));
        let json = serde_json::to_string(&reason).expect("a reason");
        assert_eq!(serde_json::from_str::<Reason>(&json).expect("what was written"), reason);
        assert!(json.contains(&format!("\"kind\":\"{}\"", reason.code())), "{json}");
    }
}

#[test]
fn a_refusal_looks_the_same_everywhere() {
    let refusal = Refusal::new(RefusalCode::DepthLimit, "too deep").with_hint("stay up");
    let json = serde_json::to_string(&refusal).expect("a refusal");
    assert_eq!(
        json,
        r#"{"status":"forbidden","code":"depth_limit","message":"too deep","hint":"stay up"}"#
    );
    assert_eq!(serde_json::from_str::<Refusal>(&json).expect("what was written"), refusal);
    let invalid = serde_json::to_string(&Refusal::invalid("task", "empty")).expect("a refusal");
    assert_eq!(
        invalid,
        r#"{"status":"error","code":"invalid_request","field":"task","message":"empty"}"#
    );
}

#[test]
fn an_envelope_tells_the_answer_and_the_error_beside_it() {
    let mut ending = Ending::of(Reason::ExitCode { code: 7 });
    ending.output = Some(Payload::text("half"));
    ending.diagnostics = Some("disk on fire".into());
    let envelope = Envelope::of(&ending, key(), run(1), AgentId::main(), 1);
    let json = serde_json::to_value(&envelope).expect("an envelope");
    assert_eq!(json["status"], "failed");
    assert_eq!(json["data"], "half");
    assert_eq!(json["partial"], true);
    assert_eq!(json["error"]["code"], "exit_code");
    assert_eq!(json["error"]["message"], "exited with code 7: disk on fire");
    assert_eq!(json["error"]["parentCanRetry"], true);
    assert_eq!(json["error"]["said"], serde_json::Value::Null);
    ending.reason = Reason::Budget { unit: "usd".into(), request: None };
    let printed = "{\"error\": \"x\", \"parent_can_retry\": true}";
    ending.said = SaidError::read(printed).map(Box::new);
    let envelope = Envelope::of(&ending, key(), run(1), AgentId::main(), 1);
    let json = serde_json::to_value(&envelope).expect("an envelope");
    let expected = serde_json::json!({"error": "x", "parentCanRetry": true});
    assert_eq!(json["error"]["said"], expected);
    assert_eq!(json["error"]["parentCanRetry"], false, "the evidence decides");
    let json_data = Payload::json("{\"a\": 1}".into()).expect("JSON");
    let envelope = Envelope::of(&Ending::completed(json_data), key(), run(1), AgentId::main(), 1);
    let text = serde_json::to_string(&envelope).expect("an envelope");
    assert!(text.contains("\"data\":{\"a\": 1},"), "JSON travels as the text it was: {text}");
    assert!(!text.contains("error") && !text.contains("partial"), "{text}");
}

#[test]
fn the_tree_is_a_fold_of_its_events() {
    assert_eq!(Tree::new().status(), RunStatus::Idle);
    let used = Usage { input: TokenCount::Known(10), ..Usage::default() };
    let mut child_end = Ending::completed(Payload::text("done"));
    child_end.usage = used;
    let events = [
        event(1, 1, admitted(None, 0)),
        event(2, 2, admitted(Some(run(1)), 1)),
        event(3, 3, admitted(Some(run(1)), 1)),
        event(4, 2, EventKind::Starting),
        event(5, 2, EventKind::Started { process: None }),
        event(6, 2, EventKind::Ended(Box::new(child_end))),
        event(7, 3, EventKind::Ended(Box::new(Ending::of(Reason::Deadline)))),
        event(8, 9, EventKind::Starting),
    ];
    let tree = Tree::of(&events);
    let root = tree.roots().next().expect("one root");
    let statuses: Vec<RunStatus> = tree.children(root).map(|child| child.status).collect();
    assert_eq!(statuses, [RunStatus::Completed, RunStatus::TimedOut]);
    assert_eq!(tree.status(), RunStatus::Running, "the root has not ended");
    let view = tree.view(root);
    assert_eq!(view.own_usage, Usage::default());
    assert_eq!(view.subtree_usage, used);
    assert_eq!(
        view.children[0].execution_time_ms,
        Some(2),
        "two milliseconds from event 4 to event 6"
    );
    assert_eq!(view.children[1].execution_time_ms, None, "it never started");
    assert_eq!(
        tree.nodes().count(),
        3,
        "an event about a run that was not admitted changes nothing"
    );
}

#[test]
fn events_survive_the_record() {
    let ending = Ending::completed(Payload::json("[1,  2]".into()).expect("JSON"));
    for kind in [admitted(Some(run(1)), 1), EventKind::Starting, EventKind::Ended(Box::new(ending))]
    {
        let event = event(3, 2, kind);
        let json = serde_json::to_string(&event).expect("an event");
        assert_eq!(
            serde_json::from_str::<Event>(&json).expect("what was written"),
            event,
            "{json}"
        );
    }
}

fn rights() -> impl Strategy<Value = Rights> {
    let set = || prop::collection::btree_set("[a-d]", 0..4);
    (prop::option::of(set()), set()).prop_map(|(allow, deny)| Rights { allow, deny })
}

proptest! {
    #[test]
    fn rights_narrow_and_never_widen(a in rights(), b in rights(), right in "[a-d]") {
        let both = a.narrowed_by(&b);
        prop_assert_eq!(both.permits(&right), a.permits(&right) && b.permits(&right));
        prop_assert_eq!(both, b.narrowed_by(&a));
    }

    #[test]
    fn dollars_print_and_parse_back(micros in any::<u64>()) {
        let amount = MicroUsd::from_micros(micros);
        prop_assert_eq!(amount.to_string().parse::<MicroUsd>().ok(), Some(amount));
    }
}

fn run(number: u64) -> RunId {
    RunId::from_uuid(Uuid::from_u64_pair(0, number))
}

fn key() -> SessionKey {
    SessionKey::parse("agent:main:subagent:x").expect("a key")
}

fn event(seq: u64, about: u64, kind: EventKind) -> Event {
    let at = Timestamp::from_micros(seq * 1000);
    Event { root: RootId::new(run(1)), seq, at, run: run(about), kind }
}

fn admitted(parent: Option<RunId>, depth: u32) -> EventKind {
    EventKind::Admitted(Box::new(Admitted {
        key: key(),
        parent,
        agent: AgentId::main(),
        depth,
        origin: if parent.is_some() { Origin::Piece } else { Origin::Root },
        label: None,
        runtime: parent.is_some().then(|| "exec".into()),
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
    }))
}

#[test]
fn the_page_about_refusals_has_every_code_in_order() {
    let page = include_str!("../../../docs/refusals.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let schema = schemars::schema_for!(RefusalCode);
    let codes = schema.as_value()["oneOf"].as_array().expect("the codes").iter();
    let codes = codes.map(|code| code["const"].as_str().expect("a code"));
    assert_eq!(rows.collect::<Vec<_>>(), codes.collect::<Vec<_>>());
}
