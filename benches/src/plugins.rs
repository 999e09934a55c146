//! Plugins of this workspace, as the rows use them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use offshoot_model::{JsonText, Refusal, RefusalCode, RunId, SpawnRequest};
use offshoot_plugin_host::{Checked, Plugin, Surroundings};
use offshoot_runtime::{Host, RunContext, RunEvent, RunHost, StopHandle, WaitAnswer, WaitFor};
use tokio::sync::mpsc;

use crate::{Result, programs};

/// A copy of a plugin's library: one that is loaded already would not be loaded again.
pub(crate) fn copy(name: &str, folder: &Path) -> Result<PathBuf> {
    let file = format!("liboffshoot_plugin_{name}.so");
    let copy = folder.join(&file);
    std::fs::copy(programs::profile_folder()?.join("deps").join(file), &copy)?;
    Ok(copy)
}

/// Loads it.
pub(crate) fn load(checked: &Checked) -> Result<Arc<Plugin>> {
    Ok(Plugin::load(checked, Surroundings::default(), &settings()?)?)
}

/// No settings.
pub(crate) fn settings() -> Result<JsonText> {
    Ok(JsonText::parse("{}".to_owned())?)
}

/// The launch of a run, with a channel that carries its events to a receiver.
pub(crate) fn context(events: &mpsc::UnboundedSender<RunEvent>) -> RunContext {
    let (_, stop) = StopHandle::new();
    RunContext::new(RunHost::new(Listener(events.clone())), stop)
}

struct Listener(mpsc::UnboundedSender<RunEvent>);

impl Host for Listener {
    fn hear(&self, event: RunEvent) {
        // A row that has ended listens no more.
        let _ = self.0.send(event);
    }

    fn spawn(
        &self,
        _request: SpawnRequest,
    ) -> BoxFuture<'static, std::result::Result<RunId, Refusal>> {
        Box::pin(async { Err(Refusal::new(RefusalCode::RecursionDisabled, "none here")) })
    }

    fn wait(&self, _wait: WaitFor) -> BoxFuture<'static, std::result::Result<WaitAnswer, Refusal>> {
        Box::pin(async { Ok(WaitAnswer::default()) })
    }
}
