//! `offshoot fanout`.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use offshoot_model::{AgentId, ContextEntry, SpawnRequest};
use offshoot_spawner::Piece;
use serde::Deserialize;

use super::nested;
use crate::arguments::FanoutArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::work::context;
use crate::work::engine::{self, Engine};
use crate::work::interrupt::Interrupts;
use crate::work::pieces::{self, Order, Terms};
use crate::work::plan::{Plan, PlannedAgent};
use crate::work::preflight;

/// One task; the form of a line of `--tasks`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Task {
    task: String,
    label: Option<String>,
    agent: Option<AgentId>,
    /// In seconds.
    timeout: Option<u64>,
}

/// Runs the tasks, merges the answers.
pub(crate) fn run(arguments: &FanoutArguments, cx: &Invocation) -> Result<Exit, Failure> {
    let work = &arguments.work;
    nested::refuse("fanout", work, cx)?;
    let terms = Terms::of(&arguments.pieces)?;
    let (config, prepared) = preflight::prepare(work, &arguments.command, cx)?;
    let files = context::look(&work.context, cx)?;
    let tasks = tasks(arguments)?;
    let plan = Plan::of("fanout", &prepared).merging(terms);
    if work.dry_run {
        let agents: Vec<PlannedAgent> = (1..)
            .zip(&tasks)
            .map(|(place, task)| PlannedAgent {
                label: label(task, place).into(),
                bytes: task.task.len() as u64,
            })
            .collect();
        return plan.dry_run(&agents, &config, cx);
    }
    engine::block_on(async {
        let interrupts = Interrupts::listen()?;
        let engine = Engine::start(config, engine::data_folder(cx)?, &prepared.work, cx).await?;
        let context = context::store(files, &*engine.store).await?;
        let order = Order {
            label: work.label.as_deref().map(Into::into),
            task: format!("{} tasks for {}", tasks.len(), prepared.command_line()).into(),
            pieces: pieces(tasks, &prepared.agent, &context),
            prepared,
            plan,
            terms,
        };
        pieces::run(&engine, order, interrupts, cx).await
    })
}

/// Those of the command line first, then those of the file.
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

/// The name of a task in the answer.
fn label(task: &Task, place: u32) -> String {
    task.label.clone().unwrap_or_else(|| place.to_string())
}

fn pieces(tasks: Vec<Task>, agent: &AgentId, context: &[ContextEntry]) -> Vec<Piece> {
    let piece = |(place, task): (u32, Task)| {
        let key: Arc<str> = label(&task, place).into();
        Piece {
            request: SpawnRequest {
                task: task.task.into(),
                agent: Some(task.agent.unwrap_or_else(|| agent.clone())),
                label: task.label.map(Into::into),
                context: context.to_vec(),
                run_timeout_seconds: task.timeout,
                ..SpawnRequest::default()
            },
            input: None,
            key: Some(key),
        }
    };
    (1..).zip(tasks).map(piece).collect()
}
