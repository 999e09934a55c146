//! The smallest plugin, as a program.

offshoot_plugin_sdk::serve_plugin!(offshoot_plugin_echo::plugin());
