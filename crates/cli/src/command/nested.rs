//! `run`, `map` and `fanout` inside an agent: no trees of their own, but children of that agent, under its limits.

use offshoot_door::Spawn;
use offshoot_model::{AgentId, BudgetRequest};

use super::spawn::child;
use crate::arguments::{OutputArgument, RunArguments, WorkArguments};
use crate::door::{above, may_be_below};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::work::engine::block_on;
use crate::work::preflight::EXEC;

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

/// Refuses a command that has no way to be children of an agent.
pub(super) fn refuse(command: &str, work: &WorkArguments, cx: &Invocation) -> Result<(), Failure> {
    if work.dry_run || !may_be_below(cx) || block_on(above(cx))?.is_none() {
        return Ok(());
    }
    let message = format!("`{command}` opens a tree, and this process runs inside one");
    Err(Failure::new(Exit::Refused, message)
        .hint("ask for each piece with `offshoot spawn`, then `offshoot wait`"))
}

/// What can be asked of a supervisor: limits may be lower than those of the tree, and never others.
fn request(task: &str, work: &WorkArguments) -> Result<Spawn, Failure> {
    let agent = work.agent.as_deref().map(AgentId::parse).transpose();
    let agent = agent.map_err(|error| Failure::of(Exit::BadInput, &error).hint(error.hint()))?;
    let mut spawn = Spawn { agent, label: work.label.clone(), ..Spawn::task(task) };
    if work.runtime.as_deref().is_some_and(|runtime| runtime != EXEC) {
        return Err(of_the_root("--runtime"));
    }
    if work.ok_exit != [0] {
        return Err(of_the_root("--ok-exit"));
    }
    if work.output != OutputArgument::Text {
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
            // It asks for what the tree grants or does not.
            "--allow-recursive-spawn" => {}
            other => return Err(of_the_root(other)),
        }
    }
    spawn.budget = (budget != BudgetRequest::default()).then_some(budget);
    Ok(spawn)
}

fn of_the_root(flag: &str) -> Failure {
    Failure::input(format_args!(
        "{flag} is for the root of a tree, and this process runs inside one"
    ))
    .hint("leave it out: the child runs under the limits of its tree")
}
