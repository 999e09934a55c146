//! The runtimes whose requests to models go through the meter, as the configuration has them.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use offshoot_config::{Config, MeterMode, RuntimeSettings};
use offshoot_meter::{
    AddressError, ClientOptions, Credential, KeySource, LEAST_OUTPUT_TOKENS, Login,
    PluginProcesses, PriceTable, Provider, Scheme, Upstream,
};
use offshoot_model::{MicroUsd, ProcessIdentity};
use offshoot_plugin_host::{Plugin, PluginRuntime};
use offshoot_process::{Identity, Processes, ProgramError, resolve_program};
use offshoot_runtime::{MeterProtocols, Runtime, Variable, leads_to_provider, past_proxies};

use crate::environment::Environment;
use crate::runtimes::{self, BUILT_IN, BuiltInRuntime};

/// Everything that the meters of a host need to know.
#[derive(Debug, Default)]
pub(crate) struct Metering {
    /// The providers of each metered runtime, or the fault that each of its runs reports.
    runtimes: BTreeMap<Arc<str>, Result<Metered, MeteringError>>,
    pub(crate) prices: PriceTable,
    pub(crate) client: ClientOptions,
    /// The dearest price of a million tokens that a model writes; none where no model has one.
    dearest_output: Option<MicroUsd>,
}

/// The providers behind the meter for the runs of one runtime.
#[derive(Clone, Debug)]
pub(crate) struct Metered {
    pub(crate) upstreams: HashMap<Provider, Upstream>,
    /// True if its programs have a login of their own.
    pub(crate) own_login: bool,
    /// The variable that holds the key, where the configuration names one.
    pub(crate) key_variable: Option<Arc<str>>,
    /// The plugin that asks for the runs; none where the runtime is built in.
    pub(crate) plugin: Option<Arc<Plugin>>,
}

/// A runtime that cannot be metered as the configuration says.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MeteringError {
    /// The address of the provider is none that the meter can use.
    #[error("the runs of the runtime `{runtime}` cannot be metered")]
    Address {
        /// The runtime.
        runtime: String,
        /// The fault.
        #[source]
        source: AddressError,
    },
    /// The program that prints the key is not there.
    #[error("runtimes.{runtime}.keyCommand cannot be started")]
    KeyCommand {
        /// The runtime.
        runtime: String,
        /// The fault.
        #[source]
        source: ProgramError,
    },
    /// The path of the file with the key depends on a folder.
    #[error("runtimes.{runtime}.keyFile is no absolute path")]
    KeyFile {
        /// The runtime.
        runtime: String,
    },
    /// The variable that should hold the key is not set.
    #[error("the variable {variable}, which runtimes.{runtime}.keyEnv names, is not set")]
    NoKey {
        /// The runtime.
        runtime: String,
        /// The variable.
        variable: String,
    },
    /// A program or a plugin may ask any provider, so one key says nothing.
    #[error("runtimes.{runtime} names one key, and its programs may ask any provider")]
    KeyOfPrograms {
        /// The runtime.
        runtime: String,
    },
    /// No provider is known.
    #[error("runtimes.{runtime}.meter is on, and no variable holds the key of a provider")]
    NoProvider {
        /// The runtime.
        runtime: String,
    },
}

impl MeteringError {
    /// Returns what can be done about it.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::Address { .. } => {
                "give an address that begins with https:, or with http: on this machine"
            }
            Self::KeyCommand { .. } => "check its name, its mode and PATH",
            Self::KeyFile { .. } => "write the whole path, from / on",
            Self::NoKey { .. } => "export it, or name another variable",
            Self::KeyOfPrograms { .. } => {
                "set meter = \"on\" in place of keyEnv, keyFile and keyCommand, and export ANTHROPIC_API_KEY, \
                 OPENAI_API_KEY or GEMINI_API_KEY; programs and plugins get a ticket in their place"
            }
            Self::NoProvider { .. } => {
                "export ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY; programs and plugins get a ticket in their place"
            }
        }
    }
}

/// A provider as its own programs know it: the variables of its key and of its address, and the address where that is not set.
struct Known {
    provider: Provider,
    keys: &'static [(&'static str, Scheme)],
    address_variable: &'static str,
    address: &'static str,
}

