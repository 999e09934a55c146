//! The plan of a tree: recorded with the root, and printed by `--dry-run`.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::IndexMap;
use offshoot_config::{AgentId, Config, SubagentSettings, Valued};
use offshoot_display::number::{bytes, count};
use offshoot_host::runtimes::EXEC;
use offshoot_model::{ContextEntry, JsonText};
use offshoot_runtime::OutputFormat;
use offshoot_split::InputFile;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::pieces::AnswerRules;
use super::pieces::merging;
use super::preflight::Prepared;
use super::recorded_settings::{RecordedSettings, recorded_settings};
use super::task::Task;
use crate::arguments::{LimitArguments, PluginPathArguments, WorkArguments};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::wording;

/// All that a later start needs to do the same again.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Plan {
    /// The command's name: `map`.
    pub(crate) command: Cow<'static, str>,
    /// The agent.
    pub(crate) agent: AgentId,
    /// The name of the runtime.
    pub(crate) runtime: Arc<str>,
    /// The program and its arguments.
    pub(crate) program: Arc<[String]>,
    /// True if the runtime was given them; else they only say what runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) program_given: bool,
    /// True if they came from the configuration, and not from the command line.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) program_configured: bool,
    /// The folder in which it works.
    pub(crate) working_folder: Arc<PathBuf>,
    /// The folder in which the command was given, which decides about configuration and relative paths.
    pub(crate) opened_in: Arc<PathBuf>,
    /// The configuration file of the command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) config: Option<PathBuf>,
    /// The folders in which plugins were looked for first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) plugin_path: Vec<PathBuf>,
    /// Exit codes that mean success.
    pub(crate) ok_exit: Arc<[i32]>,
    /// The form of an answer.
    pub(crate) output: Cow<'static, str>,
    /// The limits of the command line.
    #[serde(default, skip_serializing_if = "LimitArguments::is_empty")]
    pub(crate) limits: LimitArguments,
    /// The other settings of its root: all that were set explicitly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) held: Option<RecordedSettings>,
    /// The values that pieces may read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) context: Vec<ContextEntry>,
    /// The tasks of a fanout.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tasks: Vec<Task>,
    /// The cut of the input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) split: Option<String>,
    /// The files, as they were when they were looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) inputs: Vec<InputFile>,
    /// The merge of the answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) merge: Option<String>,
    /// The treatment of a piece that did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) on_failure: Option<String>,
    /// After how many failures the rest is cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_fail: Option<u32>,
}

/// One agent of a dry run.
#[derive(Debug, Serialize)]
pub(crate) struct PlannedAgent {
    /// The name of the piece in the answer.
    pub(crate) label: Arc<str>,
    /// The number of bytes that it reads on standard input.
    pub(crate) bytes: u64,
}

/// A dry run, as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DryRun<'a> {
    plan: &'a Plan,
    agents: usize,
    bytes: u64,
    pieces: &'a [PlannedAgent],
    limits: &'a IndexMap<String, Valued<Value>>,
    /// The cost, which is not known before a model runs; commands of the operator cost nothing that we know of.
    cost: Option<f64>,
}

/// The word for answers that are read as JSON.
const JSON: &str = "json";

/// As many agents are shown to people.
const SHOWN: usize = 20;

impl Plan {
    /// Returns the plan without the treatment of the answers.
    pub(crate) fn of(
        command: &'static str,
        prepared: &Prepared,
        config: &Config,
        limits: &LimitArguments,
        cx: &Invocation,
    ) -> Self {
        let Prepared {
            agent,
            run_spec,
            runtime,
            command: program,
            is_paid: _,
            plugins: _,
            plugin_path,
        } = prepared;
        Self {
            command: command.into(),
            agent: agent.clone(),
            runtime: Arc::clone(runtime),
            program: Arc::clone(program),
            program_given: run_spec.command.is_some(),
            program_configured: run_spec.command.is_some() && !run_spec.plain,
            working_folder: Arc::clone(&run_spec.working_folder),
            opened_in: Arc::new(cx.environment.working_folder.clone()),
            config: cx.global.config.as_ref().map(|config| cx.absolute(config)),
            plugin_path: plugin_path.clone(),
            ok_exit: Arc::clone(&run_spec.ok_exit),
            output: match run_spec.output {
                OutputFormat::Text => "text".into(),
                OutputFormat::Json => JSON.into(),
            },
            limits: limits.clone(),
            held: Some(recorded_settings(config, agent)),
            context: Vec::new(),
            tasks: Vec::new(),
            split: None,
            inputs: Vec::new(),
            merge: None,
            on_failure: None,
            max_fail: None,
        }
    }

    /// With what becomes of many answers.
    pub(crate) fn merging(self, terms: &AnswerRules) -> Self {
        Self {
            merge: Some(terms.merging.to_string()),
            on_failure: Some(terms.on_failure.to_string()),
            max_fail: terms.max_fail,
            ..self
        }
    }

