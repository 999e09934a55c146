//! `offshoot map`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use offshoot_config::nearest;
use offshoot_process::resolve_program;
use offshoot_split as split;

use super::nested;
use crate::arguments::value::whole;
use crate::arguments::{PieceArguments, WorkArguments};
use crate::code::{FailureCode, NoteCode};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::wording;
use crate::work::dry_run::PlannedAgent;
use crate::work::engine::{self, Engine};
use crate::work::input::{self, Spool};
use crate::work::interrupt::Interrupts;
use crate::work::outcomes::Outcomes;
use crate::work::pieces::{self, AnswerRules, PieceRun};
use crate::work::plan::Plan;
use crate::work::preflight::{self, Prepared};
use crate::work::{consent, context, resume, stages};

/// Run the same task on every piece of the input, and make one answer of the answers
///
/// The input is cut into pieces, each piece is the standard input of one run of COMMAND, and what the runs print is
/// merged in the order of the pieces. Inside an agent the runs are children of that agent, and a budget is divided among them.
///
/// COMMAND has PATH, HOME, USER, SHELL, LANG, LC_*, TZ, TERM, TMPDIR, XDG_*, SSL_CERT_*, those of a proxy and OFFSHOOT_* in its environment,
/// and nothing else of yours: `runtimes.exec.env = ["NAME"]` in the configuration passes on more.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  Count lines with ERROR in a log of any size; grep exits 1 where a piece has none:
    offshoot map --split bytes:1m@lines --merge sum --ok-exit 0,1 big.log -- grep -c ERROR
  One run for each file, four at once, as one JSON object:
    offshoot map --max-concurrent 4 --merge structured --json src/*.rs -- wc -l
  Standard input, a hundred lines to a piece:
    journalctl | offshoot map --split lines:100 - -- my-agent
  A table in eight pieces, each with the line that names the columns:
    offshoot map --split chunks:8 --header 1 sales.csv -- my-agent
  Three stages; each piece goes on as it ends, and the answers of the last stage are merged:
    offshoot map urls.txt --split lines:1 -- ./fetch --then -- ./extract --then -- ./rate
  What would be run:
    offshoot map --dry-run --split chunks:8 big.csv -- my-agent

`--then -- COMMAND` behind a command is a further stage. It reads what the one before it printed
for the same piece, and starts as soon as that has completed. A piece that fails in a stage starts
no later one, and is named with its stage. A command that has the words `--then --` among its own
arguments is written as `sh -c '...'`.")]
pub(crate) struct MapArguments {
    /// Files to cut into pieces; - is standard input
    #[arg(required = true, value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,

    /// Cuts into: files, lines:N, chunks:N, chunks:N@bytes, bytes:N, bytes:N@lines, paragraphs:N, jsonl:N
    #[arg(long, value_name = "SPLIT", default_value = "files")]
    pub(crate) split: String,

    /// Repeat the first N lines of each file in every piece of it, such as the names of the columns of a table; they are no part
    /// of what is cut, and --split files needs none
    #[arg(long, value_name = "N", value_parser = whole(1_u64.., "1"))]
    pub(crate) header: Option<u64>,

    /// The task of each piece; a command finds it in OFFSHOOT_TASK [default: the line of COMMAND]
    #[arg(long, value_name = "TEXT")]
    pub(crate) task: Option<String>,

    #[command(flatten)]
    pub(crate) pieces: PieceArguments,

    #[command(flatten)]
    pub(crate) work: WorkArguments,

    /// The program to run for each piece, with its arguments; `--then -- COMMAND` behind it adds a stage
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

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
    let plan = Plan {
        split: Some(how.split.to_string()),
        header_lines: Some(how.header_lines).filter(|&lines| lines > 0),
        stages,
        ..Plan::of("map", &prepared, &config, &work.limits, cx).merging(&terms)
    };
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
        let plan = Plan { context: context::read(&files)?, inputs: cut.files, ..plan };
        let agents = stages::planned(agents, &plan);
        return nested::dry_run(&plan, &agents, &task, &config, &prepared, cx);
    }
    let yes = arguments.pieces.yes;
    consent::ask(cut.pieces.len() * (1 + plan.stages.len()), &prepared, &config, yes, cx)?;
    let outcomes = Outcomes::of(&arguments.pieces, &terms, cx)?;
    let external = terms.merging.load(|name| prepared.plugins.merge(name))?;
    engine::block_on(async {
        let interrupts = Interrupts::listen()?;
        let engine = Engine::start(config, &prepared, cx).await?;
        let cut = match spool {
            Some(spool) => {
                let unnamed = spool.path().to_owned();
                cut.moved(&unnamed, spool.keep(&*engine.store).await?)
            }
            None => cut,
        };
        let context = context::store(files, &*engine.store).await?;
        let plan = Plan { context, inputs: cut.files.clone(), ..plan };
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
