//! Documents that are kept as files, `tests/wire`: what is written today is what they say, and what they say can be read.
//!
//! A file stays as it is once it was released: plugins and hosts that are out there write it. What is new is a field more in
//! a file of its own. In `later` lies what a later version may write.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Debug;
use std::fs;
use std::num::NonZeroU32;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use offshoot_model::*;
use offshoot_plugin_abi::wire::manifest::{self, Manifest, MergeEntry, Panic, RuntimeEntry};
use offshoot_plugin_abi::wire::probe::{self, Probe};
use offshoot_plugin_abi::wire::{
    delegate, event, finished, group, launch, merge, offshoot, orphans, refused, shutdown, spawn,
    turn, wait,
};
use offshoot_plugin_abi::{AbiError, Outcome, event as kind};
use offshoot_runtime::*;
use serde_json::{Value, json};
use uuid::Uuid;

mod later;

const RUN: RunId = RunId::from_uuid(Uuid::from_u128(7));

/// A launch that says all that one can say.
fn launch() -> Launch {
    let hash = ContentHash::of(b"x");
    let piece = InputRange {
        path: Arc::new("/data/in".into()),
        offset: 3,
        length: u64::MAX,
        header: 0,
        hash: Some(hash),
    };
    let grant = Grant {
        agents: vec!["a".parse().expect("an agent")],
        tools: Rights { allow: Some(["read".into()].into()), deny: ["exec".into()].into() }.into(),
        budget: BudgetGrant { tokens: Some(5), usd: Some(MicroUsd::from_micros(250_000)) },
        run_timeout_seconds: 1,
        idle_timeout_seconds: 2,
        max_output_bytes: 3,
        max_memory_bytes: 4,
        max_open_files: 5,
        max_cpu_seconds: 6,
        ..Grant::unbounded()
    };
    Launch {
        context: vec![ContextFile {
            name: "data".into(),
            path: "/data/data".into(),
            value: VariableRef { hash, size: 1, kind: ValueKind::Text },
        }],
        delegation: DelegationContext::new(
            ["a", "main"].map(step).into(),
            "count \"everything\"\n".into(),
        ),
        context_manifest: Some("/data/context.json".into()),
        input: Input::Piece(piece),
        command: Some(["wc".to_owned(), "-l".to_owned()].into()),
        ok_exit: [0, 1].into(),
        output: OutputFormat::Json,
        schema: None,
        model: Some("m".into()),
        thinking: Some("high".into()),
        system_prompt: Some("be brief".into()),
        sub_agents: [AgentSummary {
            id: "a".parse().expect("an agent"),
            description: Some("looks around".into()),
            why: Some("for a look".into()),
        }]
        .into(),
        grant: Arc::new(grant),
        continues: true,
        pass: Some(Pass { socket: Arc::new("/s".into()), ticket: "t".into() }),
        meter: Some(MeterPass {
            address: "http://127.0.0.1:1".into(),
            ticket: "m".into(),
            own_login: false,
            key_variable: None,
            protocols: MeterProtocols { anthropic: true, openai: true, gemini: true },
            output_tokens: Some(500),
        }),
        ..Launch::bare("count \"words\"\n")
    }
}

fn step(agent: &str) -> TraceStep {
    TraceStep { agent: agent.parse().expect("an agent"), run_id: Launch::bare("").run }
}

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/wire"))
}

/// The files of a folder, and which of them were looked at.
struct Files {
    folder: PathBuf,
    seen: BTreeSet<String>,
}

impl Files {
    fn of(folder: PathBuf) -> Self {
        Self { folder, seen: BTreeSet::new() }
    }

