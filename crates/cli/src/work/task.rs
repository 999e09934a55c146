//! One task of a fanout.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;

use offshoot_host::runtimes::EXEC;
use offshoot_model::{
    AgentId, BudgetRequest, ContextEntry, Isolation, JsonText, Need, OnNeedFailed, Rights,
    SpawnRequest, TaskType, path_text,
};
use offshoot_policy::is_reserved_label;
use offshoot_policy::needs::{self, Named, NeedsError};
use offshoot_spawner::{Piece, PieceNeed, RunSpec};
use serde::{Deserialize, Serialize};

use super::plan::Plan;
use crate::arguments::ContextArgument;

/// One task, as the plan of a tree has it. What is absent is as the command line and the configuration have it.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Task {
    pub(crate) task: String,
    pub(crate) label: Option<String>,
    /// The name by which other tasks need it.
    pub(crate) id: Option<String>,
    /// The ids of the tasks whose answers it needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) needs: Vec<String>,
    /// The fate of the task when one of them does not complete.
    #[serde(default, skip_serializing_if = "OnNeedFailed::is_skip")]
    pub(crate) on_need_failed: OnNeedFailed,
    pub(crate) agent: Option<AgentId>,
    /// The type of the task.
    #[serde(rename = "type")]
    pub(crate) task_type: Option<TaskType>,
    /// In seconds.
    pub(crate) timeout: Option<u64>,
    pub(crate) model: Option<String>,
    pub(crate) thinking: Option<String>,
    pub(crate) budget: Option<BudgetRequest>,
    /// The share of what there is, among those of the others.
    pub(crate) weight: Option<NonZeroU32>,
    pub(crate) tools: Option<Rights>,
    /// The name of the runtime.
    pub(crate) runtime: Option<Arc<str>>,
    /// The folder in which it works.
    #[serde(default, with = "path_text")]
    pub(crate) cwd: Option<PathBuf>,
    /// The program that its runtime starts, with its arguments; where the runtime or the agent is its own.
    pub(crate) program: Option<Arc<[String]>>,
    /// The form that its answer must have, as a JSON Schema.
    pub(crate) schema: Option<JsonText>,
    /// The folder in which it works.
    pub(crate) isolation: Option<Isolation>,
    /// The values that it may read, besides those that all may.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) context: Vec<ContextEntry>,
    /// The files of which these values are made.
    #[serde(skip)]
    pub(crate) files: Vec<ContextArgument>,
}

/// As many characters of a task are its label, where it has none.
const LABEL: usize = 40;
/// A label has at most so many characters.
const MOST_LABEL: usize = 100;

impl Task {
    /// A task in words.
    pub(crate) fn plain(task: &str) -> Self {
        Self { task: task.to_owned(), ..Self::default() }
    }

    /// Returns the name in the answer; the place from 1, where it has none, as in plans of earlier versions.
    pub(crate) fn name(&self, place: u32) -> String {
        self.label.clone().unwrap_or_else(|| place.to_string())
    }

    /// The task as far as the order of tasks goes.
    pub(crate) fn named(&self) -> Named<'_> {
        Named { id: self.id.as_deref(), needs: &self.needs }
    }

    /// Returns the values that it may read: those of all tasks, but for names of its own and of answers that it needs, and then its own.
    pub(crate) fn context(&self, plan: &Plan) -> Vec<ContextEntry> {
        let answers: Vec<String> = self.needs.iter().map(|id| Need::variable(id)).collect();
        let is_shared = |entry: &&ContextEntry| {
            let own = self.context.iter().map(|own| &*own.name);
            own.chain(answers.iter().map(String::as_str)).all(|own| own != &*entry.name)
        };
        plan.context.iter().filter(is_shared).chain(&self.context).cloned().collect()
    }

    /// The settings of its run, where they are not those of all.
    fn run_spec(&self, all: &RunSpec) -> Option<Arc<RunSpec>> {
        if self.runtime.is_none() && self.cwd.is_none() {
            return None;
        }
        let folder = self.cwd.clone().map_or_else(|| Arc::clone(&all.working_folder), Arc::new);
        let mut own = RunSpec { working_folder: folder, ..all.clone() };
        if let Some(runtime) = &self.runtime {
            let is_program = **runtime == *EXEC.name;
            own.runtime = Some(Arc::clone(runtime));
            own.command = self.program.clone().filter(|_| is_program);
            own.plain = all.plain && own.command == all.command;
        }
        Some(Arc::new(own))
    }
}

/// Gives each task a label that no other run has: its first words where it has none, and a number behind what would not be unique or is a name of
/// other runs, such as `main`.
pub(crate) fn label_all(tasks: &mut [Task]) {
    // The first task with a label of its own keeps it as it is.
    let own: HashSet<String> = tasks.iter().filter_map(|task| task.label.clone()).collect();
    let mut taken = HashSet::new();
    // The number that is tried next behind what was not unique: all before it are taken.
    let mut next: HashMap<String, u32> = HashMap::new();
    for task in tasks {
        if let Some(label) = &task.label
            && !is_reserved_label(label)
            && taken.insert(label.clone())
        {
            continue;
        }
        let base = task.label.take().unwrap_or_else(|| first_words(&task.task));
        let number = next.entry(base.clone()).or_insert(1);
        let label = loop {
            let label = numbered(&base, *number);
            *number += 1;
            if !is_reserved_label(&label) && !own.contains(&label) && taken.insert(label.clone()) {
                break label;
            }
        };
        task.label = Some(label);
    }
}

