//! `offshoot spawn`.

use offshoot_door::{Client, ContextGrant, Spawn, Spawned, Wait};
use offshoot_model::AgentId;

use super::wait;
use crate::arguments::{ContextArgument, SpawnArguments};
use crate::door::visit;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::work::engine::block_on;

/// Asks for a child.
pub(crate) fn run(arguments: &SpawnArguments, cx: &Invocation) -> Result<Exit, Failure> {
    let agent = arguments.agent.as_deref().map(AgentId::parse).transpose();
    let agent = agent.map_err(|error| Failure::of(Exit::BadInput, &error).hint(error.hint()))?;
    block_on(async {
        let supervisor = visit(cx).await?;
        let spawn = Spawn {
            agent,
            label: arguments.label.clone(),
            command: Some(arguments.command.clone()),
            run_timeout_seconds: arguments.timeout,
            cleanup: arguments.cleanup,
            context: arguments.give.iter().cloned().map(given).collect(),
            ..Spawn::task(&arguments.task)
        };
        child(&supervisor, spawn, &arguments.context, arguments.wait, cx).await
    })
}

/// Asks for this child, in this working directory and with these files, and prints its id; or waits for its answer.
pub(super) async fn child(
    supervisor: &Client,
    spawn: Spawn,
    files: &[ContextArgument],
    wait: bool,
    cx: &Invocation,
) -> Result<Exit, Failure> {
    let mut context = hand_in(supervisor, files, cx).await?;
    context.extend(spawn.context.iter().cloned());
    let spawn = Spawn {
        context,
        command: spawn.command.filter(|command| !command.is_empty()),
        cwd: cx.environment.working_folder.to_str().map(str::to_owned),
        ..spawn
    };
    let Spawned { run_id, session_key } = call(supervisor, spawn).await?;
    if wait {
        let wait = Wait { runs: vec![run_id.into()], ..Wait::default() };
        return wait::print(supervisor, wait, wait::Form::One, cx).await;
    }
    if cx.output.wants_json() {
        let accepted = serde_json::json!({
            "status": "accepted", "runId": run_id, "sessionKey": session_key,
        });
        cx.output.json(&accepted)?;
    } else {
        cx.output.line(run_id)?;
    }
    Ok(Exit::Done)
}

/// Hands in files as values of the session, for its children.
pub(super) async fn hand_in(
    supervisor: &Client,
    files: &[ContextArgument],
    cx: &Invocation,
) -> Result<Vec<ContextGrant>, Failure> {
    let mut context = Vec::with_capacity(files.len());
    for ContextArgument { name, path } in files {
        let put = supervisor.put_file(name, None, &cx.absolute(path)).await;
        put?;
        context.push(ContextGrant { name: name.clone(), from: None });
    }
    Ok(context)
}

/// A value under the name that it has.
fn given(name: String) -> ContextGrant {
    ContextGrant { name, from: None }
}

/// One question; a refusal is exit 3.
pub(super) async fn call<A: offshoot_door::Ask>(
    supervisor: &Client,
    ask: A,
) -> Result<A::Answer, Failure> {
    supervisor.call(ask).await.map_err(Failure::from)
}
