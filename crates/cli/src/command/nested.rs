//! `run`, `map` and `fanout` inside an agent: no trees of their own, but children of that agent, under its limits.

use offshoot_door::{Client, MergeOrder, Spawn, SpawnMany, SpawnedMany, Wait};
use offshoot_host::runtimes::EXEC;
use offshoot_model::{AgentId, BudgetRequest};
use offshoot_runtime::OutputFormat;

use super::spawn::{call, child, hand_in};
use super::wait::print_value;
use crate::arguments::{FanoutArguments, PluginPathArguments, RunArguments, WorkArguments};
use crate::door::{above, for_the_operator, may_be_below};
use crate::exit::Exit;
use crate::failure::{Complaint, Failure};
use crate::invocation::Invocation;
use crate::work::engine::block_on;
use crate::work::task::Task;

/// Asks for the child, where this process runs inside an agent, and waits for its answer. None where it does not.
pub(super) fn run(arguments: &RunArguments, cx: &Invocation) -> Result<Option<Exit>, Failure> {
    let RunArguments { task, work, command } = arguments;
    // A plan that is only printed starts nothing.
    if work.dry_run || !may_be_below(cx) {
        return Ok(None);
    }
    block_on(async {
        let Some(supervisor) = above(cx).await? else { return Ok(None) };
        let spawn = Spawn { command: Some(command.clone()), ..request(task, work)? };
        child(&supervisor, spawn, &work.context, true, cx).await.map(Some)
    })
}

/// Asks for a child for each task, where this process runs inside an agent, and prints what their answers make.
pub(super) fn fanout(
    arguments: &FanoutArguments,
    tasks: impl FnOnce() -> Result<Vec<Task>, Failure>,
    cx: &Invocation,
) -> Result<Option<Exit>, Failure> {
    let FanoutArguments { pieces, work, command, .. } = arguments;
    if work.dry_run || !may_be_below(cx) {
        return Ok(None);
    }
    block_on(async {
        let Some(supervisor) = above(cx).await? else { return Ok(None) };
        if pieces.max_fail.is_some() {
            return Err(of_the_root("--max-fail"));
        }
        let template = request("", work)?;
        if template.budget.is_some() {
            return Err(of_the_root("a budget"));
        }
        let template = Spawn {
            context: hand_in(&supervisor, &work.context, cx).await?,
            command: (!command.is_empty()).then(|| command.clone()),
            cwd: cx.environment.working_folder.to_str().map(str::to_owned),
            ..template
        };
        let child = |task: Task| Spawn {
            task: task.task,
            label: task.label,
            agent: task.agent.or_else(|| template.agent.clone()),
            run_timeout_seconds: task.timeout.or(template.run_timeout_seconds),
            ..template.clone()
        };
        let children = tasks()?.into_iter().map(child).collect();
        let order = MergeOrder {
            strategy: pieces.merge.clone(),
            on_failure: Some(pieces.on_failure.to_string()),
        };
        let wait = Some(Wait { merge: Some(order), ..Wait::default() });
        let many = SpawnMany { children, wait, ..SpawnMany::default() };
        let answer = call(&supervisor, many).await?;
        report(&supervisor, answer, cx).await.map(Some)
    })
}

/// Prints what several children have made together, and says what is missing.
async fn report(
    supervisor: &Client,
    SpawnedMany { children, waited }: SpawnedMany,
    cx: &Invocation,
) -> Result<Exit, Failure> {
    let mut exit = Exit::Done;
    let waited = waited.unwrap_or_default();
    let merged = waited.merged;
    if cx.output.wants_json() {
        cx.output.json(&merged)?;
    } else if let Some(merged) = &merged {
        let text = merged.data.as_ref().and_then(|data| serde_json::from_str(data.as_str()).ok());
        match (text, &merged.name, &merged.data) {
            (Some::<String>(text), _, _) => cx.output.line(text)?,
            (None, Some(name), _) => print_value(supervisor, name.clone(), cx).await?,
            (None, None, Some(data)) => cx.output.line(data.as_str())?,
            (None, None, None) => {}
        }
    }
    for outcome in &waited.ended {
        if let Some(error) = &outcome.error {
            cx.output.note(format_args!("run {}: {}", outcome.run_id, error.message));
        }
    }
    let complain = |message: &str| {
        cx.output.error(&Complaint { message: message.to_owned(), causes: Vec::new(), hint: None });
    };
    if let Some(error) = merged.and_then(|merged| merged.error) {
        complain(&error);
        exit = Exit::AgentFailed;
    }
    for refusal in children.into_iter().filter_map(|child| child.refusal) {
        complain(&refusal.message);
        exit = Exit::Refused;
    }
    Ok(exit)
}

/// Refuses a command that has no way to be children of an agent.
pub(super) fn refuse(command: &str, work: &WorkArguments, cx: &Invocation) -> Result<(), Failure> {
    if work.dry_run || !may_be_below(cx) || block_on(above(cx))?.is_none() {
        return Ok(());
    }
    let message = format!("`{command}` opens a tree, and this process runs inside one");
    Err(Failure::new(Exit::Refused, message)
        .hint("ask for each piece with `offshoot spawn`, then `offshoot wait`"))
}

/// Refuses inside an agent what is the operator's to do.
pub(super) fn only_for_the_operator(command: &str, cx: &Invocation) -> Result<(), Failure> {
    if may_be_below(cx) { block_on(for_the_operator(command, cx)) } else { Ok(()) }
}

/// Returns the request to a supervisor: limits may be lower than those of the tree, and never others.
fn request(task: &str, work: &WorkArguments) -> Result<Spawn, Failure> {
    let agent = work.agent.as_deref().map(AgentId::parse).transpose();
    let agent = agent.map_err(|error| Failure::of(Exit::BadInput, &error).hint(error.hint()))?;
    let mut spawn = Spawn { agent, label: work.label.clone(), ..Spawn::task(task) };
    if work.runtime.as_deref().is_some_and(|runtime| runtime != EXEC.name) {
        return Err(of_the_root("--runtime"));
    }
    only_of_the_tree(&work.plugins)?;
    if work.ok_exit != [0] {
        return Err(of_the_root("--ok-exit"));
    }
    if work.output != OutputFormat::Text {
        return Err(of_the_root("--output"));
    }
    let mut budget = BudgetRequest::default();
    for limit in work.limits.flags() {
        let (flag, value) = (limit.flag, limit.value);
        let wrong = || Failure::input(format_args!("`{value}` is no value for {flag}"));
        match flag {
            "--timeout" => spawn.run_timeout_seconds = Some(value.parse().map_err(|_| wrong())?),
            "--budget-usd" => budget.usd = Some(value.parse().map_err(|_| wrong())?),
            "--budget-tokens" => budget.tokens = Some(value.parse().map_err(|_| wrong())?),
            // Nothing to ask for: the limits of the tree decide.
            "--allow-recursive-spawn" => {}
            "--cleanup" => spawn.cleanup = work.limits.cleanup,
            other => return Err(of_the_root(other)),
        }
    }
    spawn.budget = (budget != BudgetRequest::default()).then_some(budget);
    Ok(spawn)
}

/// Plugins are those that the tree found when it began.
pub(super) fn only_of_the_tree(plugins: &PluginPathArguments) -> Result<(), Failure> {
    if plugins.plugin_path.is_empty() { Ok(()) } else { Err(of_the_root("--plugin-path")) }
}

fn of_the_root(flag: &str) -> Failure {
    Failure::input(format_args!(
        "{flag} is for the root of a tree, and this process runs inside one"
    ))
    .hint("leave it out: what is asked for here has the limits and the plugins of its tree")
}
