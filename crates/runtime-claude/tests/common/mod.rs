//! The parts that both test programs share: a place to run in, and a listener.

use std::sync::Arc;

use offshoot_model::{RootId, RunId};
use offshoot_process::{Options, Processes};
use offshoot_runtime::{
    Finished, Launch, RunContext, RunEvent, RunHost, Runtime, StopHandle, StopSignal, UsageProbe,
};
use offshoot_runtime_claude::{ClaudeOptions, ClaudeRuntime};
use offshoot_test_support::Listener;
use tempfile::TempDir;
use uuid::Uuid;

pub(crate) struct Place {
    pub(crate) folder: TempDir,
    pub(crate) claude: ClaudeRuntime,
}

impl Place {
    /// The environment of the options gets a home of its own.
    pub(crate) fn new(mut options: ClaudeOptions) -> Self {
        let folder = tempfile::tempdir().expect("a folder for the test");
        options.environment.push(("HOME".into(), folder.path().join("home").into()));
        for name in ["home", "project", "spool"] {
            std::fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        let processes = Processes::start(Options::default()).expect("processes");
        Self { claude: ClaudeRuntime::new(processes, options), folder }
    }

    pub(crate) fn launch(&self, task: &str) -> Launch {
        let run = RunId::from_uuid(Uuid::now_v7());
        Launch {
            run,
            root: RootId::new(run),
            working_folder: Arc::new(self.folder.path().join("project")),
            run_folder: self.folder.path().join("runs").join(run.to_string()),
            spool_folder: Arc::new(self.folder.path().join("spool")),
            ..Launch::bare(task)
        }
    }

    /// Runs to the end, without a request to stop.
    pub(crate) async fn run(&self, launch: Launch) -> (Finished, Vec<RunEvent>) {
        self.run_until(launch, StopHandle::new().1).await
    }

    /// Runs until it ends or has been stopped.
    pub(crate) async fn run_until(
        &self,
        launch: Launch,
        stop: StopSignal,
    ) -> (Finished, Vec<RunEvent>) {
        self.listen(launch, stop, |_| {}).await
    }

    /// Runs to the end, and shows each event to a function.
    pub(crate) async fn listen(
        &self,
        launch: Launch,
        stop: StopSignal,
        at: impl Fn(&RunEvent) + Send + Sync + 'static,
    ) -> (Finished, Vec<RunEvent>) {
        self.probed(launch, stop, &UsageProbe::default(), at).await
    }

    /// Does the same, where the test may ask what the run has used.
    pub(crate) async fn probed(
        &self,
        launch: Launch,
        stop: StopSignal,
        probe: &UsageProbe,
        at: impl Fn(&RunEvent) + Send + Sync + 'static,
    ) -> (Finished, Vec<RunEvent>) {
        let listener = Listener::at(at);
        let host = RunHost::new(listener.clone());
        let cx = RunContext { usage: probe.requests(), ..RunContext::new(host, stop) };
        let finished = self.claude.start(launch, cx).await;
        (finished, listener.heard())
    }
}