const ANTHROPIC: Known = Known {
    provider: Provider::Anthropic,
    keys: &[("ANTHROPIC_API_KEY", Scheme::ApiKey), ("ANTHROPIC_AUTH_TOKEN", Scheme::Bearer)],
    address_variable: "ANTHROPIC_BASE_URL",
    address: "https://api.anthropic.com",
};

const OPEN_AI: Known = Known {
    provider: Provider::OpenAi,
    keys: &[("OPENAI_API_KEY", Scheme::Bearer)],
    address_variable: "OPENAI_BASE_URL",
    address: "https://api.openai.com/v1",
};

const GEMINI: Known = Known {
    provider: Provider::Gemini,
    keys: &[("GEMINI_API_KEY", Scheme::GoogApiKey), ("GOOGLE_API_KEY", Scheme::GoogApiKey)],
    address_variable: "GOOGLE_GEMINI_BASE_URL",
    address: "https://generativelanguage.googleapis.com",
};

/// The provider that the runs of a runtime ask, by which they are metered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asks {
    /// Anthropic, or what its variable names.
    Anthropic,
    /// The chat endpoint of the configuration.
    ChatEndpoint,
    /// The provider that a program chooses, of those whose key the supervisor has.
    AnyProvider,
}

/// Returns whether the requests of this runtime go through the meter: where the configuration says so, or names a key for it.
pub fn is_metered(config: &Config, runtime: &str) -> bool {
    let Some(settings) = config.runtime(runtime) else { return false };
    match settings.meter.as_ref().map_or(MeterMode::Auto, |meter| meter.value) {
        MeterMode::On => true,
        MeterMode::Off => false,
        MeterMode::Auto => names_key(settings),
    }
}

/// Returns the environment of plugins that are programs. Where a runtime of a plugin is metered, it has no key and no address of a provider,
/// and no proxy is asked for the meter.
pub(crate) fn environment_of_plugins(config: &Config, environment: &Environment) -> Vec<Variable> {
    let is_of_plugin = |name: &str| BuiltInRuntime::of(name).is_none();
    if !config.runtimes().any(|name| is_of_plugin(name) && is_metered(config, name)) {
        return environment.variables.clone();
    }
    let key_of = |name: &str| config.runtime(name)?.key_env.as_ref().map(|key| key.value.clone());
    let of_endpoint = runtimes::openai_endpoint(config).1;
    let keys: Vec<String> = config.runtimes().filter_map(key_of).chain(of_endpoint).collect();
    let is_key = |name: &OsStr| keys.iter().any(|key| name == &**key);
    let keeps = |(name, _): &Variable| !leads_to_provider(name) && !is_key(name);
    past_proxies(environment.variables.iter().filter(|it| keeps(it)).cloned().collect())
}

/// Returns the price of a million tokens that a model reads in an ordinary request; none where the configuration has no price of it.
pub fn input_price(config: &Config, model: &str) -> Option<MicroUsd> {
    PriceTable::of(config.prices()).find(model).map(|price| price.rates.input)
}

/// Returns what a million tokens cost less where a model reads them from its cache than where it writes them there; none where the
/// configuration has no price of it.
pub fn cache_saving(config: &Config, model: &str) -> Option<MicroUsd> {
    let rates = PriceTable::of(config.prices()).find(model)?.rates;
    let saving = rates.cache_write.as_micros().saturating_sub(rates.cache_read.as_micros());
    Some(MicroUsd::from_micros(saving))
}

fn names_key(settings: &RuntimeSettings) -> bool {
    let RuntimeSettings { key_env, key_file, key_command, .. } = settings;
    key_env.is_some() || key_file.is_some() || key_command.is_some()
}

