//! The programs that runs would start, looked for before anything runs.

use std::path::Path;
use std::sync::Arc;

use indexmap::{IndexMap, IndexSet};
use offshoot_config::{AgentDefinition, Config, RuntimeFallback};
use offshoot_host::runtimes::{
    BuiltInRuntime, CheckRequest, CheckedRuntime, EXEC, check_meter, is_said_to_be_free,
};
use offshoot_host::{HostError, Plugins};
use offshoot_model::{AgentId, BudgetGrant, Grant, SpawnRequest};
use offshoot_plugin_host::{Checked, PluginError};
use offshoot_policy as policy;
use offshoot_runtime::{CostKnowledge, Launch, Runtime};

use crate::code::FailureCode;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// A run that is to be possible.
pub(super) struct Run<'a> {
    pub(super) agent: &'a AgentId,
    pub(super) runtime: &'a str,
    pub(super) folder: &'a Path,
    /// The command that is given for it; empty if none is.
    pub(super) command: &'a [String],
    pub(super) plain: bool,
    /// True if something says what runs it; else it is the default.
    pub(super) chosen: bool,
    /// The model and the thinking that its task names.
    pub(super) model: Option<&'a str>,
    pub(super) thinking: Option<&'a str>,
}

/// The programs that were looked for.
pub(super) struct Programs<'a> {
    /// The plugins, with those that were loaded.
    pub(super) plugins: Plugins,
    config: &'a Config,
    dry_run: bool,
    /// The cost of each runtime, as far as it is known.
    pub(super) costs: IndexMap<Arc<str>, CostKnowledge>,
    /// Runtimes that may take over runs that cost nothing, and cost something.
    pub(super) fallbacks: IndexSet<Arc<str>>,
    cx: &'a Invocation,
}

impl<'a> Run<'a> {
    /// A run for which no command is given, and whose task names no model.
    pub(super) fn bare(agent: &'a AgentId, runtime: &'a str, folder: &'a Path) -> Self {
        let (command, plain, chosen) = (&[][..], false, true);
        Self { agent, runtime, folder, command, plain, chosen, model: None, thinking: None }
    }
}

impl<'a> Programs<'a> {
    /// Nothing was looked for yet. A dry run loads no plugin.
    pub(super) fn new(
        plugins: Plugins,
        config: &'a Config,
        dry_run: bool,
        cx: &'a Invocation,
    ) -> Self {
        let (costs, fallbacks) = (IndexMap::new(), IndexSet::new());
        Self { plugins, config, dry_run, costs, fallbacks, cx }
    }

    /// True if this runtime was found.
    pub(super) fn has(&self, runtime: &str) -> bool {
        self.costs.contains_key(runtime)
    }

    /// Finds what would be started.
    pub(super) fn find(&mut self, run: &Run<'_>) -> Result<Arc<[String]>, Failure> {
        let &Run { agent, runtime, folder, .. } = run;
        let CheckedRuntime { command, cost } = self.check(run)?;
        // No model stands in for a program of the operator's.
        let is_free = cost == CostKnowledge::None || is_said_to_be_free(self.config, runtime);
        if is_free && runtime != EXEC.name {
            for other in self.config.runtime_fallbacks(agent) {
                if self.costs_dollars(&other, agent, folder) {
                    self.fallbacks.insert(other.runtime.into());
                }
            }
        }
        let known = self.costs.entry(runtime.into()).or_insert(cost);
        if *known == CostKnowledge::None {
            *known = cost;
        }
        Ok(command)
    }
}

