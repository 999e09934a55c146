//! A good plugin, without the SDK.

mod plugin;

const NAME: &str = "raw";

#[abi_stable::export_root_module]
fn root() -> offshoot_plugin_abi::PluginRef {
    plugin::plugin()
}