    /// The command line that it came from, but for what is not of the tree.
    pub(crate) fn arguments(&self) -> WorkArguments {
        WorkArguments {
            agent: Some(self.agent.to_string()),
            runtime: Some(self.runtime.to_string()),
            ok_exit: self.ok_exit.to_vec(),
            output: match &*self.output {
                JSON => OutputFormat::Json,
                _ => OutputFormat::Text,
            },
            program_configured: self.program_configured,
            plugins: PluginPathArguments { plugin_path: self.plugin_path.clone() },
            limits: self.limits.clone(),
            ..WorkArguments::default()
        }
    }

    /// The program that the runtime was given; empty where it was given none.
    pub(crate) fn command(&self) -> &[String] {
        match self.program_given {
            true => &self.program,
            false => &[],
        }
    }

    /// Returns the treatment of many answers; none where there is one.
    pub(crate) fn terms(&self) -> Result<Option<AnswerRules>, Failure> {
        let (Some(merge), Some(on_failure)) = (&self.merge, &self.on_failure) else {
            return Ok(None);
        };
        Ok(Some(AnswerRules {
            merging: merging(merge)?,
            on_failure: on_failure.parse().map_err(|error| Failure::of(Exit::BadInput, &error))?,
            max_fail: self.max_fail,
        }))
    }

    /// True if this plan on record came from the same command line. The limits of the tree may have changed since.
    pub(crate) fn is_same(&self, recorded: &JsonText) -> bool {
        let bare = |plan: serde_json::Result<Value>| {
            let mut plan = plan.ok()?;
            plan.as_object_mut()?.remove("held");
            // Earlier versions have not recorded where links led.
            for input in plan.get_mut("inputs").and_then(Value::as_array_mut).into_iter().flatten()
            {
                input.as_object_mut()?.remove("resolved");
            }
            Some(plan)
        };
        let recorded = bare(serde_json::from_str(recorded.as_str()));
        recorded.is_some() && recorded == bare(serde_json::to_value(self))
    }

    /// The form in which it is recorded.
    pub(crate) fn recorded(&self) -> Result<JsonText, Failure> {
        if let Some(path) = self.paths().find(|path| path.to_str().is_none()) {
            return Err(Failure::input(format_args!("{path:?} is not UTF-8"))
                .hint("what is recorded, and told to agents and plugins, is text: rename it"));
        }
        JsonText::of(self)
            .map_err(|error| Failure::input("the plan cannot be recorded").caused_by(Some(&error)))
    }

    /// The files and folders that are named in it.
    fn paths(&self) -> impl Iterator<Item = &Path> {
        let folders = [&self.working_folder, &self.opened_in].map(|folder| folder.as_path());
        let inputs = self.inputs.iter().flat_map(|input| [&input.path, input.resolved()]);
        let inputs = inputs.map(|path| path.as_path());
        let named = self.config.iter().chain(&self.plugin_path).map(PathBuf::as_path);
        folders.into_iter().chain(named).chain(inputs)
    }

    /// Prints what would be run, and under which limits.
    pub(crate) fn dry_run(
        &self,
        agents: &[PlannedAgent],
        config: &Config,
        cx: &Invocation,
    ) -> Result<Exit, Failure> {
        let is_set = |(_, valued): &(String, Valued<Value>)| !valued.value.is_null();
        let limits = SubagentSettings::limits();
        let is_limit = |(key, _): &(String, _)| limits.contains(key);
        let limits: IndexMap<_, _> =
            config.resolve(&self.agent).filter(is_limit).filter(is_set).collect();
        let together = agents.iter().map(|agent| agent.bytes).sum();
        if cx.output.wants_json() {
            let dry_run = DryRun {
                plan: self,
                agents: agents.len(),
                bytes: together,
                pieces: agents,
                limits: &limits,
                cost: None,
            };
            cx.output.json(&dry_run)?;
            return Ok(Exit::Done);
        }
        let program = wording::command_line(&self.program);
        let many = if agents.len() == 1 { "agent" } else { "agents" };
        cx.output
            .line(format_args!("{} {many}, each runs: {program}", count(agents.len() as u64)))?;
        let row = |agent: &PlannedAgent| [format!("  {}", agent.label), bytes(agent.bytes)];
        cx.output.table(&agents.iter().take(SHOWN).map(row).collect::<Vec<_>>())?;
        if let more @ 1.. = agents.len().saturating_sub(SHOWN) {
            cx.output.line(format_args!("  and {} more", count(more as u64)))?;
        }
        cx.output.line(format_args!("{} together", bytes(together)))?;
        if let Some(merge) = &self.merge {
            cx.output.line(format_args!("merge: {merge}"))?;
        }
        cx.output.line("limits:")?;
        let row = |(key, valued): (&String, &Valued<Value>)| {
            [format!("  {key}"), valued.value.to_string(), valued.origin.to_string()]
        };
        cx.output.table(&limits.iter().map(row).collect::<Vec<_>>())?;
        cx.output.line(match &*self.runtime {
            name if name == EXEC.name => "cost: none that is known, because the program is yours",
            _ => "cost: not known before; budget.usd is the most",
        })?;
        Ok(Exit::Done)
    }
}
