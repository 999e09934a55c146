//! A plugin that says that its panics end the process.

mod plugin;

const NAME: &str = "panic-aborts";

#[abi_stable::export_root_module]
fn root() -> offshoot_plugin_abi::PluginRef {
    plugin::plugin()
}
