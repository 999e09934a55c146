//! The data that every command gets besides its own arguments.

use std::path::{Path, PathBuf};

use offshoot_config::Origin;
use offshoot_display::json::Format;

use crate::arguments::Global;
use crate::environment::Environment;
use crate::output::Output;

/// One use of the command.
#[derive(Clone, Debug)]
pub(crate) struct Invocation {
    /// Flags that every command takes.
    pub(crate) global: Global,
    /// The environment of the process, beside its arguments.
    pub(crate) environment: Environment,
    /// The output of the command.
    pub(crate) output: Output,
}

/// The data folder where no other is named.
const DATA_FOLDER: &str = ".offshoot";

impl Invocation {
    /// Puts the parts together.
    pub(crate) fn new(global: Global, environment: Environment) -> Self {
        let output = Output::new(global.loudness(), global.json);
        Self { global, environment, output }
    }

    /// The same, with JSON in this version of its form.
    pub(crate) fn in_format(self, format: Format) -> Self {
        Self { output: self.output.in_format(format), ..self }
    }

    /// Returns the data folder: the flag, the environment, the working directory. Absolute; need not exist.
    pub(crate) fn data_folder(&self) -> PathBuf {
        let named = self.global.data_dir.as_ref().or(self.environment.data_folder.as_ref());
        let folder = named.map_or_else(|| PathBuf::from(DATA_FOLDER), PathBuf::clone);
        self.absolute(folder)
    }

    /// The same, as if started in another folder with this configuration file, unless it was started with one. Data
    /// stays where it is.
    pub(crate) fn in_folder(&self, folder: PathBuf, config: Option<&Path>) -> Self {
        let mut there = self.clone();
        there.global.data_dir = Some(self.data_folder());
        there.global.config = match &self.global.config {
            Some(config) => Some(self.absolute(config)),
            None => config.map(Path::to_owned),
        };
        there.environment.working_folder = folder;
        there
    }

    /// A path as the user meant it.
    pub(crate) fn absolute(&self, path: impl Into<PathBuf>) -> PathBuf {
        self.environment.working_folder.join(path.into())
    }

    /// A path of the configuration. One that stands in a file of a project is seen from the project's folder.
    pub(crate) fn configured(&self, path: impl AsRef<Path>, origin: &Origin) -> PathBuf {
        origin.project().unwrap_or(&self.environment.working_folder).join(path)
    }
}
