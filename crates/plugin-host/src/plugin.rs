//! A plugin in this process. Loaded once and never unloaded: threads of it may run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use offshoot_model::{ContentHash, JsonText, ProcessIdentity};
use offshoot_plugin_abi::AbiError;
use offshoot_plugin_abi::abi_stable::std_types::RResult;
use offshoot_plugin_abi::wire::manifest::{self, Manifest, Panic};

use crate::code::Code;
use crate::error::PluginError;
use crate::functions::Functions;
use crate::host::{Log, Surroundings, host};
use crate::load::{Opened, abi_version, open};
use crate::merge::PluginMerge;
use crate::package::{AbiVersion, Package, PluginName};
use crate::process::Service;
use crate::runtime::PluginRuntime;
use crate::search::Checked;
use crate::settings;

/// A plugin whose library is open, or whose program is there to be started.
pub struct Plugin {
    path: PathBuf,
    digest: ContentHash,
    abi: AbiVersion,
    manifest: Manifest,
    pub(crate) functions: Functions,
    /// Known since it began.
    log: OnceLock<Log>,
}

/// The plugins of this process, by library. A process has one of each, because it has one of each library: a static
/// says what is so anyway. Locked for a look at the map, never while code of a plugin runs.
static LOADED: Mutex<BTreeMap<PathBuf, Arc<Place>>> = Mutex::new(BTreeMap::new());

/// The place of one library.
#[derive(Default)]
struct Place {
    /// Held by the load that is under way, which may last for ever: others of the same library wait for it.
    loading: Mutex<()>,
    plugin: OnceLock<Arc<Plugin>>,
}

/// The time after the grace for which the answer to a shutdown is still waited for.
const LINGER: Duration = Duration::from_secs(1);

