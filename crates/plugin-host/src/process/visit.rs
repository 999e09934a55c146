//! A run or a merge in a process, with what it has asked of its host.

use std::sync::Arc;

use offshoot_plugin_abi::RunHostRef;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

/// The belongings of a run or a merge here. Dropping it gives up what it has asked and lets go of its host.
pub(super) struct Visit {
    host: Arc<RunHostRef>,
    asked: JoinSet<()>,
}

impl Visit {
    pub(super) fn new(host: RunHostRef) -> Self {
        Self { host: Arc::new(host), asked: JoinSet::new() }
    }

    pub(super) fn host(&self) -> Arc<RunHostRef> {
        Arc::clone(&self.host)
    }

    /// Waits for an answer as long as the run is there.
    pub(super) fn ask(&mut self, answer: impl Future<Output = ()> + Send + 'static, home: &Handle) {
        while self.asked.try_join_next().is_some() {}
        self.asked.spawn_on(answer, home);
    }
}
