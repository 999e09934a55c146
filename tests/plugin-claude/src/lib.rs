//! The runtime for Claude Code, as a plugin. Its settings are those of `runtimes.claude`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use offshoot_plugin_sdk::serde::Deserialize;
use offshoot_plugin_sdk::serde_json::Value;
use offshoot_plugin_sdk::{Plugin, export_plugin};
use offshoot_runtime_claude::{ClaudeOptions, ClaudeRuntime, OwnServer};

/// What it offers.
pub fn plugin() -> Plugin {
    Plugin::new("Claude Code as an agent").named("claude").runtime(
        "claude",
        "runs Claude Code, whose children are ours",
        ClaudeRuntime::ABILITIES,
        |setup| {
            let settings: Settings = setup.config.parse()?;
            Ok(ClaudeRuntime::new(setup.processes()?, settings.into()))
        },
    )
}

export_plugin!(plugin());

#[derive(Deserialize)]
#[serde(crate = "offshoot_plugin_sdk::serde", rename_all = "camelCase")]
#[serde(default, deny_unknown_fields)]
struct Settings {
    command: String,
    wrap: Vec<String>,
    env: Vec<String>,
    bare: bool,
    fallback_models: Vec<String>,
    permission_mode: Option<String>,
    max_turns: Option<u32>,
    json_schema: Option<Value>,
    settings: Option<Value>,
    servers: BTreeMap<String, Value>,
    /// The absolute path of the command `offshoot`, which serves our tools to runs that may ask for something.
    offshoot: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            command: "claude".to_owned(),
            wrap: Vec::new(),
            env: Vec::new(),
            bare: false,
            fallback_models: Vec::new(),
            permission_mode: None,
            max_turns: None,
            json_schema: None,
            settings: None,
            servers: BTreeMap::new(),
            offshoot: None,
        }
    }
}

impl From<Settings> for ClaudeOptions {
    fn from(settings: Settings) -> Self {
        // We are the client of that server, so a call may take as long as a run: a day.
        let args = ["mcp", "--patience", "86400"].map(str::to_owned).to_vec();
        Self {
            command: settings.command,
            wrap: settings.wrap,
            more: settings.env,
            bare: settings.bare,
            fallback_models: settings.fallback_models,
            permission_mode: settings.permission_mode,
            max_turns: settings.max_turns,
            json_schema: settings.json_schema.map(|schema| schema.to_string()),
            settings: settings.settings,
            servers: settings.servers,
            own_server: settings.offshoot.map(|command| OwnServer { command, args }),
            ..Self::inheriting(std::env::vars_os().collect())
        }
    }
}
