//! A library that says that it is a plugin of this version, and has another layout.

use abi_stable::StableAbi;
use abi_stable::library::RootModule;
use abi_stable::prefix_type::PrefixTypeTrait;
use abi_stable::sabi_types::VersionStrings;
use abi_stable::std_types::{RStr, RString};

/// The functions of another plugin.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = PluginRef, prefix_fields = PluginPrefix)))]
#[sabi(missing_field(panic))]
pub struct Plugin {
    /// Says what the plugin is.
    pub describe: extern "C" fn(u64) -> RString,
    /// Begins the plugin.
    #[sabi(last_prefix_field)]
    pub init: extern "C" fn(RStr<'_>),
}

impl RootModule for PluginRef {
    abi_stable::declare_root_module_statics! {PluginRef}

    const BASE_NAME: &'static str = "offshoot_plugin";
    const NAME: &'static str = "offshoot plugin";
    const VERSION_STRINGS: VersionStrings = VersionStrings::new("1.0.0");
}

extern "C" fn describe(_: u64) -> RString {
    RString::new()
}

extern "C" fn init(_: RStr<'_>) {}

#[abi_stable::export_root_module]
fn root() -> PluginRef {
    Plugin { describe, init }.leak_into_prefix()
}