    fn take(&mut self, name: &str) -> String {
        let path = self.folder.join(name).with_extension("json");
        let text = fs::read_to_string(&path);
        assert!(self.seen.insert(name.to_owned()), "{name} twice");
        text.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Checks that what is written is the file, and that the file is read as what was written.
    fn both_ways<T: Debug>(
        &mut self,
        name: &str,
        value: T,
        write: impl FnOnce(&T) -> String,
        read: impl FnOnce(&str) -> Result<T, AbiError>,
    ) {
        let written = write(&value);
        let file = self.take(name);
        assert_eq!(written, file.trim_end(), "{name}");
        let read = read(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(format!("{read:?}"), format!("{value:?}"), "{name}");
    }

    fn none_is_left(self) {
        let files = fs::read_dir(&self.folder).expect("the folder of the documents");
        let names = files.map(|file| file.expect("an entry").path());
        let there: BTreeSet<String> = names
            .filter(|path| path.is_file())
            .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
            .collect();
        assert_eq!(self.seen, there);
    }
}

fn outcome(head: &str, body: &str) -> Outcome {
    Outcome { head_json: head.into(), body: body.as_bytes().into() }
}

fn refused_by(details: &str) -> AbiError {
    AbiError { detail_json: details.into(), ..AbiError::new(AbiError::FAILED, "no") }
}

fn usage() -> Usage {
    Usage {
        input: TokenCount::AtLeast(12),
        output: TokenCount::Known(3),
        cache_read: TokenCount::Known(0),
        cache_write: TokenCount::Unknown,
    }
}

fn process() -> ProcessIdentity {
    ProcessIdentity { boot: Some(BootId::from_u128(9)), ..ProcessIdentity::new(4711, 123_456) }
}

fn refusal() -> Refusal {
    let governed_by = GovernedBy {
        key: "subagents.maxDepth".into(),
        agent: Some("main".into()),
        value: JsonText::parse("3".into()).expect("JSON"),
        origin: "offshoot.toml".into(),
    };
    Refusal::new(RefusalCode::DepthLimit, "too deep")
        .with_hint("stay")
        .governed_by(Some(Box::new(governed_by)))
}

#[test]
fn documents_are_written_and_read_as_ever() {
    let mut files = Files::of(folder());
    offers(&mut files);
    runs(&mut files);
    requests(&mut files);
    the_rest(&mut files);
    files.none_is_left();
}

fn offers(files: &mut Files) {
    let entry = |name: &str, abilities| RuntimeEntry {
        config_schema: None,
        name: name.into(),
        description: "d".into(),
        abilities,
    };
    let knows = |cost, enforces| Abilities { cost, turns: true, resumes: true, enforces };
    let rights = || Some(["read".to_owned()].into());
    let manifest = Manifest {
        name: "p".into(),
        version: "0.1.0".into(),
        abi: "1.0.0".into(),
        panic: Panic::Unwind,
        description: "d".into(),
        license: "MIT".into(),
        config_schema: Some(JsonText::parse(r#"{"type":"object"}"#.into()).expect("JSON")),
        runtimes: vec![
            entry("none", Abilities::of_a_command()),
            entry("reported", knows(CostKnowledge::Reported, None)),
            entry("bounded", knows(CostKnowledge::Bounded, rights())),
            entry("unknown", knows(CostKnowledge::Unknown, None)),
        ],
        merges: vec![MergeEntry { name: "m".into(), description: "d".into(), config_schema: None }],
    };
    let write = |manifest: &Manifest| manifest::encode(manifest.clone());
    files.both_ways("manifest", manifest.clone(), write, manifest::decode);
    let schema = || JsonText::parse(r#"{"required":["voice"]}"#.into()).ok();
    let runtime = RuntimeEntry { config_schema: schema(), ..entry("r", Abilities::of_a_command()) };
    let merge = MergeEntry { name: "m".into(), description: "d".into(), config_schema: schema() };
    let manifest = Manifest { runtimes: vec![runtime], merges: vec![merge], ..manifest };
    files.both_ways("manifest-schemas", manifest, write, manifest::decode);
    let write = |abilities: &Option<Abilities>| manifest::encode_made(abilities.clone());
    files.both_ways("made", None, write, manifest::decode_made);
    let able = Some(knows(CostKnowledge::Bounded, rights()));
    files.both_ways("made-abilities", able, write, manifest::decode_made);
    let write = |path: &Option<PathBuf>| offshoot::encode(path.as_deref()).expect("UTF-8");
    files.both_ways("offshoot", Some("/usr/bin/offshoot".into()), write, offshoot::decode);
    files.both_ways("offshoot-none", None, write, offshoot::decode);
    let bytes = Some(not_text(b"/opt/\xff/offshoot"));
    files.both_ways("offshoot-bytes", bytes, write, offshoot::decode);
    let write = |forced: &usize| shutdown::encode(*forced);
    files.both_ways("shutdown", 3, write, shutdown::decode);
}

/// A path that is not UTF-8.
fn not_text(bytes: &[u8]) -> PathBuf {
    OsStr::from_bytes(bytes).into()
}

fn runs(files: &mut Files) {
    let write = |launch: &Launch| launch::encode(launch.clone()).expect("UTF-8");
    files.both_ways("launch", launch(), write, launch::decode);
    files.both_ways("launch-bare", Launch::bare("x"), write, launch::decode);
    let empty = Launch { input: Input::Empty, ..Launch::bare("x") };
    files.both_ways("launch-empty", empty, write, launch::decode);
    let folder = Arc::new(not_text(b"/home/\xff"));
    let paths = Launch { working_folder: folder, ..Launch::bare("x") };
    files.both_ways("launch-paths", paths, write, launch::decode);

    let finished = |reason, output| Finished {
        output,
        diagnostics: Some("said".into()),
        usage: Some(usage()),
        cost: Some(Cost::known(MicroUsd::from_micros(10_000))),
        ..Finished::of(reason)
    };
    let head =
        |finished: &Finished| finished::encode(finished).expect("UTF-8").head_json.into_string();
    let completed = || Reason::Completed { exit_code: Some(0) };
    let json = JsonText::parse("[1]".into()).expect("JSON");
    for (name, output, body) in [
        ("outcome-none", Output::None, ""),
        ("outcome-text", Output::Text("x".into()), "x"),
        ("outcome-json", Output::Json(json), "[1]"),
        ("outcome-bytes", Output::Bytes(b"x".as_slice().into()), "x"),
        ("outcome-file", Output::File { path: "/x".into(), kind: ValueKind::Text }, ""),
    ] {
        let read = |head: &str| finished::decode(outcome(head, body));
        files.both_ways(name, finished(completed(), output), head, read);
    }

    let busy = Reason::RuntimeError { message: "busy".into(), retryable: true };
    let retry_after = Some(Duration::from_millis(1500));
    let later = Finished { retry_after, ..finished(busy, Output::None) };
    let read = |head: &str| finished::decode(outcome(head, ""));
    files.both_ways("outcome-retry", later, head, read);
    let quota = |window: Option<&str>, until: Option<u64>| {
        let (window, until) = (window.map(str::to_owned), until.map(Timestamp::from_micros));
        finished(Reason::Quota { window, until }, Output::None)
    };
    let dated = quota(Some("five_hour"), Some(1_800_000_000_000_000));
    files.both_ways("outcome-quota", dated, head, read);
    let later = Finished { retry_after, ..quota(None, None) };
    files.both_ways("outcome-quota-later", later, head, read);

    let message = || "m".to_owned();
    let cancelled = |by| Reason::Cancelled { by };
    let reasons = vec![
        completed(),
        Reason::ExitCode { code: 1 },
        Reason::Signal { signal: 9 },
        Reason::CannotStart { message: message() },
        Reason::NoRoom { message: message() },
        Reason::InputUnreadable { message: message() },
        Reason::RuntimeError { message: message(), retryable: true },
        Reason::PluginPanic { message: message() },
        Reason::TurnLimit,
        Reason::Budget { unit: "usd".into(), request: None },
        Reason::Timeout { seconds: 1 },
        Reason::Idle { seconds: 1 },
        Reason::OutputLimit { bytes: 1 },
        Reason::OutOfMemory { bytes: Some(1) },
        Reason::CpuLimit { seconds: 1 },
        Reason::Deadline,
        cancelled(CancelledBy::Operator),
        cancelled(CancelledBy::Parent),
        cancelled(CancelledBy::ParentEnded),
        cancelled(CancelledBy::EarlyAnswer),
        cancelled(CancelledBy::MaxFail),
        cancelled(CancelledBy::Budget),
        Reason::PiecesFailed { failed: 1, total: 2 },
        Reason::NotRecorded { message: message() },
        Reason::Interrupted,
        Reason::ClientGone,
    ];
    // Each as the outcome of a run.
    let write = |reasons: &Vec<Reason>| {
        let heads = reasons.iter().map(|reason| head(&Finished::of(reason.clone())));
        format!("[{}]", heads.collect::<Vec<_>>().join(","))
    };
    let read = |json: &str| {
        let heads: Vec<Value> = serde_json::from_str(json).expect("a list");
        let read = |head: Value| finished::decode(outcome(&head.to_string(), ""));
        heads.into_iter().map(|head| read(head).map(|finished| finished.reason)).collect()
    };
    files.both_ways("outcomes", reasons, write, read);

    let told = |kind: u32| move |json: &str| event::decode(kind, json);
    let write =
        |event: &Option<RunEvent>| event::encode(event.as_ref().expect("one")).1.into_owned();
    let used = RunEvent::Used { usage: usage(), cost: Cost::unknown() };
    files.both_ways("usage", Some(used), write, told(kind::USAGE));
    let started = |process| Some(RunEvent::Started(process));
    for (name, used) in [
        ("tool-start", ToolUse::new("grep", &json!({"pattern": "x"}))),
        ("tool-start-bare", ToolUse::named("grep")),
        ("tool-start-long", ToolUse::new("grep", &"x".repeat(500))),
    ] {
        let used = Some(RunEvent::ToolUsed(used));
        files.both_ways(name, used, write, told(kind::TOOL_START));
    }
    files.both_ways("status", started(Some(process())), write, told(kind::STATUS));
    files.both_ways("status-bare", started(None), write, told(kind::STATUS));
    let (why, wait) = ("429 slow down".into(), Duration::from_millis(1_500));
    let backs_off = Some(RunEvent::BacksOff { why, wait, is_pressure: true });
    files.both_ways("status-backs-off", backs_off, write, told(kind::STATUS));
    let changed = Some(RunEvent::ModelChanged("small".into()));
    files.both_ways("status-model-changed", changed, write, told(kind::STATUS));
    // Those that are only ever read here.
    for (name, kind, line) in [
        ("tool-end", kind::TOOL_END, "grep has failed"),
        ("note", kind::NOTE, "hm"),
        ("raw", kind::RAW, "acme: delta"),
    ] {
        let read = event::decode(kind, &files.take(name));
        assert_eq!(read, Ok(Some(RunEvent::Progress(line.into()))), "{name}");
    }
}

fn requests(files: &mut Files) {
    let request = SpawnRequest {
        task_type: None,
        schema: None,
        isolation: None,
        task: "t".into(),
        agent: Some("a".parse().expect("an agent")),
        label: Some("l".into()),
        context: vec![ContextEntry {
            name: "data".into(),
            value: VariableRef { hash: ContentHash::of(b"x"), size: 1, kind: ValueKind::Json },
        }],
        command: Some(["wc".to_owned()].into()),
        model: Some("m".into()),
        thinking: Some("high".into()),
        run_timeout_seconds: Some(60),
        tools: Some(Rights { deny: ["exec".into()].into(), ..Rights::all() }),
        budget: Some(BudgetRequest { tokens: Some(5), usd: Some(MicroUsd::from_micros(250_000)) }),
        no_queue: true,
        cleanup: Some(Cleanup::Delete),
        weight: None,
        chosen_by: Arc::default(),
        merges: None,
        max_depth: None,
        ok_exit: None,
        output: None,
    };
    let write = |request: &SpawnRequest| spawn::encode(request.clone());
    files.both_ways("spawn", request, write, spawn::decode);
    let request = SpawnRequest {
        task: "t".into(),
        weight: NonZeroU32::new(3),
        max_depth: Some(2),
        ok_exit: Some([0, 1].into()),
        output: Some(OutputFormat::Json),
        schema: None,
        ..SpawnRequest::default()
    };
    files.both_ways("spawn-limits", request, write, spawn::decode);
    let write = |answer: &Result<RunId, Refusal>| spawn::encode_answer(answer.clone());
    files.both_ways("spawn-run", Ok(RUN), write, spawn::decode_answer);
    files.both_ways("spawn-refusal", Err(refusal()), write, spawn::decode_answer);
    let invalid = Refusal::invalid("task", "it is empty");
    files.both_ways("spawn-invalid", Err(invalid), write, spawn::decode_answer);
    let request = SpawnRequest {
        task: "format the commit".into(),
        task_type: "format".parse().ok(),
        ..SpawnRequest::default()
    };
    let write = |(request, only): &(SpawnRequest, bool)| delegate::encode(request.clone(), *only);
    files.both_ways("delegate", (request.clone(), false), write, delegate::decode);
    files.both_ways("delegate-choose", (request, true), write, delegate::decode);
    let agent = || AgentId::parse("git-coordinator").expect("an id");
    let score = FitScore { agent: agent(), score: 2.5, words: vec!["commit".to_owned()] };
    let learned = || Some("delegate it: of the type `format` it takes less time".to_owned());
    let write = |answer: &Delegated| delegate::encode_answer(answer.clone());
    let accepted = Delegated::Accepted {
        run_id: RUN,
        session_key: launch().key,
        agent: agent(),
        lowered: Vec::new(),
        scores: vec![score.clone()],
        learned: learned(),
    };
    files.both_ways("delegate-accepted", accepted, write, delegate::decode_answer);
    let chosen = Delegated::Chosen { agent: agent(), scores: vec![score], learned: None };
    files.both_ways("delegate-chosen", chosen, write, delegate::decode_answer);
    let directly = Delegated::ExecuteDirectly {
        reason: Directly::Learned,
        message: "it takes less time".to_owned(),
        observation: Some(2),
        scores: Vec::new(),
        learned: learned(),
    };
    files.both_ways("delegate-directly", directly, write, delegate::decode_answer);
    let write = |(number, success): &(u32, bool)| delegate::encode_observed(*number, *success);
    files.both_ways("observed", (2, true), write, delegate::decode_observed);

    let write = |refusal: &Option<Refusal>| {
        refused::encode(refusal.clone().expect("one")).detail_json.into_string()
    };
    let read = |json: &str| Ok(refused::decode(&refused_by(json)));
    files.both_ways("wait-refusal", Some(refusal()), write, read);

    let any = WaitFor {
        runs: vec![RUN],
        mode: WaitMode::Any,
        timeout: Some(Duration::from_millis(1500)),
    };
    let write = |wait: &WaitFor| wait::encode(wait.clone());
    files.both_ways("wait", any, write, wait::decode);
    files.both_ways("wait-all", WaitFor::default(), write, wait::decode);
    let reference = VariableRef { hash: ContentHash::of(b"x"), size: 1, kind: ValueKind::Result };
    let envelope = |output, reason| {
        let ending = Ending { output, usage: usage(), ..Ending::of(reason) };
        Envelope::of(&ending, launch().key, RUN, launch().agent, 1)
    };
    let said =
        "{\"error\":\"no route\",\"recovery_suggestion\":\"ask again\",\"parent_can_retry\":true}";
    let mut with_words = envelope(None, Reason::Interrupted);
    let error = with_words.error.as_mut().expect("it is no success");
    error.said = SaidError::read(said).map(Box::new);
    let json = JsonText::parse("[1]".into()).expect("JSON");
    let completed = || Reason::Completed { exit_code: None };
    let answer = WaitAnswer {
        ended: vec![
            envelope(Some(Payload::text("x")), completed()),
            envelope(Some(Payload::Json(json)), Reason::Timeout { seconds: 1 }),
            envelope(Some(Payload::Stored(reference)), Reason::TurnLimit),
            envelope(None, Reason::Cancelled { by: CancelledBy::Parent }),
            with_words,
            envelope(None, Reason::ClientGone),
        ],
        pending: vec![RUN],
    };
    let write = |answer: &WaitAnswer| wait::encode_answer(answer.clone()).expect("plain data");
    files.both_ways("wait-answer", answer, write, wait::decode_answer);

    let ended = turn::Ended { answer: Some("so far".into()), letters_taken: 2 };
    let write = |ended: &turn::Ended| turn::encode(ended.clone());
    files.both_ways("turn", ended, write, turn::decode);
    let write = |ruling: &Ruling| turn::encode_answer(ruling.clone());
    files.both_ways("turn-end", Ruling::End, write, turn::decode_answer);
    files.both_ways("turn-go", Ruling::Go(Some("r".into())), write, turn::decode_answer);
    let write = |letter: &Arc<str>| turn::encode_letter(Arc::clone(letter));
    files.both_ways("letter", "one more thing".into(), write, turn::decode_letter);
}

fn the_rest(files: &mut Files) {
    use group::Change;
    for (name, change) in [
        ("group-starting", Change::Starting),
        ("group-started", Change::Started(process())),
        ("group-not-started", Change::NotStarted),
        ("group-ended", Change::Ended(process())),
    ] {
        files.both_ways(name, change, |change| group::encode(*change), group::decode);
    }
    let write = |mark: &Option<String>| group::encode_answer(mark.clone());
    files.both_ways("group-answer", Some("0a.1;".to_owned()), write, group::decode_answer);
    let write = |orphans: &Option<orphans::Orphans>| orphans::encode_answer(orphans.clone());
    let adopted = orphans::Orphans { pids: vec![5, 6], quiet: true };
    files.both_ways("orphans", Some(adopted), write, orphans::decode_answer);
    files.both_ways("orphans-none", None, write, orphans::decode_answer);

    let kinds = [
        ("text", ValueKind::Text),
        ("json", ValueKind::Json),
        ("result", ValueKind::Result),
        ("bytes", ValueKind::Bytes),
    ];
    for (name, kind) in kinds {
        let file = Some(merge::File { path: "/x".into(), kind, size: 9 });
        let meta = merge::Meta { key: "k".into(), status: RunStatus::Completed, file };
        let write = |meta: &merge::Meta| merge::encode(meta.clone()).expect("UTF-8");
        files.both_ways(&format!("result-{name}"), meta, write, merge::decode);
    }
    for (name, probe) in [
        ("probe-panic", Probe::Panic),
        ("probe-late-panic", Probe::LatePanic),
        ("probe-events", Probe::Events(10_000)),
        ("probe-bytes", Probe::Bytes(1)),
    ] {
        let read = |json: &str| probe::decode(json).ok_or_else(|| refused_by("no probe"));
        files.both_ways(name, probe, |probe| probe::encode(*probe), read);
    }
}
