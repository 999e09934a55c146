//! The plugin `claude` as a program.

offshoot_plugin_sdk::serve_plugin!(offshoot_plugin_claude::plugin());
