//! The recorded output of the real program, through the parser: one ending for each file.

use std::fmt::Write;
use std::path::Path;

use offshoot_model::TokenCount;
use offshoot_process::{Exit, Finished as Ended, Kept, Output as Stream};
use offshoot_runtime::{Finished, Output, OutputFormat};
use offshoot_runtime_claude::{Effect, Talk, parse_line};

/// The exit code of the process in each recording.
const RECORDED: &[(&str, i32)] = &[
    ("success", 0),
    ("tool_use", 0),
    ("tool_refused", 0),
    ("mcp_tool", 0),
    ("mcp_failed", 0),
    ("structured_output", 0),
    ("two_turns", 0),
    ("resumed", 0),
    ("rate_limit_then_success", 0),
    ("stream_cut_then_success", 0),
    ("not_logged_in", 1),
    ("invalid_key", 1),
    ("invalid_request", 1),
    ("model_not_found", 1),
    ("overloaded", 1),
    ("max_turns", 1),
    ("max_budget", 1),
    ("resume_unknown", 1),
];

fn read(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    std::fs::read_to_string(folder.join(format!("{name}.jsonl"))).expect("a recording")
}

fn ended(exit: Exit) -> Ended {
    let stderr = Stream { kept: Kept::Memory(b"a complaint\n".to_vec()), ..Stream::default() };
    Ended { stderr, ..Ended::of(exit) }
}

/// Everything that a recording tells, and how it ends.
fn replay(lines: &str, exit: Exit) -> String {
    let mut talk = Talk::new(false);
    talk.said("a prompt".to_owned());
    let mut told = String::new();
    for line in lines.lines() {
        let words = match talk.hear(parse_line(line.as_bytes())) {
            None => continue,
            Some(Effect::Told { line, tools, .. }) => {
                let tools = tools.iter().map(|used| format!("tool        {used}"));
                let line = line.map(|line| format!("progress    {line}"));
                line.into_iter().chain(tools).collect::<Vec<_>>().join("\n")
            }
            Some(Effect::BacksOff { why, wait, is_pressure }) => {
                format!("backs off   {wait:?}: {why}, pressure: {is_pressure}")
            }
            Some(Effect::Used | Effect::QuotaLeft(_)) => {
                let tokens = talk.meter().usage().total().known().expect("everything is told");
                format!("used        {tokens} tokens")
            }
            Some(Effect::TurnEnded) => format!("turn ended  {:?}", talk.answer()),
            Some(Effect::End) => "end".to_owned(),
            Some(Effect::AskUsage) => "asks what was used".to_owned(),
            Some(Effect::Answered(request)) => format!("answered    {request}"),
        };
        writeln!(told, "{words}").expect("writing into a string cannot fail");
    }
    let Finished { reason, output, diagnostics, usage, cost, .. } =
        talk.finish(ended(exit), OutputFormat::Text);
    let output = match output {
        Output::Text(text) => format!("text {text:?}"),
        Output::Json(json) => format!("json {}", json.as_str()),
        other => format!("{other:?}"),
    };
    let (usage, cost) = usage.zip(cost).expect("no usage or no cost was reported");
    let tokens = match usage.total() {
        TokenCount::Known(tokens) => tokens.to_string(),
        TokenCount::AtLeast(tokens) => format!("at least {tokens}"),
        TokenCount::Estimated(tokens) => format!("about {tokens}"),
        TokenCount::Unknown => "unknown".to_owned(),
    };
    let (known, unknown) = (cost.known_usd, cost.unknown_runs);
    let retryable = reason.is_retryable();
    writeln!(told, "reason      {reason} [{}, retryable: {retryable}]", reason.code())
        .and_then(|()| writeln!(told, "output      {output}"))
        .and_then(|()| writeln!(told, "diagnostics {diagnostics:?}"))
        .and_then(|()| writeln!(told, "tokens      {tokens}"))
        .and_then(|()| writeln!(told, "cost        {known} USD, {unknown} unknown"))
        .expect("writing into a string cannot fail");
    told
}

#[test]
fn each_recording_has_its_ending() {
    let mut all = String::new();
    for (name, code) in RECORDED {
        let told = replay(&read(name), Exit::Code(*code));
        write!(all, "── {name}\n{told}").expect("writing into a string cannot fail");
    }
    insta::assert_snapshot!(all);
}

#[test]
fn every_recording_is_looked_at() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the recordings")
        .map(|entry| entry.expect("an entry").path().file_stem().map(|name| name.to_owned()))
        .map(|name| name.and_then(|name| name.into_string().ok()).expect("a name"))
        .collect();
    files.sort_unstable();
    let mut listed: Vec<_> = RECORDED.iter().map(|(name, _)| (*name).to_owned()).collect();
    listed.sort_unstable();
    assert_eq!(files, listed);
}

#[test]
fn without_the_tools_it_needs_a_session_is_ended() {
    let mut talk = Talk::new(true);
    let recording = read("mcp_failed");
    let first = recording.lines().find_map(|line| talk.hear(parse_line(line.as_bytes())));
    assert_eq!(first, Some(Effect::End));
    let reason = talk.finish(ended(Exit::Signal(9)), OutputFormat::Text).reason;
    assert_eq!(
        reason.to_string(),
        "runtime error: the tools for sub-agents did not come up: failed"
    );
}

/// Wherever a recording of a success breaks off, it is no success, and its cost is unknown.
#[test]
fn a_session_that_breaks_off_is_no_success() {
    let whole = read("tool_use");
    let lines: Vec<&str> = whole.lines().collect();
    for length in 0..lines.len() {
        for exit in [Exit::Code(0), Exit::Code(1), Exit::Signal(9)] {
            let mut talk = Talk::new(false);
            for line in &lines[..length] {
                talk.hear(parse_line(line.as_bytes()));
            }
            let half = &lines[length].as_bytes()[..lines[length].len() / 2];
            talk.hear(parse_line(half));
            let began = length > 1;
            let finished = talk.finish(ended(exit), OutputFormat::Text);
            assert!(!finished.reason.status().is_success(), "{length} lines, {exit:?}");
            assert!(finished.diagnostics.is_some(), "{length} lines, {exit:?}");
            if began {
                assert_eq!(
                    finished.cost.expect("no cost was reported").unknown_runs,
                    1,
                    "{length} lines, {exit:?}"
                );
            }
        }
    }
}