impl Metering {
    /// Returns the meters of a configuration; none where no runtime is metered. A runtime without an address or a key is a fault of its runs
    /// alone: other trees of the same configuration do not need it.
    pub(crate) fn of(
        config: &Config,
        environment: &Environment,
        processes: &Processes,
        plugins: &[PluginRuntime],
    ) -> Option<Self> {
        let built_in = BUILT_IN.into_iter().map(|runtime| (runtime.name, None));
        let of_plugins = plugins.iter().map(|runtime| (runtime.name(), Some(runtime.plugin())));
        let all = built_in.chain(of_plugins).filter(|(name, _)| is_metered(config, name));
        let metered = |(name, plugin): (&str, Option<&Arc<Plugin>>)| {
            let metered = metered(name, config, environment, Some(processes));
            let plugin = plugin.map(Arc::clone);
            (name.into(), metered.map(|metered| Metered { plugin, ..metered }))
        };
        let found: BTreeMap<_, _> = all.map(metered).collect();
        if found.is_empty() {
            return None;
        }
        let output = |(_, price): (&String, &offshoot_config::Price)| {
            price.output_per_million.as_ref().map(|price| price.value)
        };
        let text = |name: &str| environment.text(name).map(str::to_owned);
        Some(Self {
            runtimes: found,
            prices: PriceTable::of(config.prices()),
            client: ClientOptions {
                proxy: text("HTTPS_PROXY").or_else(|| text("https_proxy")),
                no_proxy: text("NO_PROXY").or_else(|| text("no_proxy")),
                certificates: text("SSL_CERT_FILE").map(Into::into),
            },
            dearest_output: config.prices().iter().filter_map(output).max(),
        })
    }

    /// One runtime with these providers and prices, for the proof of the meter.
    pub(crate) fn of_probe(runtime: &str, metered: Metered, prices: PriceTable) -> Self {
        Self { runtimes: [(runtime.into(), Ok(metered))].into(), prices, ..Self::default() }
    }

    /// The names of the built-in runtimes.
    pub(crate) fn built_in(&self) -> impl Iterator<Item = &str> {
        self.runtimes.keys().map(|name| &**name).filter(|name| BuiltInRuntime::of(name).is_some())
    }

    /// The names of the runtimes of plugins.
    pub(crate) fn of_plugins(&self) -> impl Iterator<Item = &str> {
        self.runtimes.keys().map(|name| &**name).filter(|name| BuiltInRuntime::of(name).is_none())
    }

    /// The providers for the runs of a runtime; none where it is not metered.
    pub(crate) fn runtime(&self, name: &str) -> Option<&Result<Metered, MeteringError>> {
        self.runtimes.get(name)
    }

    /// Returns the limit of one answer with these dollars left: an answer of that length costs at most half of them, so that one request does
    /// not reserve all there is. None where no model has a price.
    pub(crate) fn output_limit(&self, left: MicroUsd) -> Option<u64> {
        let rate = self.dearest_output.filter(|rate| !rate.is_zero())?.as_micros();
        let half = u128::from(left.as_micros() / 2) * 1_000_000 / u128::from(rate);
        Some(u64::try_from(half).unwrap_or(u64::MAX).clamp(LEAST_OUTPUT_TOKENS, MOST_OUTPUT))
    }
}

/// The limit of an answer for which Claude Code asks by itself.
const MOST_OUTPUT: u64 = 32_000;

/// The key that the configuration names for a runtime; none where it names none, and where only a program knows it and there are no
/// processes to ask one with.
fn key(
    runtime: &str,
    settings: &RuntimeSettings,
    environment: &Environment,
    processes: Option<&Processes>,
) -> Result<Option<KeySource>, MeteringError> {
    let RuntimeSettings { key_env, key_file, key_command, .. } = settings;
    if let Some(variable) = key_env {
        let variable = variable.value.clone();
        return match environment.text(&variable) {
            Some(key) => Ok(Some(KeySource::Text(key.into()))),
            None => Err(MeteringError::NoKey { runtime: runtime.to_owned(), variable }),
        };
    }
    if let Some(file) = key_file {
        if !file.value.path().is_absolute() {
            return Err(MeteringError::KeyFile { runtime: runtime.to_owned() });
        }
        return Ok(Some(KeySource::File(file.value.path().to_owned())));
    }
    let Some(command) = key_command else { return Ok(None) };
    let words: &[String] = command.value.as_ref();
    let folder = Path::new("/");
    let program = resolve_program(words[0].as_ref(), environment.path(), folder);
    let cannot = |source| MeteringError::KeyCommand { runtime: runtime.to_owned(), source };
    let program = program.map_err(cannot)?;
    Ok(processes.map(|processes| KeySource::Command {
        processes: processes.clone(),
        program,
        arguments: words[1..].iter().map(Into::into).collect(),
        environment: environment.variables.clone(),
        folder: folder.to_owned(),
    }))
}

