//! The runtime for ordinary programs, as a plugin. Its settings are those of `runtimes.exec`: `env` and `wrap`.

use std::path::PathBuf;

use offshoot_plugin_sdk::serde::Deserialize;
use offshoot_plugin_sdk::{Abilities, Plugin, export_plugin};
use offshoot_runtime_exec::{ExecOptions, ExecRuntime};

/// What it offers.
pub fn plugin() -> Plugin {
    Plugin::new("ordinary programs as agents").named("exec").runtime(
        "exec",
        "runs a program: its input is the task, its output the answer",
        Abilities::of_a_command(),
        |setup| {
            let Settings { env, wrap, offshoot } = setup.config.parse()?;
            let environment = std::env::vars_os().collect();
            let options = ExecOptions { environment, more: env, wrap, offshoot };
            Ok(ExecRuntime::new(setup.processes()?, options))
        },
    )
}

export_plugin!(plugin());

#[derive(Default, Deserialize)]
#[serde(crate = "offshoot_plugin_sdk::serde", rename_all = "camelCase")]
#[serde(default, deny_unknown_fields)]
struct Settings {
    /// Names and patterns of variables that programs may have beside the usual ones.
    env: Vec<String>,
    /// Stands before every command: another user, a container.
    wrap: Vec<String>,
    /// The absolute path of the command `offshoot`, for programs that call it.
    offshoot: Option<PathBuf>,
}