impl Programs<'_> {
    /// Checks that a run can be started, and returns what it would start.
    fn check(&mut self, run: &Run<'_>) -> Result<CheckedRuntime, Failure> {
        let &Run { agent, runtime, folder, command, plain, chosen, .. } = run;
        Ok(match BuiltInRuntime::of(runtime) {
            Some(built_in) => {
                let environment = &self.cx.environment.of_host();
                let config = self.config;
                let launch = self.dry_run.then(|| launch(run, config)).flatten();
                let launch = launch.as_ref();
                let own = config.agent(agent).and_then(AgentDefinition::primary_model);
                let model = run.model.or(own);
                let request = CheckRequest {
                    config,
                    environment,
                    agent,
                    folder,
                    command,
                    plain,
                    model,
                    launch,
                };
                built_in.check(&request).map_err(|error| match error {
                    HostError::NoCommand { .. } => no_runtime(format_args!("{error}"), None),
                    HostError::Runtime(error) if !chosen => no_runtime(
                        format_args!("nothing says what runs the agent `{agent}`, and {error}"),
                        Some(error.hint()),
                    ),
                    error => error.into(),
                })?
            }
            None => {
                let checked = find_plugin(&self.plugins, runtime)?;
                let is_metered = check_meter(self.config, &self.cx.environment.of_host(), runtime)?;
                // A dry run loads no plugin.
                let own = match self.dry_run {
                    true => CostKnowledge::None,
                    false => self.plugins.load_runtime(runtime, &checked)?.abilities().cost,
                };
                let cost = if is_metered { CostKnowledge::Metered } else { own };
                let name = [runtime.to_owned()];
                CheckedRuntime {
                    command: if command.is_empty() { &name } else { command }.into(),
                    cost,
                }
            }
        })
    }

    /// Returns whether runs on a runtime that takes others over cost an amount that will be known. One that cannot be used takes nothing over.
    fn costs_dollars(&mut self, other: &RuntimeFallback, agent: &AgentId, folder: &Path) -> bool {
        let RuntimeFallback { runtime, model } = other;
        if is_said_to_be_free(self.config, runtime) {
            return false;
        }
        let run = Run { model: model.as_deref(), ..Run::bare(agent, runtime, folder) };
        let cost = self.check(&run).map(|checked| checked.cost);
        cost.is_ok_and(|cost| !matches!(cost, CostKnowledge::None | CostKnowledge::Unknown))
    }
}

/// Returns the run as far as it is known before it begins; none where it would be refused. Its budget is drawn at the start.
fn launch(run: &Run<'_>, config: &Config) -> Option<Launch> {
    let request = SpawnRequest { task: "a dry run".into(), ..SpawnRequest::default() };
    let admission = policy::open(config, run.agent, &request, None).ok()?;
    let definition = config.agent(run.agent);
    let model = definition.and_then(AgentDefinition::primary_model);
    let thinking = definition.and_then(|agent| Some(agent.thinking.as_ref()?.value.as_str()));
    let prompt = definition.and_then(|agent| Some(agent.system_prompt.as_ref()?.value.as_str()));
    let grant = Grant { budget: BudgetGrant::default(), ..Grant::clone(&admission.grant) };
    Some(Launch {
        agent: run.agent.clone(),
        depth: 0,
        working_folder: Arc::new(run.folder.to_path_buf()),
        model: run.model.or(model).map(Into::into),
        thinking: run.thinking.or(thinking).map(Into::into),
        system_prompt: prompt.map(Into::into),
        grant: Arc::new(grant),
        ..Launch::bare("a dry run")
    })
}

/// A runtime that is not built in. Where no plugin has it, all that there are are named.
fn find_plugin(plugins: &Plugins, name: &str) -> Result<Checked, Failure> {
    match plugins.search().runtime(name) {
        Ok(candidate) => Ok(plugins.check(candidate)?),
        Err(PluginError::NotFound { known, unreadable, .. }) => {
            let mut names: Vec<&str> = BuiltInRuntime::names().collect();
            names.extend(known.iter().map(String::as_str));
            let message = format!("there is no runtime `{name}` here");
            let nearest = offshoot_config::nearest(name, &names);
            let nearest = nearest.map(|near| format!("the nearest is `{near}`; "));
            let unusable = unreadable.iter().map(|why| format!("; unusable: {why}"));
            Err(Failure::new(FailureCode::NoSuchRuntime, Exit::NoRuntime, message).hint(
                format_args!(
                    "{}runtimes: {}; `offshoot plugin list` shows where plugins are looked for{}",
                    nearest.unwrap_or_default(),
                    names.join(", "),
                    unusable.collect::<String>()
                ),
            ))
        }
        Err(error) => Err(error.into()),
    }
}

/// The failure where a runtime has nothing to run, or none is chosen and the default is not there.
fn no_runtime(message: std::fmt::Arguments<'_>, or: Option<&str>) -> Failure {
    let names: Vec<_> = BuiltInRuntime::names().collect();
    Failure::new(FailureCode::NothingToRun, Exit::NoRuntime, message).hint(format_args!(
        "give a command after `--`, or set `command` for the agent in the configuration{}; runtimes: {}",
        or.map(|or| format!(", or {or}")).unwrap_or_default(),
        names.join(", ")
    ))
}
