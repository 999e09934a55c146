//! The smallest plugin: a runtime that answers with its task. The task `wait` it thinks about until it is stopped.

use std::future::pending;

use offshoot_plugin_sdk::{Abilities, Finished, FnRuntime, Plugin, export_plugin};

/// The declaration of the plugin.
pub fn plugin() -> Plugin {
    let abilities = Abilities { enforces: None, ..Abilities::of_a_command() };
    Plugin::new("the smallest plugin").named("echo").runtime(
        "echo",
        "answers with its task",
        abilities,
        |_setup| {
            Ok(FnRuntime::new("echo", |launch, _cx| async move {
                if &*launch.task == "wait" {
                    pending::<()>().await;
                }
                Finished::text(launch.task)
            }))
        },
    )
}

export_plugin!(plugin());