/// Returns the providers for the runs of a runtime that is metered. Without processes no program is asked for a key.
pub(crate) fn metered(
    runtime: &str,
    config: &Config,
    environment: &Environment,
    processes: Option<&Processes>,
) -> Result<Metered, MeteringError> {
    let settings = config.runtime(runtime).cloned().unwrap_or_default();
    let asks = BuiltInRuntime::of(runtime).map_or(Asks::AnyProvider, |runtime| runtime.asks);
    let key = || key(runtime, &settings, environment, processes);
    let (known, key, address, usual) = match asks {
        Asks::AnyProvider if names_key(&settings) => {
            return Err(MeteringError::KeyOfPrograms { runtime: runtime.to_owned() });
        }
        Asks::AnyProvider => return of_programs(runtime, environment),
        Asks::Anthropic => {
            let (address, login) = (ANTHROPIC.address(environment), ANTHROPIC.login(environment));
            (&ANTHROPIC, key()?, address, login)
        }
        Asks::ChatEndpoint => {
            let (address, variable) = runtimes::openai_endpoint(config);
            let of_endpoint = variable.and_then(|variable| environment.text(&variable));
            let login = of_endpoint.map(|key| (KeySource::Text(key.into()), Scheme::Bearer));
            (&OPEN_AI, key()?, address, login)
        }
    };
    let scheme = known.keys[0].1;
    let login = match key.map(|key| (key, scheme)).or(usual) {
        Some((key, scheme)) => Login::Key(Credential::new(key), scheme),
        None => Login::Program,
    };
    let own_login = matches!(login, Login::Program);
    let upstream = Upstream::new(&address, login);
    let unfit = |source| MeteringError::Address { runtime: runtime.to_owned(), source };
    let upstream = upstream.map_err(unfit)?;
    let key_variable = settings.key_env.map(|variable| variable.value.into());
    let upstreams = [(known.provider, upstream)].into();
    Ok(Metered { upstreams, own_login, key_variable, plugin: None })
}

/// Programs and plugins may ask each provider of which the supervisor has a key.
fn of_programs(runtime: &str, environment: &Environment) -> Result<Metered, MeteringError> {
    let mut upstreams = HashMap::new();
    for known in [ANTHROPIC, OPEN_AI, GEMINI] {
        let Some((key, scheme)) = known.login(environment) else { continue };
        let login = Login::Key(Credential::new(key), scheme);
        let upstream = Upstream::new(&known.address(environment), login);
        let unfit = |source| MeteringError::Address { runtime: runtime.to_owned(), source };
        upstreams.insert(known.provider, upstream.map_err(unfit)?);
    }
    match upstreams.is_empty() {
        true => Err(MeteringError::NoProvider { runtime: runtime.to_owned() }),
        false => Ok(Metered { upstreams, own_login: false, key_variable: None, plugin: None }),
    }
}

impl Known {
    fn address(&self, environment: &Environment) -> String {
        environment.text(self.address_variable).unwrap_or(self.address).to_owned()
    }

    fn login(&self, environment: &Environment) -> Option<(KeySource, Scheme)> {
        self.keys.iter().find_map(|(variable, scheme)| {
            Some((KeySource::Text(environment.text(variable)?.into()), *scheme))
        })
    }
}

impl Metered {
    /// The processes of the plugin that asks for the runs; none where the runtime is built in.
    pub(crate) fn plugin_processes(&self) -> Option<PluginProcesses> {
        let plugin = Arc::clone(self.plugin.as_ref()?);
        let identity = |it: ProcessIdentity| Identity { pid: it.pid, start_time: it.start_time };
        Some(Arc::new(move || plugin.processes().into_iter().map(identity).collect()))
    }

    /// The protocols for which there is a provider.
    pub(crate) fn protocols(&self) -> MeterProtocols {
        let has = |provider: Provider| self.upstreams.contains_key(&provider);
        MeterProtocols {
            anthropic: has(Provider::Anthropic),
            openai: has(Provider::OpenAi),
            gemini: has(Provider::Gemini),
        }
    }
}
