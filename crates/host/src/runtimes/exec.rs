//! Programs as agents.

use offshoot_config::Config;
use offshoot_process::Processes;
use offshoot_runtime_exec::{ExecOptions, ExecRuntime};

use crate::environment::Environment;

/// The name of the runtime.
pub const EXEC: &str = "exec";

/// Returns the runtime, as `runtimes.exec` has it.
pub(crate) fn runtime(
    config: &Config,
    processes: Processes,
    environment: &Environment,
) -> ExecRuntime {
    let settings = config.runtime(EXEC);
    let more = settings.and_then(|settings| settings.env.as_ref());
    let wrap = settings.and_then(|settings| settings.wrap.as_ref());
    let options = ExecOptions {
        environment: environment.variables.clone(),
        more: more.map(|more| more.value.clone()).unwrap_or_default(),
        wrap: wrap.map(|wrap| wrap.value.to_vec()).unwrap_or_default(),
        offshoot: Some(environment.offshoot.clone()),
    };
    ExecRuntime::new(processes, options)
}
