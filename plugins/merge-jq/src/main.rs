//! The program: each merge is a process of its own, whose memory is limited.

use offshoot_plugin_merge_jq::MergeJq;
use offshoot_plugin_sdk::serde::Deserialize;
use offshoot_plugin_sdk::{Error, Plugin, Setup, serve_plugin};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// `plugins.merges.merge-jq` of the configuration.
#[derive(Debug, Deserialize)]
#[serde(crate = "offshoot_plugin_sdk::serde", rename_all = "camelCase", deny_unknown_fields)]
struct Settings {
    /// The address space of the process, of which values take all but some hundred MiB.
    #[serde(default = "default_memory_bytes")]
    memory_bytes: u64,
}

/// Ten times the text that is kept where nothing is said, and as much again for the values that a program makes.
fn default_memory_bytes() -> u64 {
    5 << 30
}

serve_plugin!(
    Plugin::new("a merge by a jq program over the results").named("merge-jq").merge_with(
        "merge-jq",
        "a jq program over an array of {key, value, status}",
        |setup: &Setup| {
            let Settings { memory_bytes } = setup.config.parse()?;
            limit_memory(memory_bytes)?;
            Ok(MergeJq)
        },
    )
);

/// Limits the memory of this process, for good. An allocation that goes beyond it ends the process, and so the merge.
fn limit_memory(bytes: u64) -> Result<(), Error> {
    let Rlimit { maximum, .. } = getrlimit(Resource::As);
    let bytes = Some(maximum.map_or(bytes, |maximum| maximum.min(bytes)));
    setrlimit(Resource::As, Rlimit { current: bytes, maximum })
        .map_err(|error| Error::failed(format!("its memory cannot be limited: {error}")))
}
