//! Plugins: found, checked against what the user trusts, tried out once, and loaded.
//!
//! ```text
//!   search ──▶ candidate ── trusted? ──▶ checked ── vetted? no: in a process of its own first ──▶ loaded
//! ```

mod snapshot;
mod vetted;

use std::error::Error;
use std::ffi::OsString;
use std::sync::{Arc, OnceLock};

use offshoot_config::{AgentDefinition, Config};
use offshoot_model::{ContentHash, JsonText};
use offshoot_plugin_host::{
    Candidate, Checked, Described, Extent, LogLine, Plugin, PluginMerge, PluginRuntime, Search,
    Surroundings, Trier, try_out,
};
use offshoot_process::Processes;

use self::vetted::VettedLibraries;
use crate::environment::Environment;
use crate::error::HostError;
use crate::metering::environment_of_plugins;
use crate::processes::Children;
use crate::reporter::Reporter;
use crate::runtimes::BuiltInRuntime;
use crate::threads::aside;

pub use snapshot::PluginSnapshot;

/// Returns the hash that the user has trusted of a plugin, if any.
pub type Trust =
    dyn Fn(&Candidate) -> Result<Option<ContentHash>, Box<dyn Error + Send + Sync>> + Send + Sync;

/// The plugins that can be found, and those that were loaded. Cheap to clone.
#[derive(Clone, derive_more::Debug)]
#[debug("Plugins({runtimes:?})")]
pub struct Plugins {
    search: Search,
    trust: Arc<Trust>,
    config: Config,
    environment: Environment,
    reporter: Reporter,
    /// Started with the first that is needed.
    children: Arc<OnceLock<Children>>,
    runtimes: Vec<PluginRuntime>,
}

impl Plugins {
    /// Looks for plugins where `search` says, and lets those of a place that other users may write run only where `trust` has them.
    pub fn new(
        search: Search,
        trust: Arc<Trust>,
        config: Config,
        environment: Environment,
        reporter: Reporter,
    ) -> Self {
        let (children, runtimes) = (Arc::default(), Vec::new());
        Self { search, trust, config, environment, reporter, children, runtimes }
    }

    /// Returns the places that are looked at.
    pub fn search(&self) -> &Search {
        &self.search
    }

    /// Returns the runtimes that were loaded.
    pub fn runtimes(&self) -> &[PluginRuntime] {
        &self.runtimes
    }

    /// Returns what starts processes, for plugins and for the tree.
    pub fn processes(&self) -> Result<Processes, HostError> {
        self.children().map(|children| children.processes.clone())
    }

    /// Returns the same, with the place for the tree that is told what is noticed.
    pub(crate) fn children(&self) -> Result<&Children, HostError> {
        if let Some(children) = self.children.get() {
            return Ok(children);
        }
        let started =
            Children::hold(&self.environment, self.config.bounds_memory(), &self.reporter)?;
        Ok(self.children.get_or_init(|| started))
    }

    /// Looks for a runtime, and checks all that can be checked without running it.
    pub fn find_runtime(&self, name: &str) -> Result<Checked, HostError> {
        let candidate = self.search.runtime(name)?;
        self.check(candidate)
    }

    /// Loads a runtime. It is there for the tree from now on.
    pub fn load_runtime(
        &mut self,
        name: &str,
        checked: &Checked,
    ) -> Result<&PluginRuntime, HostError> {
        let settings = self.runtime_settings(name);
        let extent =
            Extent { runtimes: vec![(name.to_owned(), settings.clone())], ..self.extent(checked) };
        let plugin = self.load(checked, &extent)?;
        let runtime = plugin.runtime(name, &settings)?;
        self.runtimes.push(runtime);
        Ok(self.runtimes.last().expect("it was put there just now"))
    }

    /// Loads the runtimes of agents that may be spawned, but for those of these names. One that cannot be used is named in a warning,
    /// and is missing when it is asked for.
    pub fn load_for_agents(&mut self, loaded: &[&str]) {
        let config = self.config.clone();
        let built_in = BuiltInRuntime::names().map(str::to_owned);
        let loaded = loaded.iter().map(|name| (*name).to_owned());
        let mut seen: Vec<String> = built_in.chain(loaded).collect();
        let of_agent = |agent: &AgentDefinition| {
            let name = agent.runtime.as_ref()?.value.clone();
            Some((name, format!("the agent `{}` cannot be run", agent.id())))
        };
        let of_fallback = |name: String| {
            let message = format!("the runtime `{name}` of model.fallbacks takes nothing over");
            (name, message)
        };
        let fallbacks = config.fallback_runtimes().into_iter().map(of_fallback);
        for (name, message) in config.agents().filter_map(of_agent).chain(fallbacks) {
            if seen.contains(&name) {
                continue;
            }
            let found = self.find_runtime(&name);
            let usable = found.and_then(|checked| self.load_runtime(&name, &checked).map(drop));
            if let Err(error) = usable {
                self.reporter.warning(format_args!("{message}: {error}"));
            }
            seen.push(name);
        }
    }

