//! The code that [`export_plugin!`](crate::export_plugin) writes into a library, and [`serve_plugin!`](crate::serve_plugin) into a program. Nothing
//! here is for authors.

use std::sync::OnceLock;
use std::time::Duration;

use offshoot_plugin_abi::abi_stable::library::{__call_root_module_loader, RootModuleResult};
use offshoot_plugin_abi::abi_stable::prefix_type::PrefixTypeTrait;
use offshoot_plugin_abi::abi_stable::std_types::{RResult, RStr, RString};
use offshoot_plugin_abi::async_ffi::FutureExt;
use offshoot_plugin_abi::{
    AbiError, Answer, HostRef, Later, MergeRef, Plugin as Module, PluginRef, RuntimeRef,
};

pub use offshoot_plugin_abi::PluginRef as ModuleRef;
pub use offshoot_plugin_abi::abi_stable::library::RootModuleResult as ModuleResult;
pub use offshoot_plugin_abi::abi_stable::library::{CheckTypeLayout, LibHeader};

pub use crate::serve::serve;

use crate::loaded::Loaded;
use crate::run::RuntimeObject;
use crate::{Plugin, guard, probe};

/// The plugin of this library. The SDK is part of the library, so there is one.
static DECLARATION: OnceLock<fn() -> Plugin> = OnceLock::new();
static LOADED: OnceLock<Loaded> = OnceLock::new();

/// The root module of a plugin, as the loader asks for it.
pub fn module(declaration: fn() -> Plugin) -> RootModuleResult {
    DECLARATION.get_or_init(|| declaration);
    __call_root_module_loader(functions)
}

/// The root module of a plugin that is part of this program.
pub fn root_module(declaration: fn() -> Plugin) -> PluginRef {
    DECLARATION.get_or_init(|| declaration);
    functions()
}

fn functions() -> PluginRef {
    Module { describe, init, runtime, merge, shutdown }.leak_into_prefix()
}

/// The declaration is the author's: it may panic, and then it is asked for again the next time.
fn loaded() -> Result<&'static Loaded, AbiError> {
    let declaration = DECLARATION.get().expect("the module is only to be had with a declaration");
    Ok(LOADED.get_or_init(|| Loaded::new(declaration())))
}

extern "C" fn describe() -> RString {
    // There is no way to answer with an error. Nothing at all is no manifest.
    guard::answer(|| Ok(loaded()?.describe().into())).unwrap_or_default()
}

extern "C" fn init(host: HostRef, config_json: RStr<'_>) -> Answer {
    guard::answer(|| {
        probe::answer(config_json.as_str());
        loaded()?.init(host, config_json.as_str())
    })
    .into()
}

/// A runtime of a program, with its abilities where its settings change them.
pub(crate) fn made_runtime(
    name: &str,
    config_json: &str,
) -> Result<(RuntimeObject, Option<crate::Abilities>), AbiError> {
    guard::answer(|| {
        probe::answer(config_json);
        loaded()?.made_runtime(name, config_json)
    })
}

extern "C" fn runtime(name: RStr<'_>, config_json: RStr<'_>) -> RResult<RuntimeRef, AbiError> {
    guard::answer(|| {
        probe::answer(config_json.as_str());
        loaded()?.runtime(name.as_str(), config_json.as_str())
    })
    .into()
}

extern "C" fn merge(name: RStr<'_>, config_json: RStr<'_>) -> RResult<MergeRef, AbiError> {
    guard::answer(|| {
        probe::answer(config_json.as_str());
        loaded()?.merge(name.as_str(), config_json.as_str())
    })
    .into()
}

extern "C" fn shutdown(timeout_ms: u64) -> Later {
    let shut_down = guard::answer(|| Ok(loaded()?.shut_down(Duration::from_millis(timeout_ms))));
    async move {
        match shut_down {
            Ok(shut_down) => shut_down.await.into(),
            Err(error) => RResult::RErr(error),
        }
    }
    .into_ffi()
}

/// Exports a plugin from a library: `export_plugin!(declaration)`, once, where `declaration` is an expression of type
/// [`Plugin`].
#[macro_export]
macro_rules! export_plugin {
    ($declaration:expr) => {
        const _: () = {
            fn declaration() -> $crate::Plugin {
                $crate::__declared!($declaration)
            }

            extern "C" fn module() -> $crate::export::ModuleResult {
                $crate::export::module(declaration)
            }

            // The name is the loader's; a test of the SDK compares the two.
            // SAFETY: nothing else in a library has this name, and the module that is answered is one of this type.
            #[unsafe(export_name = "_1as_0lib_1header_0root_bmodule_bloader")]
            static HEADER: $crate::export::LibHeader = unsafe {
                $crate::export::LibHeader::from_constructor::<$crate::export::ModuleRef>(
                    module,
                    $crate::export::CheckTypeLayout::Yes,
                )
            };
        };
    };
}

/// A plugin with what its package says of it.
#[doc(hidden)]
#[macro_export]
macro_rules! __declared {
    ($declaration:expr) => {{
        let plugin: $crate::Plugin = $declaration;
        plugin.of_package($crate::Package {
            name: ::core::env!("CARGO_PKG_NAME"),
            version: ::core::env!("CARGO_PKG_VERSION"),
            license: ::core::env!("CARGO_PKG_LICENSE"),
            panic_aborts: ::core::cfg!(panic = "abort"),
        })
    }};
}
