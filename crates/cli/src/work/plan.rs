//! The plan of a tree: recorded with the root.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use offshoot_config::{AgentId, Config};
use offshoot_model::{ContextEntry, Isolation, JsonText, RootId, RunId, path_text};
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
use crate::code::FailureCode;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::wording;

/// All that a later start needs to do the same again.
#[serde_with::skip_serializing_none]
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
    #[serde(with = "path_text")]
    pub(crate) working_folder: Arc<PathBuf>,
    /// The folder in which the command was given, which decides about configuration and relative paths.
    #[serde(with = "path_text")]
    pub(crate) opened_in: Arc<PathBuf>,
    /// The configuration file of the command line.
    #[serde(default, with = "path_text")]
    pub(crate) config: Option<PathBuf>,
    /// The folders in which plugins were looked for first.
    #[serde(default, with = "path_text", skip_serializing_if = "Vec::is_empty")]
    pub(crate) plugin_path: Vec<PathBuf>,
    /// Exit codes that mean success.
    pub(crate) ok_exit: Arc<[i32]>,
    /// The form of an answer.
    pub(crate) output: Cow<'static, str>,
    /// The form that an answer must have, as a JSON Schema.
    pub(crate) schema: Option<JsonText>,
    /// The folder in which each run works.
    pub(crate) isolation: Option<Isolation>,
    /// The limits of the command line.
    #[serde(default, skip_serializing_if = "LimitArguments::is_empty")]
    pub(crate) limits: LimitArguments,
    /// The other settings of its root: all that were set explicitly.
    pub(crate) held: Option<RecordedSettings>,
    /// The values that pieces may read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) context: Vec<ContextEntry>,
    /// The tasks of a fanout.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tasks: Vec<Task>,
    /// The commands of the later stages of a map, each with its program and its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) stages: Vec<Arc<[String]>>,
    /// The cut of the input.
    pub(crate) split: Option<String>,
    /// So many lines of each file stand before each of its pieces.
    pub(crate) header_lines: Option<u64>,
    /// The files, as they were when they were looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) inputs: Vec<InputFile>,
    /// The runs whose results are merged, with the names of the results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) results: Vec<EarlierResult>,
    /// The merge of the answers.
    pub(crate) merge: Option<String>,
    /// The command that must succeed with all patches applied, and the seconds that it has.
    pub(crate) check: Option<(String, u64)>,
    /// The treatment of a piece that did not complete.
    pub(crate) on_failure: Option<String>,
    /// After how many failures the rest is cancelled.
    pub(crate) max_fail: Option<u32>,
    /// The text between two answers that are concatenated.
    pub(crate) separator: Option<String>,
}

/// A run of an earlier tree whose result is merged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EarlierResult {
    /// The name of the result.
    pub(crate) key: Arc<str>,
    /// The tree.
    pub(crate) root: RootId,
    /// The run.
    pub(crate) run: RunId,
}

/// The word for answers that are read as JSON.
const JSON: &str = "json";

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
            schema: _,
            isolation: _,
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
            schema: prepared.schema.clone(),
            isolation: prepared.isolation.clone(),
            limits: limits.clone(),
            held: Some(recorded_settings(config, agent)),
            context: Vec::new(),
            tasks: Vec::new(),
            stages: Vec::new(),
            split: None,
            header_lines: None,
            inputs: Vec::new(),
            results: Vec::new(),
            merge: None,
            check: None,
            on_failure: None,
            max_fail: None,
            separator: None,
        }
    }

    /// With what becomes of many answers.
    pub(crate) fn merging(self, terms: &AnswerRules) -> Self {
        Self {
            merge: Some(terms.merging.to_string()),
            check: terms.check.clone(),
            on_failure: Some(terms.on_failure.to_string()),
            max_fail: terms.max_fail,
            separator: terms.separator.clone(),
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
            recorded_schema: self.schema.clone(),
            isolation: self.isolation.clone(),
            program_configured: self.program_configured,
            recorded: true,
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

    /// Returns the commands of all stages, as a user would type them.
    pub(crate) fn command_line(&self) -> String {
        let stages = std::iter::once(&self.program).chain(&self.stages);
        stages.map(|stage| wording::command_line(stage)).collect::<Vec<_>>().join(" --then -- ")
    }

    /// Returns the treatment of many answers; none where there is one.
    pub(crate) fn terms(&self) -> Result<Option<AnswerRules>, Failure> {
        let (Some(merge), Some(on_failure)) = (&self.merge, &self.on_failure) else {
            return Ok(None);
        };
        Ok(Some(AnswerRules {
            merging: merging(merge)?,
            check: self.check.clone(),
            on_failure: on_failure.parse().map_err(|error| Failure::of(Exit::BadInput, &error))?,
            max_fail: self.max_fail,
            separator: self.separator.clone(),
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
        JsonText::of(self).map_err(|error| {
            Failure::input(FailureCode::PlanUnrecordable, "the plan cannot be recorded")
                .caused_by(Some(&error))
                .hint("give the files and folders names in UTF-8, and type the same again")
        })
    }
}