    /// Looks for a merge and loads it.
    pub fn merge(&self, name: &str) -> Result<PluginMerge, HostError> {
        let candidate = self.search.merge(name)?;
        let checked = self.check(candidate)?;
        self.load_merge(name, &checked)
    }

    /// Loads a merge that was found.
    fn load_merge(&self, name: &str, checked: &Checked) -> Result<PluginMerge, HostError> {
        let settings = self.merge_settings(name);
        let extent =
            Extent { merges: vec![(name.to_owned(), settings.clone())], ..self.extent(checked) };
        let plugin = self.load(checked, &extent)?;
        Ok(plugin.merge(name, &settings)?)
    }

    /// Checks what was found, with what the user has said about it.
    pub fn check(&self, candidate: Candidate) -> Result<Checked, HostError> {
        let trusted = self.trusted(&candidate)?;
        Ok(candidate.check(trusted)?)
    }

    /// Returns the hash that the user has trusted of a plugin, if any.
    pub(crate) fn trusted(&self, candidate: &Candidate) -> Result<Option<ContentHash>, HostError> {
        (self.trust)(candidate).map_err(HostError::Trust)
    }

    /// Opens a library in a process of its own and asks what it is.
    pub fn describe(&self, checked: &Checked, extent: &Extent) -> Result<Described, HostError> {
        let trier = self.trier("plugin-trial")?;
        Ok(aside(try_out(&trier, checked, extent))??)
    }

    /// Returns what starts the `offshoot` command in this hidden mode.
    pub fn trier(&self, mode: &str) -> Result<Trier, HostError> {
        Ok(Trier {
            processes: self.processes()?,
            program: self.environment.offshoot.clone(),
            args: vec![OsString::from(mode)],
            environment: environment_of_plugins(&self.config, &self.environment),
        })
    }

    /// Returns the settings of a runtime.
    pub fn runtime_settings(&self, name: &str) -> JsonText {
        let options = self.config.runtime(name).and_then(|runtime| runtime.options.as_ref());
        options.map_or_else(empty, |options| json(&options.value))
    }

    /// Returns the settings of a merge.
    pub fn merge_settings(&self, name: &str) -> JsonText {
        let merges = self.config.plugins().merges.as_ref();
        merges.and_then(|merges| merges.value.get(name)).map_or_else(empty, json)
    }

    /// Returns the settings of a whole plugin.
    pub fn settings(&self, checked: &Checked) -> JsonText {
        let options = self.config.plugins().options.as_ref();
        let name = checked.package.as_ref().map(|package| package.name.as_str());
        let own = options.zip(name).and_then(|(options, name)| options.value.get(name));
        own.map_or_else(empty, json)
    }

    fn extent(&self, checked: &Checked) -> Extent {
        Extent { config: Some(self.settings(checked)), ..Extent::default() }
    }

    fn load(&self, checked: &Checked, extent: &Extent) -> Result<Arc<Plugin>, HostError> {
        let mut vetted = VettedLibraries::read(&self.environment);
        // A program has a process of its own in any case.
        if !checked.is_program() && !vetted.contains(&checked.digest()) {
            self.reporter.detail(format_args!("trying out {}", checked.path().display()));
            self.describe(checked, extent)?;
            vetted.add(checked.digest());
        }
        self.reporter.detail(format_args!("loading {}", checked.path().display()));
        let reporter = self.reporter.clone();
        let log = move |line: LogLine<'_>| {
            let LogLine { level, target, message, .. } = line;
            match level {
                ..=2 => reporter.warning(format_args!("{target}: {message}")),
                _ => reporter.detail(format_args!("{target}: {message}")),
            }
        };
        let surroundings = Surroundings {
            log: Some(Arc::new(log)),
            processes: Some(self.processes()?),
            offshoot: Some(self.environment.offshoot.clone()),
            environment: environment_of_plugins(&self.config, &self.environment),
        };
        let settings = self.settings(checked);
        Ok(Plugin::load(checked, surroundings, &settings)?)
    }
}

fn json(value: &impl serde::Serialize) -> JsonText {
    JsonText::of(value).expect("settings are plain data")
}

fn empty() -> JsonText {
    JsonText::parse("{}".to_owned()).expect("an empty object is JSON")
}
