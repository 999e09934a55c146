//! `offshoot map`.

use std::sync::Arc;

use offshoot_config::Config;
use offshoot_split as split;

use super::nested;
use crate::arguments::{MapArguments, WorkArguments};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::work::consent;
use crate::work::context;
use crate::work::engine::{self, Engine};
use crate::work::input::{self, Cut, Spool};
use crate::work::interrupt::Interrupts;
use crate::work::pieces::{self, AnswerRules, PieceRun};
use crate::work::plan::{Plan, PlannedAgent};
use crate::work::preflight::{self, Prepared};
use crate::work::resume;

/// Cuts the input, runs the pieces, merges the answers.
pub(crate) fn run(arguments: &MapArguments, cx: &Invocation) -> Result<Exit, Failure> {
    let work = &arguments.work;
    nested::refuse("map", work, cx)?;
    let split: split::Split =
        arguments.split.parse().map_err(|error| Failure::of(Exit::BadInput, &error))?;
    let terms = AnswerRules::of(&arguments.pieces)?;
    let (config, prepared) = preflight::prepare(work, &arguments.command, cx)?;
    let task = task(arguments, &prepared)?;
    let files = context::look(&work.context, cx)?;
    let spool = match input::has_standard_input(&arguments.inputs)? {
        true => Some(Spool::standard_input(&engine::data_folder(cx)?)?),
        false => None,
    };
    let cut = input::cut(&arguments.inputs, split, spool.as_ref())?;
    if work.dry_run {
        let agents: Vec<PlannedAgent> = cut
            .pieces
            .iter()
            .map(|piece| PlannedAgent {
                label: Arc::clone(&piece.label),
                bytes: piece.range.length,
            })
            .collect();
        return plan(&prepared, &config, split, &cut, &terms, work, cx)
            .dry_run(&agents, &config, cx);
    }
    let yes = arguments.pieces.yes;
    consent::ask(cut.pieces.len(), &prepared, &config, yes, cx)?;
    let external = terms.merging.load(|name| prepared.plugins.merge(name))?;
    engine::block_on(async {
        let interrupts = Interrupts::listen()?;
        let engine = Engine::start(config.clone(), engine::data_folder(cx)?, &prepared, cx).await?;
        let cut = match spool {
            Some(spool) => {
                let unnamed = spool.path().to_owned();
                cut.moved(&unnamed, spool.keep(&*engine.store).await?)
            }
            None => cut,
        };
        let context = context::store(files, &*engine.store).await?;
        let plan = Plan { context, ..plan(&prepared, &config, split, &cut, &terms, work, cx) };
        let order = PieceRun {
            label: work.label.as_deref().map(Into::into),
            pieces: input::pieces(cut, &task, &plan),
            task,
            prepared,
            plan,
            terms,
            external,
        };
        let tree = resume::same(&engine, &order.plan, work, cx).await?;
        pieces::run(&engine, order, tree, interrupts, cx).await
    })
}

fn plan(
    prepared: &Prepared,
    config: &Config,
    split: split::Split,
    cut: &Cut,
    terms: &AnswerRules,
    work: &WorkArguments,
    cx: &Invocation,
) -> Plan {
    Plan {
        split: Some(split.to_string()),
        inputs: cut.files.clone(),
        ..Plan::of("map", prepared, config, &work.limits, cx).merging(terms)
    }
}

/// Returns the task of the pieces; their own, or the one of the command line.
fn task(arguments: &MapArguments, prepared: &Prepared) -> Result<Arc<str>, Failure> {
    match &arguments.task {
        Some(task) => Ok(task.as_str().into()),
        None if prepared.run_spec.command.is_some() => Ok(prepared.command_line().into()),
        None => Err(Failure::input("nothing says what to do with each piece")
            .hint("say it with --task, or give a command after `--`")),
    }
}