impl Plugin {
    /// Loads a plugin and begins to use it. One that is loaded already answers as it is, whatever the configuration.
    ///
    /// Its code runs from here on: with a library that is new here, see [`try_out`](crate::try_out) first.
    ///
    /// # Errors
    /// Fails if it does not fit, or refuses to.
    pub fn load(
        checked: &Checked,
        surroundings: Surroundings,
        config: &JsonText,
    ) -> Result<Arc<Self>, PluginError> {
        let place = {
            let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(loaded.entry(checked.path().to_owned()).or_default())
        };
        let _loading = place.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plugin) = place.plugin.get() {
            return match plugin.digest == checked.digest() {
                true => Ok(Arc::clone(plugin)),
                false => Err(PluginError::Replaced { path: checked.path().to_owned() }),
            };
        }
        let plugin = Self::open(checked, &surroundings)?;
        plugin.init(surroundings, config)?;
        Ok(Arc::clone(place.plugin.get_or_init(|| Arc::new(plugin))))
    }

    /// Opens a library or starts a program, and asks it what it is, which is as far as looking goes.
    pub(crate) fn open(
        checked: &Checked,
        surroundings: &Surroundings,
    ) -> Result<Self, PluginError> {
        let path = checked.path().to_owned();
        let (functions, abi) = match &checked.code {
            Code::Library(library) => {
                let Opened { module, abi } = open(&path, library.keep())?;
                (Functions::Library(module), abi)
            }
            Code::Program(program) => {
                let package = checked.package.as_ref();
                let name = package.map_or("", |package| package.name.as_str());
                let abi = package.map_or_else(abi_version, |package| package.abi);
                (Functions::Program(Service::new(program, name, surroundings)?), abi)
            }
        };
        let json = functions.describe().into_result();
        let json = json.map_err(|error| refused(&path, "say what it is".to_owned(), &error))?;
        let manifest = manifest::decode(&json)
            .map_err(|error| refused(&path, "say what it is".to_owned(), &error))?;
        // A program ends itself alone.
        if manifest.panic == Panic::Abort && !checked.is_program() {
            return Err(PluginError::PanicAborts { path });
        }
        if let Some(what) = checked.package.as_ref().and_then(|package| differs(package, &manifest))
        {
            return Err(PluginError::Disagrees { path, what });
        }
        Ok(Self { path, digest: checked.digest(), abi, manifest, functions, log: OnceLock::new() })
    }

    pub(crate) fn init(
        &self,
        surroundings: Surroundings,
        config: &JsonText,
    ) -> Result<(), PluginError> {
        self.check_settings(self.manifest.config_schema.as_ref(), config)?;
        if let Some(log) = &surroundings.log {
            let _ = self.log.set(Arc::clone(log));
        }
        let span = tracing::error_span!("plugin", name = %self.manifest.name);
        match self.functions.init(host(surroundings, span), config.as_str()) {
            RResult::ROk(_) => {
                let Self { manifest: Manifest { name, version, .. }, digest, path, .. } = self;
                tracing::info!(%name, %version, %digest, ?path, "plugin loaded");
                Ok(())
            }
            RResult::RErr(error) => Err(self.refused("begin", &error)),
        }
    }

    #[cfg(feature = "conformance")]
    pub(crate) fn is_program(&self) -> bool {
        matches!(self.functions, Functions::Program(_))
    }

    /// Returns its processes that live, where it is a program.
    pub fn processes(&self) -> Vec<ProcessIdentity> {
        match &self.functions {
            Functions::Library(_) => Vec::new(),
            Functions::Program(service) => service.processes(),
        }
    }

    /// Returns the log that has what becomes of its runs.
    pub(crate) fn log(&self) -> Option<Log> {
        self.log.get().cloned()
    }

    /// Holds settings against their schema, where there is one.
    fn check_settings(
        &self,
        schema: Option<&JsonText>,
        settings: &JsonText,
    ) -> Result<(), PluginError> {
        let Some(schema) = schema else { return Ok(()) };
        let path = || self.path.clone();
        let problems = settings::problems(schema, settings)
            .map_err(|why| PluginError::NoSchema { path: path(), why })?;
        match problems.is_empty() {
            true => Ok(()),
            false => Err(PluginError::Settings { path: path(), problems }),
        }
    }

    /// Returns what the plugin says of itself.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The version of the interface that it was built for.
    pub fn abi(&self) -> AbiVersion {
        self.abi
    }

    /// The library, or the `plugin.toml` of a program.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// One of its runtimes, with its settings.
    ///
    /// # Errors
    /// Fails if it has none of this name, or cannot use the settings.
    pub fn runtime(
        self: &Arc<Self>,
        name: &str,
        config: &JsonText,
    ) -> Result<PluginRuntime, PluginError> {
        let entry = self.manifest.runtimes.iter().find(|entry| entry.name == name);
        let entry = entry.ok_or_else(|| self.has_no("runtime", name))?;
        self.check_settings(entry.config_schema.as_ref(), config)?;
        let made = self.functions.made_runtime(name, config.as_str());
        let (runtime, abilities) =
            made.map_err(|error| self.refused(&format!("give the runtime `{name}`"), &error))?;
        let abilities = abilities.unwrap_or_else(|| entry.abilities.clone());
        Ok(PluginRuntime::new(Arc::clone(self), name, abilities, runtime))
    }

    /// One of its merges, with its settings.
    ///
    /// # Errors
    /// Fails if it has none of this name, or cannot use the settings.
    pub fn merge(
        self: &Arc<Self>,
        name: &str,
        config: &JsonText,
    ) -> Result<PluginMerge, PluginError> {
        let entry = self.manifest.merges.iter().find(|entry| entry.name == name);
        let entry = entry.ok_or_else(|| self.has_no("merge", name))?;
        self.check_settings(entry.config_schema.as_ref(), config)?;
        match self.functions.merge(name, config.as_str()) {
            RResult::ROk(merge) => Ok(PluginMerge::new(Arc::clone(self), name, merge)),
            RResult::RErr(error) => Err(self.refused(&format!("give the merge `{name}`"), &error)),
        }
    }

    /// Ends everything that it runs. It is not asked for anything afterwards.
    ///
    /// # Errors
    /// Fails if it says that something is left, or does not answer in time.
    pub async fn shutdown(&self, grace: Duration) -> Result<(), PluginError> {
        let milliseconds = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        let over = self.functions.shutdown(milliseconds);
        match tokio::time::timeout(grace + LINGER, over).await {
            Ok(RResult::ROk(_)) => Ok(()),
            Ok(RResult::RErr(error)) => Err(self.refused("end", &error)),
            Err(_) => {
                let late = AbiError::new(AbiError::FAILED, "it did not answer in time");
                Err(self.refused("end", &late))
            }
        }
    }

    fn has_no(&self, kind: &'static str, name: &str) -> PluginError {
        PluginError::Disagrees {
            path: self.path.clone(),
            what: format!("it has no {kind} `{name}`"),
        }
    }

    fn refused(&self, doing: &str, error: &AbiError) -> PluginError {
        refused(&self.path, doing.to_owned(), error)
    }
}

