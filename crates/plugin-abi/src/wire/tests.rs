use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use offshoot_model::*;
use offshoot_runtime::*;
use serde_json::json;
use uuid::Uuid;

use super::probe::Probe;
use super::*;

const RUN: RunId = RunId::from_uuid(Uuid::from_u128(7));

fn delegation() -> DelegationContext {
    let step = |agent: &str, run| TraceStep {
        agent: agent.parse().expect("an agent"),
        run_id: RunId::from_uuid(Uuid::from_u128(run)),
    };
    DelegationContext::new(vec![step("lead", 8), step("main", 7)], "count all".into())
}

fn launch() -> Launch {
    Launch {
        meter: Some(MeterPass {
            address: "http://127.0.0.1:1".into(),
            ticket: "m".into(),
            own_login: false,
            key_variable: None,
            protocols: MeterProtocols { anthropic: false, openai: true, gemini: false },
            output_tokens: Some(500),
        }),
        continues: true,
        run: RUN,
        root: RootId::new(RunId::from_uuid(Uuid::from_u128(8))),
        key: "agent:main:subagent:a".parse().expect("a key"),
        agent: "main".parse().expect("an agent"),
        depth: 1,
        delegation: delegation(),
        task: "count \"words\"\n".into(),
        context: vec![ContextFile {
            name: "data".into(),
            path: "/data/data".into(),
            value: VariableRef { hash: ContentHash::of(b"x"), size: 1, kind: ValueKind::Text },
        }],
        context_manifest: Some("/data/context.json".into()),
        input: Input::Piece(InputRange {
            path: Arc::new("/data/in".into()),
            offset: 3,
            length: u64::MAX,
            header: 0,
            hash: Some(ContentHash::of(b"in")),
        }),
        command: Some(["wc".to_owned(), "-l".to_owned()].into()),
        ok_exit: [0, 1].into(),
        output: OutputFormat::Json,
        schema: None,
        working_folder: Arc::new("/".into()),
        run_folder: "/runs/7".into(),
        spool_folder: Arc::new("/spool".into()),
        model: Some("m".into()),
        thinking: Some("high".into()),
        system_prompt: Some("be brief".into()),
        sub_agents: [AgentSummary {
            id: "scout".parse().expect("an agent"),
            description: Some("looks around".into()),
            why: Some("for a look".into()),
        }]
        .into(),
        grant: Arc::new(Grant { max_depth: 3, ..Grant::unbounded() }),
        pass: Some(Pass { socket: Arc::new("/s".into()), ticket: "t".into() }),
    }
}

/// Checks that the other side reads what this side wrote; compared by their debug texts, in which every field shows.
#[track_caller]
fn same<T: std::fmt::Debug>(there: &T, here: &T) {
    assert_eq!(format!("{there:?}"), format!("{here:?}"));
}

#[test]
fn a_launch_arrives_whole() {
    let json = launch::encode(launch()).expect("UTF-8");
    let there = launch::decode(&json).expect("the same document");
    same(&there, &launch());
    assert_eq!(there.pass, launch().pass, "its ticket, which is not shown");

    let plain =
        Launch { input: Input::Prompt, command: None, pass: None, context: vec![], ..launch() };
    let json = launch::encode(plain.clone()).expect("UTF-8");
    same(&launch::decode(&json).expect("the same document"), &plain);
}

