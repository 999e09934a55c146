//! `offshoot map`.

use std::sync::Arc;

use offshoot_config::{Config, nearest};
use offshoot_process::resolve_program;
use offshoot_split as split;

use super::nested;
use crate::arguments::{MapArguments, WorkArguments};
use crate::code::{FailureCode, NoteCode};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::wording;
use crate::work::consent;
use crate::work::context;
use crate::work::dry_run::PlannedAgent;
use crate::work::engine::{self, Engine};
use crate::work::input::{self, Cut, Spool};
use crate::work::interrupt::Interrupts;
use crate::work::outcomes::Outcomes;
use crate::work::pieces::{self, AnswerRules, PieceRun};
use crate::work::plan::Plan;
use crate::work::preflight::{self, Prepared};
use crate::work::resume;
use crate::work::stages;

/// The failure where the text of `--split` is no split.
fn no_split(error: &split::ParseSplitError) -> Failure {
    let heads: Vec<&str> =
        split::Split::FORMS.iter().filter_map(|form| form.split(':').next()).collect();
    let near = error.unknown().and_then(|form| nearest(form, &heads));
    let near = near.and_then(|near| split::Split::FORMS.iter().find(|form| form.starts_with(near)));
    Failure::of(Exit::BadInput, error).hint(match near {
        Some(near) => format!("the nearest is `{near}`: --split {}", near.replace('N', "100")),
        None => "for example: --split lines:100".to_owned(),
    })
}

/// Cuts the input, runs the pieces, merges the answers.
pub(crate) fn run(arguments: &MapArguments, cx: &Invocation) -> Result<Exit, Failure> {
    let work = &arguments.work;
    let split: split::Split = arguments.split.parse().map_err(|error| no_split(&error))?;
    let how = split::Cut { split, header_lines: arguments.header.unwrap_or(0) };
    if let Some(exit) = nested::map(arguments, how, cx)? {
        return Ok(exit);
    }
    let terms = AnswerRules::of(&arguments.pieces)?;
    let (command, later) = stages::split(&arguments.command)?;
    let (config, prepared) = preflight::prepare(work, command, cx).map_err(|failure| {
        let nothing_runs = failure.exit == Exit::NoRuntime && work.runtime.is_none();
        let misplaced = nothing_runs.then(|| misplaced_command(arguments, cx)).flatten();
        misplaced.unwrap_or(failure)
    })?;
    let task = task(arguments, &prepared)
        .map_err(|failure| misplaced_command(arguments, cx).unwrap_or(failure))?;
    terms.check(&config, &prepared.agent)?;
    let stages = stages::prepare(&later, (&config, &prepared), &terms, work, cx)?;
    terms.check_folder(&config, &prepared.agent, prepared.isolation.as_ref())?;
    let files = context::look(&work.context, cx)?;
    let spool = match input::has_standard_input(&arguments.inputs)? {
        true => Some(Spool::standard_input(&engine::data_folder(cx)?)?),
        false => None,
    };
    let cut = input::cut(&arguments.inputs, how, spool.as_ref())?;
    terms.check_count(cut.pieces.len())?;
    if cut.pieces.is_empty() {
        let why = match how.header_lines {
            0 => "the input is empty".to_owned(),
            lines => format!(
                "no input has a line below its header, which --header {lines} makes so long"
            ),
        };
        cx.output.warning(NoteCode::NothingToRun, format_args!("{why}: there is no piece to run"));
    }
    if work.dry_run {
        let agents: Vec<PlannedAgent> = cut
            .pieces
            .iter()
            .map(|piece| PlannedAgent {
                label: Arc::clone(&piece.label),
                bytes: Some(piece.range.size()),
                runs: None,
                wave: 1,
                needs: Vec::new(),
            })
            .collect();
        let context = context::read(&files)?;
        let plan =
            Plan { context, stages, ..plan(&prepared, &config, how, &cut, &terms, work, cx) };
        let agents = stages::planned(agents, &plan);
        return nested::dry_run(&plan, &agents, &task, &config, &prepared, cx);
    }
    let yes = arguments.pieces.yes;
    consent::ask(cut.pieces.len() * (1 + stages.len()), &prepared, &config, yes, cx)?;
    let outcomes = Outcomes::of(&arguments.pieces, &terms, cx)?;
    let external = terms.merging.load(|name| prepared.plugins.merge(name))?;
    engine::block_on(async {
        let interrupts = Interrupts::listen()?;
        let engine = Engine::start(config.clone(), &prepared, cx).await?;
        let cut = match spool {
            Some(spool) => {
                let unnamed = spool.path().to_owned();
                cut.moved(&unnamed, spool.keep(&*engine.store).await?)
            }
            None => cut,
        };
        let context = context::store(files, &*engine.store).await?;
        let plan =
            Plan { context, stages, ..plan(&prepared, &config, how, &cut, &terms, work, cx) };
        let order = PieceRun {
            label: work.label.as_deref().map(Into::into),
            pieces: input::pieces(cut, &task, &plan, &prepared.run_spec),
            task,
            results: Vec::new(),
            prepared,
            plan,
            terms,
            external,
            outcomes,
        };
        let tree = resume::same(&engine, &order.plan, work, cx).await?;
        pieces::run(&engine, order, tree, interrupts, cx).await
    })
}

fn plan(
    prepared: &Prepared,
    config: &Config,
    how: split::Cut,
    cut: &Cut,
    terms: &AnswerRules,
    work: &WorkArguments,
    cx: &Invocation,
) -> Plan {
    Plan {
        split: Some(how.split.to_string()),
        header_lines: Some(how.header_lines).filter(|&lines| lines > 0),
        inputs: cut.files.clone(),
        ..Plan::of("map", prepared, config, &work.limits, cx).merging(terms)
    }
}

/// Returns the task of the pieces; their own, or the one of the command line.
fn task(arguments: &MapArguments, prepared: &Prepared) -> Result<Arc<str>, Failure> {
    match &arguments.task {
        Some(task) => Ok(task.as_str().into()),
        None if prepared.run_spec.command.is_some() => Ok(prepared.command_line().into()),
        None => Err(no_task()),
    }
}

/// The failure where neither a task nor a command is given.
pub(super) fn no_task() -> Failure {
    Failure::input(FailureCode::NothingToDo, "nothing says what to do with each piece")
        .hint("say it with --task, or give a command after `--`")
}

/// The failure where the command stands among the inputs, and `--` was forgotten: nothing else says what to do, and an input after
/// the first is a program, and often no file here.
pub(super) fn misplaced_command(arguments: &MapArguments, cx: &Invocation) -> Option<Failure> {
    if arguments.task.is_some() || !arguments.command.is_empty() {
        return None;
    }
    let words: Vec<String> =
        arguments.inputs.iter().map(|input| input.to_string_lossy().into_owned()).collect();
    let folder = &cx.environment.working_folder;
    let is_program = |word: &String| {
        resolve_program(word.as_ref(), cx.environment.path().map(|path| &**path), folder).is_ok()
    };
    let at = 1 + words.iter().skip(1).position(is_program)?;
    let (inputs, command) = words.split_at(at);
    let message = format!("`{}` is taken for an input: a command stands behind `--`", command[0]);
    Some(Failure::input(FailureCode::CommandAmongInputs, message).hint(format_args!(
        "`offshoot map {} -- {}`, with options before the `--`",
        wording::command_line(inputs),
        wording::command_line(command)
    )))
}
