//! The declaration of a plugin: what it offers.

use std::fmt;
use std::sync::Arc;

use offshoot_model::JsonText;
use offshoot_plugin_abi::VERSION;
use offshoot_plugin_abi::wire::manifest::{Manifest, MergeEntry, Panic, RuntimeEntry};
use offshoot_runtime::{Abilities, Merge, Runtime};

use crate::run_fn::Declared;
use crate::{Config, Error, MergeFn, MergeOf, PluginHost, RunFn};

/// The declaration of a plugin: what it offers, and under which names. Declaring must have no effect: a host asks before it decides.
#[derive(Debug)]
pub struct Plugin {
    package: Package,
    /// The package's where absent.
    name: Option<String>,
    description: String,
    config_schema: Option<JsonText>,
    pub(crate) runtimes: Vec<RuntimeOffer>,
    pub(crate) merges: Vec<MergeOffer>,
    /// The kind of what was added last.
    last: Option<Kind>,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Runtime,
    Merge,
}

/// The parts that a runtime or a merge function is made from.
#[derive(Debug)]
pub struct Setup {
    /// The settings of the runtime or the merge function.
    pub config: Config,
    /// The settings of the whole plugin.
    pub plugin_config: Config,
    /// The way to the host.
    pub host: PluginHost,
}

/// The package that a plugin was built from. [`export_plugin!`](crate::export_plugin) fills it in.
#[derive(Clone, Copy, Debug, Default)]
pub struct Package {
    /// The name of the package.
    pub name: &'static str,
    /// The version of the package.
    pub version: &'static str,
    /// The licence of the package.
    pub license: &'static str,
    /// True if its own code was built with `panic = "abort"`. What it depends on may have been built otherwise: the last
    /// crate decides for the whole library.
    pub panic_aborts: bool,
}

type MakeRuntime = dyn Fn(&Setup) -> Result<Arc<dyn Runtime>, Error> + Send + Sync;
type MakeMerge = dyn Fn(&Setup) -> Result<Arc<dyn Merge>, Error> + Send + Sync;

pub(crate) struct RuntimeOffer {
    pub(crate) entry: RuntimeEntry,
    pub(crate) make: Box<MakeRuntime>,
}

pub(crate) struct MergeOffer {
    pub(crate) entry: MergeEntry,
    pub(crate) make: Box<MakeMerge>,
}

impl Plugin {
    /// A plugin that offers nothing yet, and one line about it.
    pub fn new(description: impl Into<String>) -> Self {
        Self {
            package: Package::default(),
            name: None,
            description: description.into(),
            config_schema: None,
            runtimes: Vec::new(),
            merges: Vec::new(),
            last: None,
        }
    }

    /// With a runtime under this name and with these abilities, and one line about it. It is made when a spec first names it, within
    /// the plugin's tokio runtime. Where its code states abilities too, those of a library must be the same; a program may
    /// make one with others.
    #[must_use]
    pub fn runtime<R: RunFn>(
        mut self,
        name: &str,
        description: &str,
        abilities: Abilities,
        make: impl Fn(&Setup) -> Result<R, Error> + Send + Sync + 'static,
    ) -> Self {
        let (name, description) = (name.to_owned(), description.to_owned());
        let declared = (name.clone(), abilities.clone());
        let entry = RuntimeEntry { name, description, abilities, config_schema: None };
        let make = move |setup: &Setup| {
            let (name, abilities) = declared.clone();
            let runtime = Declared { name, abilities, code: make(setup)? };
            Ok(Arc::new(runtime) as Arc<dyn Runtime>)
        };
        self.runtimes.push(RuntimeOffer { entry, make: Box::new(make) });
        self.last = Some(Kind::Runtime);
        self
    }

    /// With a merge function under this name, and one line about it.
    #[must_use]
    pub fn merge<M: MergeFn>(self, name: &str, description: &str) -> Self {
        let called = name.to_owned();
        self.merge_with(name, description, move |setup| {
            let Setup { config, plugin_config, .. } = setup;
            Ok(MergeOf::<M>::new(&called, config.clone(), plugin_config.clone()))
        })
    }

    /// As [`merge`](Self::merge), for what is a [`Merge`] already.
    #[must_use]
    pub fn merge_with<M: Merge>(
        mut self,
        name: &str,
        description: &str,
        make: impl Fn(&Setup) -> Result<M, Error> + Send + Sync + 'static,
    ) -> Self {
        let (name, description) = (name.to_owned(), description.to_owned());
        let make = move |setup: &Setup| Ok(Arc::new(make(setup)?) as Arc<dyn Merge>);
        let entry = MergeEntry { name, description, config_schema: None };
        self.merges.push(MergeOffer { entry, make: Box::new(make) });
        self.last = Some(Kind::Merge);
        self
    }

    /// Under another name than its package's.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// With a JSON Schema of its settings: those that do not fit it are refused before the plugin begins.
    #[must_use]
    pub fn config_schema(mut self, schema: JsonText) -> Self {
        self.config_schema = Some(schema);
        self
    }

    /// With a JSON Schema of the settings of the runtime or merge function that was added last.
    ///
    /// # Panics
    /// Where none was added.
    #[must_use]
    pub fn settings_schema(mut self, schema: JsonText) -> Self {
        let last = match self.last {
            Some(Kind::Runtime) => {
                &mut self.runtimes.last_mut().expect("it was added").entry.config_schema
            }
            Some(Kind::Merge) => {
                &mut self.merges.last_mut().expect("it was added").entry.config_schema
            }
            None => panic!("a schema of settings belongs to a runtime or a merge function"),
        };
        *last = Some(schema);
        self
    }

    /// Makes the runtime of this name with these settings, as JSON, for a test. The host that it is given knows no operation, and
    /// the plugin has no settings.
    ///
    /// # Errors
    /// Fails if there is none of this name, or if it refuses the settings.
    pub fn made(&self, name: &str, settings: &str) -> Result<Arc<dyn Runtime>, Error> {
        let offer = self.runtimes.iter().find(|offer| offer.entry.name == name);
        let offer = offer
            .ok_or_else(|| Error::unsupported(format!("this plugin has no runtime `{name}`")))?;
        let (config, plugin_config) = (Config::new(settings), Config::new(""));
        (offer.make)(&Setup { config, plugin_config, host: PluginHost::of_a_test() })
    }

    /// Of this package.
    #[doc(hidden)]
    #[must_use]
    pub fn of_package(mut self, package: Package) -> Self {
        self.package = package;
        self
    }

    pub(crate) fn manifest(&self) -> Manifest {
        Manifest {
            name: self.name.clone().unwrap_or_else(|| self.package.name.to_owned()),
            version: self.package.version.to_owned(),
            abi: VERSION.to_owned(),
            panic: match self.package.panic_aborts {
                true => Panic::Abort,
                false => Panic::of_this_build(),
            },
            description: self.description.clone(),
            license: self.package.license.to_owned(),
            config_schema: self.config_schema.clone(),
            runtimes: self.runtimes.iter().map(|offer| offer.entry.clone()).collect(),
            merges: self.merges.iter().map(|offer| offer.entry.clone()).collect(),
        }
    }
}

impl fmt::Debug for RuntimeOffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entry.fmt(f)
    }
}

impl fmt::Debug for MergeOffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entry.fmt(f)
    }
}
