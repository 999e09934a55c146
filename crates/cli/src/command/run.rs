//! `offshoot run`.

use offshoot_spawner::RootSpec;

use super::nested;
use crate::arguments::RunArguments;
use crate::code::FailureCode;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::work::context;
use crate::work::dry_run::PlannedAgent;
use crate::work::engine::{self, Engine};
use crate::work::interrupt::Interrupts;
use crate::work::plan::Plan;
use crate::work::preflight;
use crate::work::resume;
use crate::work::single;

/// Runs one agent and prints its answer.
pub(crate) fn run(arguments: &RunArguments, cx: &Invocation) -> Result<Exit, Failure> {
    let RunArguments { task, work, command } = arguments;
    if task.is_empty() {
        return Err(Failure::input(FailureCode::TaskEmpty, "the task is empty")
            .hint("say in words what is to be done: offshoot run TASK -- COMMAND"));
    }
    if let Some(exit) = nested::run(arguments, cx)? {
        return Ok(exit);
    }
    let (config, prepared) = preflight::prepare(work, command, cx)?;
    let files = context::look(&work.context, cx)?;
    let plan = Plan::of("run", &prepared, &config, &work.limits, cx);
    if work.dry_run {
        let label = work.label.as_deref().unwrap_or(prepared.agent.as_str()).into();
        let agent = PlannedAgent {
            label,
            bytes: Some(task.len() as u64),
            runs: None,
            wave: 1,
            needs: Vec::new(),
        };
        return nested::dry_run(&plan, &[agent], task, &config, &prepared, cx);
    }
    engine::block_on(async {
        let interrupts = Interrupts::listen()?;
        let engine = Engine::start(config, &prepared, cx).await?;
        let context = context::store(files, &*engine.store).await?;
        let plan = Plan { context, ..plan };
        let tree = resume::same(&engine, &plan, work, cx).await?;
        let spec = RootSpec {
            context: plan.context.clone(),
            plan: Some(plan.recorded()?),
            ..prepared.root(task.as_str().into(), work.label.as_deref().map(Into::into))
        };
        single::run(&engine, spec, tree, interrupts, cx).await
    })
}
