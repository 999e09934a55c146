//! `offshoot fanout`.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{ArgGroup, Args};
use offshoot_config::{AgentId, Config};
use offshoot_model::{Grant, SpawnRequest};
use offshoot_policy::needs::{self, NeedsError};
use offshoot_policy::{self as policy, Terms};

use super::nested;
use crate::arguments::{PieceArguments, WorkArguments};
use crate::code::{FailureCode, NoteCode};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::work::dry_run::{PlannedAgent, PlannedCommand};
use crate::work::engine::{self, Engine};
use crate::work::interrupt::Interrupts;
use crate::work::outcomes::Outcomes;
use crate::work::pieces::{self, AnswerRules, PieceRun};
use crate::work::plan::Plan;
use crate::work::preflight::{self, Prepared};
use crate::work::task::{self, Task};
use crate::work::{consent, context, resume, task_line};

/// Run different tasks over the same context, and make one answer of the answers
///
/// Each task is the standard input of one run of COMMAND, followed by where to read the context.
///
/// COMMAND has PATH, HOME, USER, SHELL, LANG, LC_*, TZ, TERM, TMPDIR, XDG_*, SSL_CERT_*, those of a proxy and OFFSHOOT_* in its environment,
/// and nothing else of yours: `runtimes.exec.env = ["NAME"]` in the configuration passes on more.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot fanout --task 'list the risks' --task 'list the chances' --context plan=plan.md -- my-agent
  offshoot fanout --tasks tasks.jsonl --merge structured -- my-agent
  printf '%s\\n' '{\"task\":\"2+2\"}' '{\"task\":\"3*3\"}' | offshoot fanout --tasks - -- sh -c 'echo $(($(cat)))'
  offshoot fanout --tasks reviews.jsonl --budget-usd 5 --dry-run
  printf '%s\\n' '{\"id\":\"a\",\"task\":\"2+2\"}' '{\"needs\":[\"a\"],\"task\":\"sum up\"}' | offshoot fanout --tasks - -- my-agent

