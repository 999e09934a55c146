//! `offshoot fanout`.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use super::nested;
use crate::arguments::FanoutArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::work::consent;
use crate::work::context;
use crate::work::engine::{self, Engine};
use crate::work::interrupt::Interrupts;
use crate::work::pieces::{self, AnswerRules, PieceRun};
use crate::work::plan::{Plan, PlannedAgent};
use crate::work::preflight;
use crate::work::resume;
use crate::work::task::{self, Task};

/// Runs the tasks, merges the answers.
pub(crate) fn run(arguments: &FanoutArguments, cx: &Invocation) -> Result<Exit, Failure> {
    let work = &arguments.work;
    if let Some(exit) = nested::fanout(arguments, || tasks(arguments), cx)? {
        return Ok(exit);
    }
    let terms = AnswerRules::of(&arguments.pieces)?;
    let (config, prepared) = preflight::prepare(work, &arguments.command, cx)?;
    let files = context::look(&work.context, cx)?;
    let tasks = tasks(arguments)?;
    let plan =
        Plan { tasks, ..Plan::of("fanout", &prepared, &config, &work.limits, cx).merging(&terms) };
    if work.dry_run {
        let agents: Vec<PlannedAgent> = (1..)
            .zip(&plan.tasks)
            .map(|(place, task)| PlannedAgent {
                label: task.name(place).into(),
                bytes: task.task.len() as u64,
            })
            .collect();
        return plan.dry_run(&agents, &config, cx);
    }
    consent::ask(plan.tasks.len(), &prepared, &config, arguments.pieces.yes, cx)?;
    let external = terms.merging.load(|name| prepared.plugins.merge(name))?;
    engine::block_on(async {
        let interrupts = Interrupts::listen()?;
        let engine = Engine::start(config, engine::data_folder(cx)?, &prepared, cx).await?;
        let context = context::store(files, &*engine.store).await?;
        let plan = Plan { context, ..plan };
        let order = PieceRun {
            label: work.label.as_deref().map(Into::into),
            task: format!("{} tasks for {}", plan.tasks.len(), prepared.command_line()).into(),
            pieces: task::pieces(&plan),
            prepared,
            plan,
            terms,
            external,
        };
        let tree = resume::same(&engine, &order.plan, work, cx).await?;
        pieces::run(&engine, order, tree, interrupts, cx).await
    })
}

/// Returns the tasks of the command line, then those of the file.
fn tasks(arguments: &FanoutArguments) -> Result<Vec<Task>, Failure> {
    let plain =
        |task: &String| Task { task: task.clone(), label: None, agent: None, timeout: None };
    let mut tasks: Vec<Task> = arguments.task.iter().map(plain).collect();
    match arguments.tasks.as_deref() {
        None => {}
        Some(file) if file == Path::new("-") => read(file, io::stdin().lock(), &mut tasks)?,
        Some(file) => {
            let open = File::open(file).map_err(|error| Failure::file("read", file, &error))?;
            read(file, BufReader::new(open), &mut tasks)?;
        }
    }
    match tasks.iter().position(|task| task.task.is_empty()) {
        Some(place) => Err(Failure::input(format_args!("task {} is empty", place + 1))),
        None => Ok(tasks),
    }
}

fn read(file: &Path, input: impl BufRead, tasks: &mut Vec<Task>) -> Result<(), Failure> {
    for (number, line) in (1..).zip(input.split(b'\n')) {
        let line = line.map_err(|error| Failure::file("read", file, &error))?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let task = serde_json::from_slice(&line).map_err(|error| {
            // A line is one line: its own number within itself only misleads.
            let text = error.to_string();
            let text = text.split_once(" at line ").map_or(text.as_str(), |(text, _)| text);
            let (file, column) = (file.display(), error.column());
            Failure::input(format_args!("{file}, line {number}, column {column}: {text}")).hint(
                "a line is an object with a `task`, and if wanted `label`, `agent` and `timeout`",
            )
        })?;
        tasks.push(task);
    }
    Ok(())
}
