//! A plugin in memory: its declaration, its threads and what it is doing.

use std::sync::OnceLock;
use std::time::Duration;

use offshoot_plugin_abi::abi_stable::sabi_trait::TD_Opaque;
use offshoot_plugin_abi::abi_stable::std_types::RString;
use offshoot_plugin_abi::wire::{self, NOTHING};
use offshoot_plugin_abi::{AbiError, HostRef, Merge_TO, MergeRef, Runtime_TO, RuntimeRef};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::executor::Executor;
use crate::guard::Guarded;
use crate::merge_job::MergeObject;
use crate::plugin::RuntimeOffer;
use crate::run::RuntimeObject;
use crate::runs::Runs;
use crate::{Abilities, Config, Plugin, PluginHost, Setup, guard};

/// One for each library; it lives as long as the process, since a library is never unloaded.
pub(crate) struct Loaded {
    plugin: Plugin,
    /// The host and the settings, which `init` brings.
    begun: OnceLock<(PluginHost, Config)>,
    pub(crate) executor: Executor,
    pub(crate) runs: Runs,
}

impl Loaded {
    pub(crate) fn new(plugin: Plugin) -> Self {
        let runs = Runs::new();
        Self { plugin, begun: OnceLock::new(), executor: Executor::new(), runs }
    }

    pub(crate) fn describe(&self) -> String {
        wire::manifest::encode(self.plugin.manifest())
    }

    pub(crate) fn init(&self, host: HostRef, config: &str) -> Result<RString, AbiError> {
        let begun = (PluginHost::new(host), Config::new(config));
        match self.begun.set(begun) {
            Ok(()) => {
                if let Some((host, _)) = self.begun.get() {
                    guard::tell_panics_to(host.clone());
                }
                Ok(NOTHING.into())
            }
            Err(_) => Err(AbiError::new(AbiError::INVALID, "init has been called before")),
        }
    }

    /// A runtime of a library, which has the abilities of the manifest.
    pub(crate) fn runtime(&'static self, name: &str, config: &str) -> Result<RuntimeRef, AbiError> {
        match self.made_runtime(name, config)? {
            (runtime, None) => Ok(Runtime_TO::from_value(runtime, TD_Opaque)),
            (_, Some(code)) => {
                let declared = self.offer(name)?.entry.abilities.clone();
                let message = format!(
                    "the abilities of the runtime `{name}` differ: {declared:?} in its declaration, {code:?} in its code"
                );
                Err(AbiError::new(AbiError::INVALID, message))
            }
        }
    }

    /// A runtime, with its abilities where they are other than those of the manifest.
    pub(crate) fn made_runtime(
        &'static self,
        name: &str,
        config: &str,
    ) -> Result<(RuntimeObject, Option<Abilities>), AbiError> {
        let offer = self.offer(name)?;
        let setup = self.setup(config)?;
        let executor = self.executor.handle()?;
        let entered = executor.enter();
        let runtime = (offer.make)(&setup)?;
        drop(entered);
        let other = Some(runtime.abilities()).filter(|able| *able != offer.entry.abilities);
        Ok((RuntimeObject::new(self, executor, runtime), other))
    }

    fn offer(&self, name: &str) -> Result<&RuntimeOffer, AbiError> {
        let offer = self.plugin.runtimes.iter().find(|offer| offer.entry.name == name);
        offer.ok_or_else(|| unknown("runtime", name))
    }

    pub(crate) fn merge(&'static self, name: &str, config: &str) -> Result<MergeRef, AbiError> {
        let offer = self.plugin.merges.iter().find(|offer| offer.entry.name == name);
        let offer = offer.ok_or_else(|| unknown("merge function", name))?;
        let setup = self.setup(config)?;
        let executor = self.executor.handle()?;
        let _entered = executor.enter();
        let merge = (offer.make)(&setup)?;
        Ok(Merge_TO::from_value(MergeObject::new(self, merge), TD_Opaque))
    }

    /// Ends everything within the limit.
    pub(crate) fn shut_down(
        &'static self,
        limit: Duration,
    ) -> impl Future<Output = Result<RString, AbiError>> + Send + 'static {
        // What is under way ends, also if nothing waits for it.
        let left = self.executor.running().map(|executor| {
            let (tx, rx) = oneshot::channel();
            executor.spawn(async move { tx.send(self.runs.shut_down(limit).await) });
            rx
        });
        self.runs.close();
        async move {
            let left = match left {
                Some(left) => left.await.unwrap_or_default(),
                None => 0,
            };
            self.executor.end();
            Ok(wire::shutdown::encode(left).into())
        }
    }

    /// An author's future on the plugin's threads, and its answer for a waiter elsewhere. A waiter that is dropped ends it.
    pub(crate) fn later(
        &'static self,
        work: impl Future<Output = Result<RString, AbiError>> + Send + 'static,
    ) -> impl Future<Output = Result<RString, AbiError>> + Send + 'static {
        let (tx, rx) = oneshot::channel();
        let begun = self.executor.handle().and_then(|executor| {
            let entry = self.runs.enter(None)?;
            let id = entry.id();
            let task = executor.spawn(async move {
                let _entry = entry;
                let answer = Guarded::new(work).await;
                // Its waiter may be gone.
                let _ = tx.send(answer.unwrap_or_else(|panicked| Err(panicked.into())));
            });
            self.runs.runs_as(id, task.abort_handle());
            Ok(AbortOnDrop(task.abort_handle()))
        });
        async move {
            let _abort = begun?;
            let forced = |_| Err(AbiError::new(AbiError::CANCELLED, "it was ended by force"));
            rx.await.unwrap_or_else(forced)
        }
    }

    fn setup(&self, config: &str) -> Result<Setup, AbiError> {
        let not_yet = || AbiError::new(AbiError::INVALID, "init has not been called");
        let (host, plugin_config) = self.begun.get().ok_or_else(not_yet)?.clone();
        Ok(Setup { config: Config::new(config), plugin_config, host })
    }
}

struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn unknown(what: &str, name: &str) -> AbiError {
    AbiError::new(AbiError::UNSUPPORTED, format!("this plugin has no {what} `{name}`"))
}
