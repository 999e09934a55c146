//! `offshoot spawn`.

use std::path::PathBuf;

use clap::{ArgAction, Args};
use offshoot_door::{Client, ContextGrant, Spawn, Spawned, Wait};
use offshoot_model::{
    BudgetRequest, Cleanup, Isolation, MicroUsd, OutputFormat, Rights, RunId, TaskType,
};

use super::wait;
use crate::arguments::ContextArgument;
use crate::arguments::value::{exit_code, seconds, usd, value, whole};
use crate::arguments::words::{CLEANUP, OUTPUT, one_of};
use crate::code::NoteCode;
use crate::door::visit;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::load;
use crate::work::engine::block_on;
use crate::work::schema;

/// The texts that are a type of tasks.
const TYPES: &str = "1 to 64 letters, digits and `_`, `-`, `.`, `:` or `/`";

/// Ask for a child, from inside an agent
///
/// Prints the id of the run as soon as it is admitted; with --wait its answer. The child belongs to the session that
/// asks, whatever this command is told: who asks is known from its ticket. Limits can only be lower than those of the session:
/// what is higher is refused, or lowered with a warning that names the setting.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  One child for a part of the work, and its answer:
    \"$OFFSHOOT\" spawn --wait --label docs docs -- my-agent
  Several at once, then all their answers:
    for part in a b c; do \"$OFFSHOOT\" spawn \"$part\" -- my-agent >/dev/null; done; \"$OFFSHOOT\" wait")]
pub(crate) struct SpawnArguments {
    /// The agent, by its id in the configuration [default: the caller's own]
    #[arg(long, value_name = "ID")]
    pub(crate) agent: Option<String>,

    /// A short name for people, shown in the tree
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,

    /// The type of the task, such as validate_syntax: `offshoot stats --delegation` counts by it how such tasks went
    #[arg(long = "type", value_name = "TYPE", value_parser = value::<TaskType>(TYPES, "validate_syntax"))]
    pub(crate) task_type: Option<TaskType>,

    /// A file that the child may read, known to it by NAME; may be given more than once
    #[arg(long = "context", value_name = "NAME=FILE", value_parser = ContextArgument::parser())]
    pub(crate) context: Vec<ContextArgument>,

    /// A value of this session that the child may read, or `sub-result-RUN`; may be given more than once
    #[arg(long, value_name = "NAME")]
    pub(crate) give: Vec<String>,

    /// Another model than the configured one
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,

    /// Another thinking level than the configured one
    #[arg(long, value_name = "LEVEL")]
    pub(crate) thinking: Option<String>,

    /// Time that it may run, such as 90s; never more than the session that asks
    #[arg(long, value_name = "DURATION", value_parser = seconds)]
    pub(crate) timeout: Option<u64>,

    /// Dollars to reserve for it, out of those that the session has left
    #[arg(long, value_name = "USD", value_parser = usd)]
    pub(crate) budget_usd: Option<MicroUsd>,

    /// Tokens to reserve for it, in the same way
    #[arg(long, value_name = "N", value_parser = whole(0_u64.., "20000"))]
    pub(crate) budget_tokens: Option<u64>,

    /// The deepest level that anything below it may have, counted from the root of the tree
    #[arg(long, value_name = "N", value_parser = whole(0..=u32::MAX, "2"))]
    pub(crate) max_depth: Option<u32>,

    /// The only rights that it has, such as read,search; the session that asks must have each
    #[arg(long, value_name = "RIGHTS", value_delimiter = ',')]
    pub(crate) tools: Option<Vec<String>>,

    /// The form of its answer: json where it is an object or an array, else text [default: that of the tree]
    #[arg(long, value_name = "FORMAT", value_parser = one_of(OUTPUT))]
    pub(crate) output: Option<OutputFormat>,

    /// The form that its answer must have, as a file with a JSON Schema [default: that of its agent]
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: Option<PathBuf>,

    /// The folder in which it works: none, worktree (a git worktree of its own), worktree:COMMIT or copy; its changes come back as a
    /// patch [default: as configured]
    #[arg(long, value_name = "KIND", value_parser = value::<Isolation>(Isolation::FORMS, "worktree"))]
    pub(crate) isolation: Option<Isolation>,

    /// Exit codes of its command that mean success [default: those of the tree]
    #[arg(long, value_name = "CODES", value_delimiter = ',', value_parser = exit_code)]
    pub(crate) ok_exit: Option<Vec<i32>>,

    /// Wait for a slot where none is free; false: refused as `busy` then
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    pub(crate) queue: bool,

    /// The folder in which it works [default: the current one]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cwd: Option<PathBuf>,

