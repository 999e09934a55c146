//! The root module: what a library exports.

use abi_stable::StableAbi;
use abi_stable::library::RootModule;
use abi_stable::sabi_types::VersionStrings;
use abi_stable::std_types::{RResult, RStr, RString};

use crate::{AbiError, Answer, HostRef, Later, MergeRef, RuntimeRef, VERSION};

/// The functions of a plugin. None of them unwinds. The names of parameters would be part of the layout, so there are none.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = PluginRef, prefix_fields = PluginPrefix)))]
#[sabi(missing_field(panic))]
pub struct Plugin {
    /// The manifest, as JSON. It may be asked before `init` and has no effect.
    pub describe: extern "C" fn() -> RString,

    /// The host and the plugin's configuration, as JSON: once, before anything below. The answer is JSON.
    pub init: extern "C" fn(HostRef, RStr<'_>) -> Answer,

    /// A runtime by its name, with its configuration as JSON.
    pub runtime: extern "C" fn(RStr<'_>, RStr<'_>) -> RResult<RuntimeRef, AbiError>,

    /// A merge function by its name, with its configuration as JSON.
    pub merge: extern "C" fn(RStr<'_>, RStr<'_>) -> RResult<MergeRef, AbiError>,

    /// Ends everything within so many milliseconds: runs, merges, processes. Nothing is asked of the plugin afterwards.
    #[sabi(last_prefix_field)]
    pub shutdown: extern "C" fn(u64) -> Later,
}

impl RootModule for PluginRef {
    abi_stable::declare_root_module_statics! {PluginRef}

    const BASE_NAME: &'static str = "offshoot_plugin";
    const NAME: &'static str = "offshoot plugin";
    const VERSION_STRINGS: VersionStrings = VersionStrings::new(VERSION);
}