/// Returns the label with its number, cut where it would be too long. The first has none.
fn numbered(base: &str, number: u32) -> String {
    if number == 1 {
        return base.to_owned();
    }
    let number = format!(" ({number})");
    base.chars().take(MOST_LABEL - number.len()).chain(number.chars()).collect()
}

/// Returns as many whole words of a text as make a label.
fn first_words(text: &str) -> String {
    let plain = |char: char| char.is_whitespace() || char.is_control();
    let mut label = String::new();
    for word in text.split(plain).filter(|word| !word.is_empty()) {
        let space = usize::from(!label.is_empty());
        let room = LABEL.saturating_sub(label.chars().count() + space);
        if word.chars().count() > room && !label.is_empty() {
            break;
        }
        label.push_str(if space == 1 { " " } else { "" });
        label.extend(word.chars().take(room));
    }
    if label.is_empty() { "task".to_owned() } else { label }
}

/// The pieces of a planned fanout. `all` are the settings of those that have none of their own.
///
/// # Errors
///
/// Tasks that have no order.
pub(crate) fn pieces(plan: &Plan, all: &RunSpec) -> Result<Vec<Piece>, NeedsError> {
    let named: Vec<Named<'_>> = plan.tasks.iter().map(Task::named).collect();
    let needed = needs::places(&named)?;
    let piece = |((place, task), needed): ((u32, &Task), Vec<usize>)| {
        let key: Arc<str> = task.name(place).into();
        let context = task.context(plan);
        let need = |(name, place): (&String, usize)| PieceNeed {
            name: name.as_str().into(),
            place: u32::try_from(place).expect("a plan has fewer than 2^32 tasks"),
        };
        Piece {
            request: SpawnRequest {
                task: task.task.as_str().into(),
                agent: Some(task.agent.as_ref().unwrap_or(&plan.agent).clone()),
                label: task.label.as_deref().map(Into::into),
                task_type: task.task_type.clone(),
                context,
                run_timeout_seconds: task.timeout,
                model: task.model.clone(),
                thinking: task.thinking.clone(),
                budget: task.budget,
                weight: task.weight,
                tools: task.tools.clone(),
                schema: task.schema.as_ref().or(plan.schema.as_ref()).cloned(),
                isolation: task.isolation.as_ref().or(plan.isolation.as_ref()).cloned(),
                ..SpawnRequest::default()
            },
            key: Some(key),
            run_spec: task.run_spec(all),
            needs: task.needs.iter().zip(needed).map(need).collect(),
            on_need_failed: task.on_need_failed,
            ..Piece::from(SpawnRequest::default())
        }
    };
    Ok((1..).zip(&plan.tasks).zip(needed).map(piece).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_identify() {
        #[track_caller]
        fn check(tasks: &[(&str, Option<&str>)], expected: &[&str]) {
            let task = |(task, label): &(&str, Option<&str>)| Task {
                label: label.map(str::to_owned),
                ..Task::plain(task)
            };
            let mut tasks: Vec<Task> = tasks.iter().map(task).collect();
            label_all(&mut tasks);
            let labels: Vec<_> = tasks.iter().filter_map(|task| task.label.as_deref()).collect();
            assert_eq!(labels, expected);
        }
        check(&[("list the risks", None), ("x", Some("a"))], &["list the risks", "a"]);
        let thrice = [("x", Some("host-b")), ("y", Some("host-b")), ("z", Some("host-b"))];
        check(&thrice, &["host-b", "host-b (2)", "host-b (3)"]);
        check(&[("a b", None), ("a b", None)], &["a b", "a b (2)"]);
        // What was asked for by name stays.
        let asked = [("a", None), ("x", Some("a (2)")), ("a", None), ("y", Some("a"))];
        check(&asked, &["a (3)", "a (2)", "a (4)", "a"]);
        // A label that is the name of another run would not mean its own.
        check(
            &[("main", None), ("x", Some("last")), ("@2", None)],
            &["main (2)", "last (2)", "@2 (2)"],
        );
        check(&[(" \n\t", None), ("a\u{1b}b\nc", None)], &["task", "a b c"]);
        let words = "tell everything that there is to know of the river and its valley";
        check(&[(words, None)], &["tell everything that there is to know of"]);
        let long = "é".repeat(200);
        check(&[(&long, None)], &["é".repeat(40).as_str()]);
        let label = "l".repeat(100);
        let cut = format!("{} (2)", "l".repeat(96));
        check(&[("x", Some(&label)), ("y", Some(&label))], &[&label, &cut]);
    }
}