    /// Keep or delete its session once its answer was handed over: delete removes its folder and leaves it out of `tree`; an
    /// explicit keep above it holds [default: as configured]
    #[arg(long, value_name = "WHAT", value_parser = one_of(CLEANUP))]
    pub(crate) cleanup: Option<Cleanup>,

    /// Wait for its answer and print that
    #[arg(long)]
    pub(crate) wait: bool,

    /// The task of the child
    #[arg(value_name = "TASK")]
    pub(crate) task: String,

    /// The program to run, with its arguments; needs the right `exec`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Asks for a child.
pub(crate) fn run(arguments: &SpawnArguments, cx: &Invocation) -> Result<Exit, Failure> {
    let spawn = request(arguments, cx)?;
    block_on(async {
        let supervisor = visit(cx).await?;
        child(&supervisor, spawn, &arguments.context, arguments.wait, cx).await
    })
}

/// The child that a command line describes, but for the files that it hands in.
pub(super) fn request(arguments: &SpawnArguments, cx: &Invocation) -> Result<Spawn, Failure> {
    let budget = BudgetRequest { tokens: arguments.budget_tokens, usd: arguments.budget_usd };
    Ok(Spawn {
        agent: arguments.agent.as_deref().map(load::agent_id).transpose()?,
        label: arguments.label.clone(),
        task_type: arguments.task_type.clone(),
        command: Some(arguments.command.clone()),
        model: arguments.model.clone(),
        thinking: arguments.thinking.clone(),
        run_timeout_seconds: arguments.timeout,
        budget: (budget != BudgetRequest::default()).then_some(budget),
        max_depth: arguments.max_depth,
        tools: arguments.tools.as_ref().map(|allow| Rights {
            allow: Some(allow.iter().cloned().collect()),
            ..Rights::default()
        }),
        output: arguments.output,
        schema: arguments.schema.as_deref().map(|file| schema::read(file, cx)).transpose()?,
        isolation: arguments.isolation.clone(),
        ok_exit: arguments.ok_exit.clone(),
        queue: (!arguments.queue).then_some(false),
        cwd: arguments.cwd.as_ref().map(|folder| cx.absolute(folder)),
        cleanup: arguments.cleanup,
        context: arguments.give.iter().cloned().map(given).collect(),
        ..Spawn::task(&arguments.task)
    })
}

/// Asks for this child, in this working directory unless it names one, and with these files, and prints its id; or waits for its answer.
pub(super) async fn child(
    supervisor: &Client,
    spawn: Spawn,
    files: &[ContextArgument],
    wait: bool,
    cx: &Invocation,
) -> Result<Exit, Failure> {
    let spawn = complete(supervisor, spawn, files, cx).await?;
    let Spawned { run_id, session_key, lowered, changed } = supervisor.call(spawn).await?;
    lowered.iter().for_each(|limit| cx.output.warning(NoteCode::LimitLowered, limit));
    if wait {
        return answer_of(supervisor, run_id, cx).await;
    }
    let mut accepted = serde_json::json!({
        "status": "accepted", "runId": run_id, "sessionKey": session_key,
    });
    if !lowered.is_empty() {
        accepted["lowered"] = serde_json::json!(lowered);
    }
    if !changed.is_empty() {
        accepted["changed"] = serde_json::json!(changed);
    }
    cx.output.result(&accepted, || cx.output.line(run_id))?;
    Ok(Exit::Done)
}

/// Waits for a child and prints its answer.
pub(super) async fn answer_of(
    supervisor: &Client,
    run: RunId,
    cx: &Invocation,
) -> Result<Exit, Failure> {
    let wait = Wait { runs: vec![run.into()], ..Wait::default() };
    wait::print(supervisor, wait, wait::Form::One, cx).await
}

/// The same child with these files, and in this working directory unless it names one.
pub(super) async fn complete(
    supervisor: &Client,
    spawn: Spawn,
    files: &[ContextArgument],
    cx: &Invocation,
) -> Result<Spawn, Failure> {
    let mut context = hand_in(supervisor, files, cx).await?;
    context.extend(spawn.context.iter().cloned());
    Ok(Spawn {
        context,
        command: spawn.command.filter(|command| !command.is_empty()),
        cwd: spawn.cwd.or_else(|| Some(cx.environment.working_folder.clone())),
        ..spawn
    })
}

/// Hands in files as values of the session, for its children.
pub(super) async fn hand_in(
    supervisor: &Client,
    files: &[ContextArgument],
    cx: &Invocation,
) -> Result<Vec<ContextGrant>, Failure> {
    let mut context = Vec::with_capacity(files.len());
    for ContextArgument { name, path } in files {
        supervisor.put_file(name, None, &cx.absolute(path)).await?;
        context.push(given(name.clone()));
    }
    Ok(context)
}

/// A value under the name that it has.
fn given(name: String) -> ContextGrant {
    ContextGrant { name, from: None }
}
