//! Settings that all runs of one request have in common. A thousand pieces point to one copy.

use std::path::PathBuf;
use std::sync::Arc;

use offshoot_config::Config;
use offshoot_model::{CostKnowledge, SpawnRequest};
use offshoot_policy::RuntimeFacts;
use offshoot_runtime::{EXEC, OutputFormat};

/// Runtime, command and folder for runs whose agent does not name its own.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// The runtime; where absent that of the agent, then the spawner's default.
    pub runtime: Option<Arc<str>>,
    /// For the runtime `exec`: the program and its arguments.
    pub command: Option<Arc<[String]>>,
    /// Exit codes that mean success; empty means 0 alone.
    pub ok_exit: Arc<[i32]>,
    /// The format of standard output.
    pub output: OutputFormat,
    /// The working folder. Absolute.
    pub working_folder: Arc<PathBuf>,
    /// True if the operator gave the command for this very tree. Such a command costs nothing; one that was configured may be
    /// an agent that calls a model, and what it costs is unknown. `runtimes.exec.cost` says otherwise.
    pub plain: bool,
}

/// Returns what is known of a runtime, with what a program costs. `plain` says whether the operator gave its command for this very
/// tree.
pub(crate) fn priced(facts: Arc<RuntimeFacts>, plain: bool, config: &Config) -> Arc<RuntimeFacts> {
    if &*facts.name != EXEC {
        return facts;
    }
    if facts.cost == CostKnowledge::Metered {
        // The operator's own program may have a login of its own as well, and pass the meter by.
        let unasked_cost = program_cost(config, false);
        return Arc::new(RuntimeFacts { unasked_cost, ..(*facts).clone() });
    }
    let cost = program_cost(config, plain);
    if cost == facts.cost { facts } else { Arc::new(RuntimeFacts { cost, ..(*facts).clone() }) }
}

/// Returns the kind of cost of a program: what `runtimes.exec.cost` says, else none if the operator gave its command for this
/// very tree, and unknown if not. Any other program may call a model.
pub fn program_cost(config: &Config, plain: bool) -> CostKnowledge {
    let said = config.runtime(EXEC).and_then(|settings| settings.cost.as_ref());
    match said {
        Some(said) => said.value,
        None if plain => CostKnowledge::None,
        None => CostKnowledge::Unknown,
    }
}

impl RunSpec {
    /// The spawner's default runtime, in this folder.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self {
            runtime: None,
            command: None,
            ok_exit: Arc::from([]),
            output: OutputFormat::Text,
            working_folder: Arc::new(folder.into()),
            plain: false,
        }
    }

    /// Returns the same settings in another folder, where one is named.
    pub(crate) fn moved_to(self: &Arc<Self>, folder: Option<Arc<PathBuf>>) -> Arc<Self> {
        match folder {
            Some(working_folder) => Arc::new(Self { working_folder, ..(**self).clone() }),
            None => Arc::clone(self),
        }
    }

    /// Returns the settings of one run, which may have asked for others than those of its tree.
    pub(crate) fn asked_by(self: Arc<Self>, request: &SpawnRequest) -> Arc<Self> {
        let SpawnRequest { ok_exit, output, .. } = request;
        if ok_exit.is_none() && output.is_none() {
            return self;
        }
        let ok_exit = ok_exit.clone().unwrap_or_else(|| Arc::clone(&self.ok_exit));
        Arc::new(Self { ok_exit, output: output.unwrap_or(self.output), ..(*self).clone() })
    }

    /// A command of the operator's, in this folder.
    pub fn command(
        folder: impl Into<PathBuf>,
        command: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let command = command.into_iter().map(Into::into).collect();
        Self {
            runtime: Some(EXEC.into()),
            command: Some(command),
            plain: true,
            ..Self::in_folder(folder)
        }
    }
}
