//! The functions of a plugin, whatever it is: those that a library exports, or those that a program answers by lines. What comes
//! of them is the same objects of the interface, so that nothing above knows which it is.

use offshoot_plugin_abi::abi_stable::std_types::{RResult, RString};
use offshoot_plugin_abi::{AbiError, Answer, HostRef, Later, MergeRef, PluginRef, RuntimeRef};

use offshoot_runtime::Abilities;

use crate::process::Service;

/// The five functions of a plugin.
pub(crate) enum Functions {
    Library(PluginRef),
    Program(Service),
}

impl Functions {
    pub(crate) fn describe(&self) -> RResult<RString, AbiError> {
        match self {
            Self::Library(library) => RResult::ROk(library.describe()()),
            Self::Program(program) => program.describe().map(RString::from).into(),
        }
    }

    pub(crate) fn init(&self, host: HostRef, config: &str) -> Answer {
        match self {
            Self::Library(library) => library.init()(host, config.into()),
            Self::Program(program) => program.init(host, config).map(RString::from).into(),
        }
    }

    #[cfg(feature = "conformance")]
    pub(crate) fn runtime(&self, name: &str, config: &str) -> RResult<RuntimeRef, AbiError> {
        self.made_runtime(name, config).map(|(runtime, _)| runtime).into()
    }

    /// A runtime, with its abilities where its settings change them.
    pub(crate) fn made_runtime(
        &self,
        name: &str,
        config: &str,
    ) -> Result<(RuntimeRef, Option<Abilities>), AbiError> {
        match self {
            Self::Library(library) => {
                let made = library.runtime()(name.into(), config.into());
                made.into_result().map(|runtime| (runtime, None))
            }
            Self::Program(program) => program.runtime(name, config),
        }
    }

    pub(crate) fn merge(&self, name: &str, config: &str) -> RResult<MergeRef, AbiError> {
        match self {
            Self::Library(library) => library.merge()(name.into(), config.into()),
            Self::Program(program) => program.merge(name, config).into(),
        }
    }

    pub(crate) fn shutdown(&self, milliseconds: u64) -> Later {
        match self {
            Self::Library(library) => library.shutdown()(milliseconds),
            Self::Program(program) => program.shutdown(milliseconds),
        }
    }
}