A line of a --tasks file is an object:
  task                    What to do; the only key that must be there
  label                   A short name that no other has; else the first words of the task. A label that stands twice gets a number
  id                      The name by which other lines need it; its label too, where it has none
  needs                   The ids of lines whose answers it needs. It starts when these have completed, and reads that of a as the context variable
                          need_a. What a line needs is in its order before it, wherever it stands in the file
  onNeedFailed            When one of these does not complete: skip (the default) ends it without a start, run starts it without that answer
  agent                   Another agent, by its id
  type                    The type of the task, such as validate_syntax, by which offshoot stats --delegation counts
  runtime                 Another runtime
  cwd                     Another folder to work in
  context                 Files that this run alone may read: {\"plan\": \"plan.md\"}
  model, thinking         Others than the configured ones
  schema                  The form that its answer must have, a JSON Schema: {\"type\": \"object\", \"required\": [\"risk\"]}
  isolation               The folder in which it works: none, worktree, worktree:COMMIT or copy
  timeout                 Seconds, or a text such as \"90s\"
  tools                   The only rights that it has: [\"read\"], or {\"allow\": [...], \"deny\": [...]}
  budget                  Dollars and tokens to reserve: {\"usd\": 0.5, \"tokens\": 20000}
  weight                  Its share of the budget, 1 where absent. Where a line has one, the budget is divided by weight
For an agent other than that of the command line, its definition says what runs it, by which command and, outside of an agent, in which folder, before
--runtime and COMMAND. Where each task has such an agent or a runtime, there need be no COMMAND. --dry-run shows what each runs.")]
#[command(group(ArgGroup::new("given").required(true).multiple(true).args(["task", "tasks"])))]
pub(crate) struct FanoutArguments {
    /// A task; may be given more than once
    #[arg(long = "task", value_name = "TEXT")]
    pub(crate) task: Vec<String>,

    /// A file with one task a line, as JSON; - is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) tasks: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) pieces: PieceArguments,

    #[command(flatten)]
    pub(crate) work: WorkArguments,

    /// The program to run for each task, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Runs the tasks, merges the answers.
pub(crate) fn run(arguments: &FanoutArguments, cx: &Invocation) -> Result<Exit, Failure> {
    let work = &arguments.work;
    if let Some(exit) = nested::fanout(arguments, || tasks(arguments), cx)? {
        return Ok(exit);
    }
    let terms = AnswerRules::of(&arguments.pieces)?;
    let mut tasks = tasks(arguments)?;
    let (config, prepared) = preflight::prepare_tasks(work, &arguments.command, &mut tasks, cx)?;
    terms.check(&config, &prepared.agent)?;
    terms.check_count(tasks.len())?;
    for task in &tasks {
        let agent = task.agent.as_ref().unwrap_or(&prepared.agent);
        let asked = task.isolation.as_ref().or(prepared.isolation.as_ref());
        terms.check_folder(&config, agent, asked)?;
    }
    warn_of_lowered(&tasks, &config, &prepared.agent, cx);
    let files = context::look(&work.context, cx)?;
    let own_files = tasks.iter().map(|task| context::look(&task.files, cx));
    let own_files = own_files.collect::<Result<Vec<_>, _>>()?;
    let mut plan =
        Plan { tasks, ..Plan::of("fanout", &prepared, &config, &work.limits, cx).merging(&terms) };
    if work.dry_run {
        let needed = needs::places(&plan.tasks.iter().map(Task::named).collect::<Vec<_>>());
        let waves = needs::waves(&needed.map_err(no_order)?);
        let agent = |((place, task), wave): ((u32, &Task), usize)| {
            let runs = PlannedCommand {
                agent: task.agent.as_ref().unwrap_or(&prepared.agent).clone(),
                runtime: Arc::clone(task.runtime.as_ref().unwrap_or(&prepared.runtime)),
                command: Arc::clone(task.program.as_ref().unwrap_or(&prepared.command)),
            };
            let label = task.name(place).into();
            let (bytes, needs) = (Some(task.task.len() as u64), task.needs.clone());
            PlannedAgent { label, bytes, runs: Some(runs), wave: wave + 1, needs }
        };
        plan.context = context::read(&files)?;
        for (task, files) in plan.tasks.iter_mut().zip(&own_files) {
            task.context = context::read(files)?;
        }
        let agents: Vec<_> = (1..).zip(&plan.tasks).zip(waves).map(agent).collect();
        return nested::dry_run(&plan, &agents, "", &config, &prepared, cx);
    }
    consent::ask(plan.tasks.len(), &prepared, &config, arguments.pieces.yes, cx)?;
    let outcomes = Outcomes::of(&arguments.pieces, &terms, cx)?;
    let external = terms.merging.load(|name| prepared.plugins.merge(name))?;
    engine::block_on(async {
        let interrupts = Interrupts::listen()?;
        let engine = Engine::start(config, &prepared, cx).await?;
        for task in plan.tasks.iter() {
            if let Some(isolation) = &task.isolation {
                let folder = task.cwd.as_ref().unwrap_or(&prepared.run_spec.working_folder);
                engine.host.folders().check(isolation, folder).await?;
            }
        }
        let context = context::store(files, &*engine.store).await?;
        let mut plan = Plan { context, ..plan };
        for (task, files) in plan.tasks.iter_mut().zip(own_files) {
            task.context = context::store(files, &*engine.store).await?;
        }
        let order = PieceRun {
            label: work.label.as_deref().map(Into::into),
            task: title(&plan, &prepared).into(),
            pieces: task::pieces(&plan, &prepared.run_spec).map_err(no_order)?,
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

fn no_order(error: NeedsError) -> Failure {
    Failure::of(Exit::BadInput, &error)
}

/// Returns the task of the root, in words.
fn title(plan: &Plan, prepared: &Prepared) -> String {
    let many = plan.tasks.len();
    match plan.tasks.iter().all(|task| task.runtime.is_none()) {
        true => format!("{many} tasks for {}", prepared.command_line()),
        false => format!("{many} tasks"),
    }
}

/// Says which tasks ask for more time than the tree allows a run.
fn warn_of_lowered(tasks: &[Task], config: &Config, root: &AgentId, cx: &Invocation) {
    /// More lines say nothing new.
    const TOLD: usize = 3;
    let terms = Terms::root(config, root);
    let most = terms.run_timeout_seconds();
    let lowered = |(place, task): (u32, &Task)| {
        let run_timeout_seconds =
            task.timeout.filter(|asked| most > 0 && (*asked == 0 || *asked > most));
        let request = SpawnRequest {
            run_timeout_seconds: Some(run_timeout_seconds?),
            ..SpawnRequest::default()
        };
        let granted = Grant { run_timeout_seconds: most, ..Grant::unbounded() };
        let agent = task.agent.as_ref().unwrap_or(root);
        let mut lowered = policy::lowered(config, &terms, agent, &request, &granted);
        Some((task.name(place), lowered.pop()?))
    };
    let lowered: Vec<_> = (1..).zip(tasks).filter_map(lowered).collect();
    for (name, limit) in lowered.iter().take(TOLD) {
        cx.output.warning(NoteCode::LimitLowered, format_args!("{name}: {limit}"));
    }
    let more = lowered.len().saturating_sub(TOLD);
    if more > 0 {
        let text = format_args!("the same is so for {more} more of the tasks");
        cx.output.warning(NoteCode::LimitLowered, text);
    }
}

/// Returns the tasks of the command line, then those of the file. Each has a label that no other has.
fn tasks(arguments: &FanoutArguments) -> Result<Vec<Task>, Failure> {
    let mut tasks: Vec<Task> = arguments.task.iter().map(|task| Task::plain(task)).collect();
    if let Some(place) = tasks.iter().position(|task| task.task.is_empty()) {
        return Err(Failure::input(
            FailureCode::TaskEmpty,
            format_args!("task {place} is empty", place = place + 1),
        )
        .hint("say in words what is to be done: --task TEXT"));
    }
    match arguments.tasks.as_deref() {
        None => {}
        Some(file) if file == Path::new("-") => {
            tasks.extend(task_line::read(Path::new("standard input"), io::stdin().lock())?);
        }
        Some(file) => {
            let open = File::open(file).map_err(Failure::reading(file))?;
            tasks.extend(task_line::read(file, BufReader::new(open))?);
        }
    }
    task::label_all(&mut tasks);
    Ok(tasks)
}
