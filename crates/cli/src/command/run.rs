//! `offshoot run`.

use clap::Args;
use offshoot_spawner::RootSpec;

use super::nested;
use crate::arguments::WorkArguments;
use crate::code::FailureCode;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::work::dry_run::PlannedAgent;
use crate::work::engine::{self, Engine};
use crate::work::interrupt::Interrupts;
use crate::work::plan::Plan;
use crate::work::{context, preflight, resume, single};

/// Run one agent and print its answer
///
/// The task is the standard input of COMMAND, byte for byte, followed by where to read the context.
///
/// COMMAND has PATH, HOME, USER, SHELL, LANG, LC_*, TZ, TERM, TMPDIR, XDG_*, SSL_CERT_*, those of a proxy and OFFSHOOT_* in its environment,
/// and nothing else of yours: `runtimes.exec.env = ["NAME"]` in the configuration passes on more.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot run 'summarize the plan' --context plan=plan.md -- my-agent
  offshoot run --timeout 60 --json 'hello' -- tr a-z A-Z")]
pub(crate) struct RunArguments {
    /// The task of the agent
    #[arg(value_name = "TASK")]
    pub(crate) task: String,

    #[command(flatten)]
    pub(crate) work: WorkArguments,

    /// The program to run, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

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
