//! `offshoot spawn`.

use offshoot_door::{Client, ContextGrant, Spawn, Spawned, Wait};
use offshoot_model::{BudgetRequest, Rights, RunId};

use super::wait;
use crate::arguments::{ContextArgument, SpawnArguments};
use crate::code::NoteCode;
use crate::door::visit;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::load;
use crate::work::engine::block_on;
use crate::work::schema;

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
