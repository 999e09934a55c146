//! The plugin `echo` as a program.

offshoot_plugin_sdk::serve_plugin!(offshoot_plugin_echo::plugin());