#[test]
fn what_says_nothing_is_left_out_or_null_and_means_the_same() {
    let bare = launch::encode(Launch::bare("x")).expect("UTF-8");
    for name in ["context", "command", "okExit", "pass", "continues", "tools", "budget", "null"] {
        assert!(!bare.contains(name), "{name} in {bare}");
    }
    same(&launch::decode(&bare).expect("the same document"), &Launch::bare("x"));
    let nothing = r#"{"context":[],"contextManifest":null,"command":null,"okExit":[],"model":null,"thinking":null,
        "systemPrompt":null,"continues":false,"pass":null,"#;
    let no_terms = r#""grant":{"agents":[],"tools":{"allow":null,"deny":[]},"budget":{"tokens":null,"usd":null},
        "runTimeoutSeconds":0,"idleTimeoutSeconds":0,"#;
    let whole = bare.replacen('{', nothing, 1).replacen(r#""grant":{"#, no_terms, 1);
    same(&launch::decode(&whole).expect("the same document"), &Launch::bare("x"));

    let bound = Grant {
        agents: vec!["a".parse().expect("an agent")],
        tools: Rights { deny: ["exec".to_owned()].into(), ..Rights::all() }.into(),
        budget: BudgetGrant { tokens: Some(0), usd: None },
        run_timeout_seconds: 1,
        idle_timeout_seconds: 2,
        max_output_bytes: 3,
        max_memory_bytes: 4,
        max_open_files: 5,
        max_cpu_seconds: 6,
        ..Grant::unbounded()
    };
    let bound = Launch { grant: Arc::new(bound), ..Launch::bare("x") };
    let json = launch::encode(bound.clone()).expect("UTF-8");
    same(&launch::decode(&json).expect("the same document"), &bound);
}

#[test]
fn paths_that_are_no_text_cross_whole() {
    use std::os::unix::ffi::OsStringExt;
    let path = || PathBuf::from(std::ffi::OsString::from_vec(vec![b'/', 0xff]));
    let piece = InputRange { path: Arc::new(path()), offset: 0, length: 1, header: 0, hash: None };
    let mut context = launch().context;
    context[0].path = path();
    let launch = Launch {
        working_folder: Arc::new(path()),
        run_folder: path(),
        spool_folder: Arc::new(path()),
        context_manifest: Some(path()),
        input: Input::Piece(piece),
        pass: Some(Pass { socket: Arc::new(path()), ticket: "t".into() }),
        context,
        ..launch()
    };
    let json = launch::encode(launch.clone()).expect("plain data");
    assert_eq!(json.matches(r#"{"base64":"L/8="}"#).count(), 7, "{json}");
    same(&launch::decode(&json).expect("the same document"), &launch);
    let file = merge::File { path: path(), kind: ValueKind::Text, size: 1 };
    let meta = merge::Meta { key: "k".into(), status: RunStatus::Completed, file: Some(file) };
    let json = merge::encode(meta.clone()).expect("plain data");
    assert_eq!(merge::decode(&json).expect("the same document"), meta);
    let output = Output::File { path: path(), kind: ValueKind::Text };
    let finished = Finished { output, ..Finished::text("") };
    let outcome = finished::encode(&finished).expect("plain data");
    assert_eq!(finished::decode(outcome).expect("the same document").output, finished.output);
    let json = offshoot::encode(Some(&path())).expect("plain data");
    assert_eq!(offshoot::decode(&json).expect("the same document"), Some(path()));
}

#[test]
fn unknown_fields_pass_and_missing_or_newer_ones_do_not() {
    let json = launch::encode(launch()).expect("UTF-8");
    let more = json.replacen('{', r#"{"colour":{"of":["the","sky"]},"#, 1);
    same(&launch::decode(&more).expect("a field more"), &launch());

    let check = |json: &str, expected: &str| {
        let error = launch::decode(json).expect_err(expected);
        assert_eq!(error.code, AbiError::INVALID);
        assert!(error.message.contains(expected), "{error}");
    };
    check(&json.replacen(r#""v":1"#, r#""v":2"#, 1), "version 2 is not known here, 1 is");
    check(&json.replacen(r#""task""#, r#""tusk""#, 1), "missing field `task`");
    check("", "EOF");
    check("[]", "launch: ");
}

#[test]
fn every_kind_of_answer_arrives() {
    let finished = |reason, output| Finished {
        output,
        diagnostics: Some("said".into()),
        usage: Some(Usage { input: TokenCount::Known(3), ..Usage::UNKNOWN }),
        cost: Some(Cost::known(MicroUsd::from_micros(1_234_567))),
        ..Finished::of(reason)
    };
    let outputs = [
        Output::None,
        Output::Text("grüße \"\n".into()),
        Output::Json(JsonText::parse(r#"{"b":1, "a":2}"#.into()).expect("JSON")),
        Output::Bytes([0, 255].into()),
        Output::File { path: "/spool/x".into(), kind: ValueKind::Bytes },
    ];
    for output in outputs {
        let here = finished(Reason::Completed { exit_code: Some(1) }, output);
        let there = finished::decode(finished::encode(&here).expect("UTF-8")).expect("the same");
        same(&there, &here);
    }
    let here = finished(Reason::Cancelled { by: CancelledBy::Parent }, Output::None);
    same(&finished::decode(finished::encode(&here).expect("UTF-8")).expect("the same"), &here);
}

#[test]
fn an_answer_that_is_not_what_it_says_is_refused() {
    let text = finished::encode(&Finished::text("x")).expect("UTF-8");
    let check = |head: &str, body: &[u8], expected: &str| {
        let outcome = crate::Outcome {
            head_json: head.into(),
            body: abi_stable::std_types::RVec::from(body),
        };
        let error = finished::decode(outcome).expect_err(expected);
        assert!(error.message.contains(expected), "{error}");
    };
    check(&text.head_json, &[255], "its answer is not text");
    let json = text.head_json.replace(r#""text""#, r#""json""#);
    check(&json, b"{", "its answer is not JSON");
    check("{}", b"", "missing field `v`");

    let silent = r#"{"v":1,"reason":{"kind":"turn_limit"},"output":"none"}"#;
    let outcome = crate::Outcome { head_json: silent.into(), body: Default::default() };
    let finished = finished::decode(outcome).expect("what may be left out is left out");
    assert_eq!((finished.usage, finished.cost), (None, None));
}

#[test]
fn events_arrive() {
    let events = [
        RunEvent::Started(None),
        RunEvent::Started(Some(ProcessIdentity::new(5, 6))),
        RunEvent::Progress("a {line}".into()),
        RunEvent::ToolUsed(ToolUse::named("grep")),
        RunEvent::ToolUsed(ToolUse::new("grep", &json!({"pattern": "x".repeat(9_000)}))),
        RunEvent::ToolUsed(ToolUse::new("grep", &"a text")),
        RunEvent::Used { usage: Usage::UNKNOWN, cost: Cost::unknown() },
        RunEvent::Answers,
        RunEvent::BacksOff {
            why: "429".into(),
            wait: Duration::from_millis(1_500),
            is_pressure: true,
        },
        RunEvent::BacksOff { why: "cut".into(), wait: Duration::ZERO, is_pressure: false },
    ];
    for here in events {
        let (kind, payload) = event::encode(&here);
        assert_eq!(event::decode(kind, &payload).expect("the same"), Some(here));
    }
    let check = |kind, payload: &str, expected: Option<RunEvent>| {
        assert_eq!(event::decode(kind, payload).expect(payload), expected);
    };
    let line = |text: &str| Some(RunEvent::Progress(text.into()));
    let used = |used| Some(RunEvent::ToolUsed(used));
    check(2, r#"{"v":1,"name":"grep"}"#, used(ToolUse::named("grep")));
    let input = json!({"in": "src", "pattern": "word"});
    let tool = r#"{"v":1,"name":"grep","input":{"pattern":"word","in":"src"}}"#;
    check(2, tool, used(ToolUse::new("grep", &input)));
    check(3, r#"{"v":1,"name":"grep"}"#, line("grep has answered"));
    check(3, r#"{"v":1,"name":"grep","isError":true}"#, line("grep has failed"));
    check(5, r#"{"v":1,"status":"thinking"}"#, None);
    check(6, r#"{"v":1,"text":"hm"}"#, line("hm"));
    check(7, r#"{"v":1,"source":"acme","event":{"type":"delta","n":1}}"#, line("acme: delta"));
    check(7, r#"{"v":1,"source":"acme","event":[1]}"#, line("acme"));
    check(4_000_000, "whatever", None);
    let secrets = Secrets::new(["the-ticket-of-the-run".to_owned()]);
    for (tool, expected) in [
        (r#"{"v":1,"name":"sh","input":["x the-ticket-of-the-run"]}"#, r#"sh ["x [redacted]"]"#),
        (r#"{"v":1,"name":"sh the-ticket-of-the-run"}"#, "sh [redacted]"),
        (
            &json!({
                "v": 1, "name": "sh", "input": "[\"the-ticket", "inputSize": 500,
                "inputDigest": ContentHash::of(b"x"),
            })
            .to_string(),
            "sh [\"[redacted] …",
        ),
    ] {
        let told = event::decode_without(&secrets, 2, tool).expect(tool);
        let Some(RunEvent::ToolUsed(used)) = told else { panic!("{told:?}") };
        assert_eq!(used.to_string(), expected);
    }
    event::decode(4, "{}").expect_err("a usage without numbers");
    event::decode(7, "whatever").expect_err("no JSON");
}

#[test]
fn requests_for_children_and_their_answers_arrive() {
    let request = SpawnRequest { task: "t".into(), no_queue: true, ..SpawnRequest::default() };
    assert_eq!(spawn::decode(&spawn::encode(request.clone())).expect("the same"), request);
    let refusal = Refusal::new(RefusalCode::DepthLimit, "too deep").with_hint("stay");
    for answer in [Ok(RUN), Err(refusal)] {
        assert_eq!(spawn::decode_answer(&spawn::encode_answer(answer.clone())), Ok(answer));
    }
    spawn::decode_answer(r#"{"v":1}"#).expect_err("neither");
}

#[test]
fn waits_and_what_they_bring_arrive() {
    let any = WaitFor {
        runs: vec![RUN],
        mode: WaitMode::Any,
        timeout: Some(Duration::from_millis(1500)),
    };
    for wait in [WaitFor::default(), any] {
        assert_eq!(wait::decode(&wait::encode(wait.clone())), Ok(wait));
    }
    let envelope = |data, reason| {
        let ending = Ending { output: data, ..Ending::of(reason) };
        let (key, agent) = (launch().key, launch().agent);
        Envelope::of(&ending, key, RUN, agent, 1)
    };
    let completed = || Reason::Completed { exit_code: None };
    let reference = VariableRef { hash: ContentHash::of(b"x"), size: 1, kind: ValueKind::Result };
    let answer = WaitAnswer {
        ended: vec![
            envelope(Some(Payload::text("{}")), completed()),
            envelope(Some(Payload::json(r#"{"ref":1}"#.into()).expect("JSON")), completed()),
            envelope(Some(Payload::Stored(reference)), Reason::TurnLimit),
            envelope(None, completed()),
        ],
        pending: vec![RUN],
    };
    let json = wait::encode_answer(answer.clone()).expect("plain data");
    assert_eq!(wait::decode_answer(&json), Ok(answer));
}

#[test]
fn turns_and_letters_arrive() {
    for answer in [None, Some("so far".into())] {
        let ended = turn::Ended { answer, letters_taken: 2 };
        assert_eq!(turn::decode(&turn::encode(ended.clone())), Ok(ended));
    }
    for ruling in [Ruling::End, Ruling::Go(None), Ruling::Go(Some("results".into()))] {
        assert_eq!(turn::decode_answer(&turn::encode_answer(ruling.clone())), Ok(ruling));
    }
    assert_eq!(turn::decode_letter(&turn::encode_letter("hello".into())), Ok("hello".into()));
}

#[test]
fn the_rest_arrives() {
    let identity = ProcessIdentity::new(5, 6);
    for change in [
        group::Change::Starting,
        group::Change::Started(identity),
        group::Change::NotStarted,
        group::Change::Ended(identity),
    ] {
        assert_eq!(group::decode(&group::encode(change)), Ok(change));
    }
    let adopted = orphans::Orphans { pids: vec![5, 6], quiet: true };
    for orphans in [None, Some(adopted)] {
        assert_eq!(orphans::decode_answer(&orphans::encode_answer(orphans.clone())), Ok(orphans));
    }
    assert_eq!(shutdown::decode(&shutdown::encode(3)), Ok(3));
    assert_eq!(shutdown::decode(NOTHING), Ok(0));
    for mark in [None, Some("0a.1;".to_owned())] {
        assert_eq!(group::decode_answer(&group::encode_answer(mark.clone())), Ok(mark));
    }
    let file = merge::File { path: "/x".into(), kind: ValueKind::Text, size: 9 };
    for file in [None, Some(file)] {
        let meta = merge::Meta { key: "k".into(), status: RunStatus::Completed, file };
        assert_eq!(merge::decode(&merge::encode(meta.clone()).expect("UTF-8")), Ok(meta));
    }
    let manifest = manifest::Manifest {
        name: "p".into(),
        version: "0.1.0".into(),
        abi: crate::VERSION.into(),
        panic: manifest::Panic::Abort,
        description: "d".into(),
        license: "MIT".into(),
        config_schema: Some(JsonText::parse(r#"{"type": "object"}"#.into()).expect("JSON")),
        runtimes: vec![
            manifest::RuntimeEntry {
                config_schema: None,
                name: "r".into(),
                description: String::new(),
                abilities: Abilities { turns: true, ..Abilities::of_a_command() },
            },
            manifest::RuntimeEntry {
                config_schema: None,
                name: "s".into(),
                description: String::new(),
                abilities: Abilities {
                    cost: CostKnowledge::Unknown,
                    turns: false,
                    resumes: true,
                    enforces: None,
                },
            },
        ],
        merges: vec![manifest::MergeEntry {
            name: "m".into(),
            description: "n".into(),
            config_schema: None,
        }],
    };
    assert_eq!(manifest::decode(&manifest::encode(manifest.clone())), Ok(manifest));
}

#[test]
fn only_a_probe_is_a_probe() {
    for asked in [Probe::Panic, Probe::LatePanic, Probe::Events(u32::MAX), Probe::Bytes(u32::MAX)] {
        assert_eq!(probe::decode(&probe::encode(asked)), Some(asked));
    }
    let launch = launch::encode(Launch::bare(r#"{"v":1,"probe":"panic"}"#)).expect("UTF-8");
    let long = format!(r#"{{"v":1,"probe":"panic","x":"{}"}}"#, "x".repeat(100));
    for other in [
        "",
        "{}",
        "\"probe\"",
        r#"{"v":2,"probe":"panic"}"#,
        r#"{"v":1,"probe":"x"}"#,
        &launch,
        &long,
    ] {
        assert_eq!(probe::decode(other), None, "{other}");
    }
}
