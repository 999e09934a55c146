//! Requests and configurations for the tests of this suite.

use offshoot_config::{Config, Loader};
use offshoot_model::SpawnRequest;

/// A request for one child with this task and no wishes.
pub(crate) fn ask(task: &str) -> SpawnRequest {
    SpawnRequest { task: task.into(), ..SpawnRequest::default() }
}

/// A configuration with these keys of `agents.defaults.subagents`.
pub(crate) fn config(settings: &[(&str, &str)]) -> Config {
    let flag = |loader: Loader, (key, value): &(&str, &str)| {
        loader.flag(format!("agents.defaults.subagents.{key}"), *value, "test")
    };
    settings.iter().fold(Loader::new(), flag).load().expect("the settings of a test are right")
}
