//! `offshoot run`.

use offshoot_spawner::{RootKind, RootSpec};

use super::nested;
use crate::arguments::RunArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::work::context;
use crate::work::engine::{self, Engine, broken};
use crate::work::interrupt::Interrupts;
use crate::work::plan::{Plan, PlannedAgent};
use crate::work::preflight;
use crate::work::progress;
use crate::work::report;

/// Runs one agent and prints its answer.
pub(crate) fn run(arguments: &RunArguments, cx: &Invocation) -> Result<Exit, Failure> {
    let RunArguments { task, work, command } = arguments;
    if task.is_empty() {
        return Err(Failure::input("the task is empty"));
    }
    if let Some(exit) = nested::run(arguments, cx)? {
        return Ok(exit);
    }
    let (config, prepared) = preflight::prepare(work, command, cx)?;
    let files = context::look(&work.context, cx)?;
    let plan = Plan::of("run", &prepared);
    if work.dry_run {
        let label = work.label.as_deref().unwrap_or(prepared.agent.as_str()).into();
        let agent = PlannedAgent { label, bytes: task.len() as u64 };
        return plan.dry_run(&[agent], &config, cx);
    }
    engine::block_on(async {
        let mut interrupts = Interrupts::listen()?;
        let engine = Engine::start(config, engine::data_folder(cx)?, &prepared.work, cx).await?;
        let spec = RootSpec {
            kind: RootKind::Run,
            agent: prepared.agent,
            task: task.as_str().into(),
            label: work.label.as_deref().map(Into::into),
            context: context::store(files, &*engine.store).await?,
            work: prepared.work,
            plan: Some(plan.recorded()?),
        };
        let mut session = engine.spawner.run(spec).await.map_err(|error| broken(&error))?;
        let door = engine.listen(&session)?;
        let (root, stopper) = (session.root(), session.stopper());
        let follow = progress::follow(session.events(), 1, cx.output);
        let work = async {
            let envelope = session.answer().await.map_err(|error| broken(&error))?;
            let printed = report::early(&engine, &envelope, session.counts().await.live, cx)?;
            session.ended().await.map_err(|error| broken(&error))?;
            Ok::<_, Failure>((envelope, printed))
        };
        let (envelope, printed) = tokio::select! {
            (answered, ()) = async { tokio::join!(work, follow) } => answered?,
            never = interrupts.pass_on(&stopper, cx.output) => match never {},
        };
        door.stop().await;
        report::run(&engine, root, &envelope, printed, interrupts.interrupted(), cx)
    })
}
