use std::path::Path;
use std::sync::Arc;

use offshoot_model::{
    BudgetGrant, ContentHash, Grant, Rights, RootId, RunId, ValueKind, VariableRef,
};
use offshoot_runtime::ContextFile;
use uuid::Uuid;

use super::*;
use crate::AgentOptions;

fn launch() -> Launch {
    let run = RunId::from_uuid(Uuid::from_u128(7));
    Launch {
        run,
        root: RootId::new(run),
        working_folder: Arc::new("/project".into()),
        run_folder: "/data/runs/7".into(),
        spool_folder: Arc::new("/data/spool".into()),
        ..Launch::bare("the task")
    }
}

/// The arguments before the tools, and after them, where nothing was asked for.
const BEFORE: [&str; 6] = [
    "--print",
    "--input-format=stream-json",
    "--output-format=stream-json",
    "--verbose",
    "--include-partial-messages",
    "--session-id=00000000-0000-0000-0000-000000000007",
];
const DENIED: &str = "--disallowedTools=Agent,CronCreate,CronDelete,CronList,ListAgents,Monitor,\
                      ScheduleWakeup,SendMessage,Task,Workflow";
const STRICT: &str = "--strict-mcp-config";

#[derive(Default)]
struct Case {
    options: ClaudeOptions,
    files: Files,
    session: Option<Session>,
    own_server: bool,
    superuser: bool,
}

fn run(launch: &Launch, case: &Case) -> Result<Vec<String>, Reason> {
    let Case { options, files, session, own_server, superuser } = case;
    let session = session.as_ref().unwrap_or(&Session::New);
    let (own_server, superuser) = (*own_server, *superuser);
    let argv = argv(Parts { launch, options, files, session, own_server, superuser })?;
    Ok(argv.into_iter().map(|arg| arg.into_string().expect("UTF-8")).collect())
}

/// Checks what is there beside what is always there.
#[track_caller]
fn check(launch: &Launch, case: Case, expected: &[&str]) {
    let argv = run(launch, &case).expect("the runtime refuses to start");
    let always = |arg: &&String| {
        BEFORE.contains(&arg.as_str()) || arg.as_str() == DENIED || arg.as_str() == STRICT
    };
    let (same, other): (Vec<_>, Vec<_>) = argv.iter().partition(always);
    assert_eq!(same.len(), BEFORE.len() + 2 - usize::from(case.session.is_some()), "{argv:?}");
    assert_eq!(other, expected);
}

fn with(change: impl FnOnce(&mut Launch)) -> Launch {
    let mut launch = launch();
    change(&mut launch);
    launch
}

fn granted(change: impl FnOnce(&mut Grant)) -> Launch {
    let mut grant = Grant::unbounded();
    change(&mut grant);
    with(|launch| launch.grant = Arc::new(grant))
}

fn of(options: ClaudeOptions) -> Case {
    Case { options, ..Case::default() }
}

#[test]
fn the_least_there_can_be() {
    let argv = run(&launch(), &Case::default()).expect("the runtime refuses to start");
    assert_eq!(argv, [&BEFORE[..], &[DENIED, STRICT]].concat());
}

#[test]
fn neither_the_task_nor_the_command_is_an_argument() {
    let launch = with(|launch| launch.command = Some(Arc::from(["sh".to_owned()])));
    let argv = run(&launch, &Case::default()).expect("the runtime refuses to start").join(" ");
    assert!(!argv.contains("the task") && !argv.contains("=sh"), "{argv}");
}

#[test]
fn what_the_launch_says() {
    check(&with(|launch| launch.model = Some("opus".into())), Case::default(), &["--model=opus"]);
    for (thinking, effort) in
        [("off", "low"), ("minimal", "low"), ("medium", "medium"), ("max", "max")]
    {
        let launch = with(|launch| launch.thinking = Some(thinking.into()));
        check(&launch, Case::default(), &[&format!("--effort={effort}")]);
    }
    let file = |name: &str, folder: &str| ContextFile {
        name: name.into(),
        path: Path::new(folder).join(name),
        value: VariableRef { hash: ContentHash::of(b"x"), size: 1, kind: ValueKind::Text },
    };
    let context = with(|launch| {
        launch.context = vec![file("a", "/d/r1/context"), file("b", "/d/r1/context")];
        launch.context_manifest = Some("/d/r1/context.json".into());
    });
    check(&context, Case::default(), &["--add-dir=/d/r1", "--add-dir=/d/r1/context"]);
}