/// Ends everything that the plugins of this process run, at once for all. A process that is about to end asks for it, or
/// what they have started stays behind. One that is still being loaded is not waited for.
pub async fn shutdown_all(grace: Duration) -> Vec<PluginError> {
    let all: Vec<Arc<Plugin>> = {
        let loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.values().filter_map(|place| place.plugin.get()).map(Arc::clone).collect()
    };
    let ended = join_all(all.iter().map(|plugin| plugin.shutdown(grace))).await;
    ended.into_iter().filter_map(Result::err).collect()
}

/// Returns how a package differs from what its code says of itself. Both state name, version, runtimes and merges, because the
/// package is read where no code may run yet. The package may offer a part of what the code has.
pub(crate) fn differs(package: &Package, manifest: &Manifest) -> Option<String> {
    let of_one = |what, package: &str, code: &str| difference(what, [package], [code]);
    let runtimes = manifest.runtimes.iter().map(|entry| entry.name.as_str());
    let merges = manifest.merges.iter().map(|entry| entry.name.as_str());
    of_one("name", package.name.as_str(), &manifest.name)
        .or_else(|| of_one("version", &package.version, &manifest.version))
        .or_else(|| {
            difference("runtimes", package.runtimes.iter().map(PluginName::as_str), runtimes)
        })
        .or_else(|| difference("merges", package.merges.iter().map(PluginName::as_str), merges))
}

fn difference<'a>(
    what: &str,
    package: impl IntoIterator<Item = &'a str>,
    code: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let [package, code] =
        [package.into_iter().collect::<BTreeSet<_>>(), code.into_iter().collect::<BTreeSet<_>>()];
    let words = |names: &BTreeSet<&str>| match names.is_empty() {
        true => "none".to_owned(),
        false => names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
    };
    (!package.is_subset(&code))
        .then(|| format!("{what}: {} there, {} in its code", words(&package), words(&code)))
}

fn refused(path: &Path, doing: String, error: &AbiError) -> PluginError {
    let hint = Detail::of(error).hint;
    PluginError::Refused { path: path.to_owned(), doing, message: words(error), hint }
}

/// The details of an error that are shown.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Detail {
    /// The place of a panic.
    place: Option<String>,
    /// Advice on what to do.
    hint: Option<String>,
}

impl Detail {
    fn of(error: &AbiError) -> Self {
        serde_json::from_str(&error.detail_json).unwrap_or_default()
    }
}

/// An error of a plugin, with the place of a panic.
pub(crate) fn words(error: &AbiError) -> String {
    let place = Detail::of(error).place;
    let known = place.filter(|place| !error.message.contains(place.as_str()));
    match (error.known_code(), known) {
        (AbiError::PANICKED, Some(place)) => format!("it panicked: {} ({place})", error.message),
        (AbiError::PANICKED, None) => format!("it panicked: {}", error.message),
        _ => error.message.to_string(),
    }
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugin")
            .field("path", &self.path)
            .field("abi", &self.abi)
            .finish_non_exhaustive()
    }
}
