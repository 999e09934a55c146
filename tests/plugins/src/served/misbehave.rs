//! The plugin `misbehave` as a program.

offshoot_plugin_sdk::serve_plugin!(offshoot_plugin_misbehave::plugin());