#[test]
fn what_the_grant_says() {
    let usd = |micros| {
        granted(|grant| {
            grant.budget = BudgetGrant { tokens: None, usd: Some(MicroUsd::from_micros(micros)) };
        })
    };
    check(&usd(250_000), Case::default(), &["--max-budget-usd=0.25"]);
    let refused = run(&usd(0), &Case::default());
    assert_eq!(refused, Err(Reason::Budget { unit: "usd".into(), request: None }), "zero is zero");
    let only = |rights: &[&str]| Some(rights.iter().map(ToString::to_string).collect());
    let read =
        granted(|grant| grant.tools = Rights { allow: only(&["read"]), ..Rights::all() }.into());
    check(&read, Case::default(), &["--tools=Read", "--allowedTools=Read"]);
    let nothing =
        granted(|grant| grant.tools = Rights { allow: only(&[]), ..Rights::all() }.into());
    check(&nothing, Case::default(), &["--tools="]);
}

#[test]
fn what_the_options_say() {
    let new = ClaudeOptions::default;
    check(&launch(), of(ClaudeOptions { bare: true, ..new() }), &["--bare"]);
    let fallback_models = vec!["a".to_owned(), "b".to_owned()];
    let all = ClaudeOptions { fallback_models, ..new() };
    check(&launch(), of(all.clone()), &["--fallback-model=a,b"]);
    let agent = |models: &[&str]| {
        let fallback_models = models.iter().map(ToString::to_string).collect();
        let own = AgentOptions { fallback_models, ..AgentOptions::default() };
        ClaudeOptions { agents: [("main".to_owned(), own)].into(), ..all.clone() }
    };
    check(&launch(), of(agent(&["c"])), &["--fallback-model=c"]);
    check(&launch(), of(agent(&[])), &["--fallback-model=a,b"]);
    check(&launch(), of(ClaudeOptions { max_turns: Some(3), ..new() }), &["--max-turns=3"]);
    let own = AgentOptions { max_turns: Some(2), ..AgentOptions::default() };
    let agents = [("main".to_owned(), own)].into();
    let both = ClaudeOptions { max_turns: Some(3), agents, ..new() };
    check(&launch(), of(both), &["--max-turns=2"]);
    let json_schema = Some("{}".to_owned());
    check(
        &launch(),
        of(ClaudeOptions { json_schema: json_schema.clone(), ..new() }),
        &["--json-schema={}"],
    );
    let schema = JsonText::parse(r#"{"type":"object"}"#.to_owned()).ok();
    let with_schema = Launch { schema, ..launch() };
    let expected = ["--json-schema={\"type\":\"object\"}"];
    check(&with_schema, of(ClaudeOptions { json_schema, ..new() }), &expected);
    let mode = |mode: &str| ClaudeOptions { permission_mode: Some(mode.into()), ..new() };
    check(&launch(), of(mode("plan")), &["--permission-mode=plan"]);
    let bypass = "--permission-mode=bypassPermissions";
    check(&launch(), of(mode("bypassPermissions")), &[bypass]);
    let superuser = Case { superuser: true, ..of(mode("bypassPermissions")) };
    let refused = run(&launch(), &superuser).expect_err("never for the superuser");
    assert_eq!(refused.code(), "cannot_start");
}

#[test]
fn what_was_written_for_it() {
    let files = Files {
        system_prompt: Some("/r/system-prompt".into()),
        servers: Some("/r/servers.json".into()),
        settings: Some("/r/settings.json".into()),
        piece: Some("/r/piece".into()),
    };
    let expected = [
        "--allowedTools=mcp__offshoot",
        "--mcp-config=/r/servers.json",
        "--append-system-prompt-file=/r/system-prompt",
        "--settings=/r/settings.json",
        "--add-dir=/r",
    ];
    check(&launch(), Case { files, own_server: true, ..Case::default() }, &expected);
}

#[test]
fn a_session_that_goes_on() {
    let session = Some(Session::Resume("abc".into()));
    check(&launch(), Case { session, ..Case::default() }, &["--resume=abc"]);
}
