//! Plugins of this workspace, as the rows use them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use offshoot_model::{
    AgentId, Grant, JsonText, Refusal, RefusalCode, RootId, RunId, SessionKey, SpawnRequest,
};
use offshoot_plugin_host::{Checked, Plugin, Surroundings};
use offshoot_runtime::{
    Host, Input, Launch, OutputFormat, RunContext, RunEvent, RunHost, StopHandle, WaitAnswer,
    WaitFor,
};
use tokio::sync::mpsc;
use uuid::Uuid;

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

/// A run that has nobody else.
pub(crate) fn launch(task: &str) -> Launch {
    let run = RunId::from_uuid(Uuid::nil());
    let folder = Arc::new(PathBuf::from("/"));
    Launch {
        run,
        root: RootId::new(run),
        key: SessionKey::parse("agent:main:subagent:x").expect("a key"),
        agent: AgentId::main(),
        depth: 1,
        task: task.into(),
        context: Vec::new(),
        context_manifest: None,
        input: Input::Prompt,
        command: None,
        ok_exit: Arc::from([]),
        output: OutputFormat::Text,
        working_folder: Arc::clone(&folder),
        run_folder: PathBuf::from("/"),
        spool_folder: folder,
        model: None,
        thinking: None,
        system_prompt: None,
        grant: Arc::new(Grant::unbounded()),
        continues: false,
        pass: None,
    }
}

/// What a run is given, with somebody who hears its events at the other end of a channel.
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

    fn wait(&self, _wait: WaitFor) -> BoxFuture<'static, WaitAnswer> {
        Box::pin(async { WaitAnswer::default() })
    }
}
