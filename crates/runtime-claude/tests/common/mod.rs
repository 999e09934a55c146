//! What both test programs share: a place to run in, and somebody who listens.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use offshoot_model::{
    AgentId, Grant, Refusal, RefusalCode, RootId, RunId, SessionKey, SpawnRequest,
};
use offshoot_process::{Options, Processes};
use offshoot_runtime::{
    Finished, Host, Input, Launch, OutputFormat, RunContext, RunEvent, RunHost, Runtime,
    StopHandle, StopSignal, UsageProbe, WaitAnswer, WaitFor,
};
use offshoot_runtime_claude::{ClaudeOptions, ClaudeRuntime};
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
            continues: false,
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
            working_folder: Arc::new(self.folder.path().join("project")),
            run_folder: self.folder.path().join("runs").join(run.to_string()),
            spool_folder: Arc::new(self.folder.path().join("spool")),
            model: None,
            thinking: None,
            system_prompt: None,
            grant: Arc::new(Grant::unbounded()),
            pass: None,
        }
    }

    /// Runs to the end, with nobody who stops it.
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

    /// Runs to the end; at each event somebody looks.
    pub(crate) async fn listen(
        &self,
        launch: Launch,
        stop: StopSignal,
        at: impl Fn(&RunEvent) + Send + Sync + 'static,
    ) -> (Finished, Vec<RunEvent>) {
        self.probed(launch, stop, &UsageProbe::default(), at).await
    }

    /// The same, where somebody may ask what it has used.
    pub(crate) async fn probed(
        &self,
        launch: Launch,
        stop: StopSignal,
        probe: &UsageProbe,
        at: impl Fn(&RunEvent) + Send + Sync + 'static,
    ) -> (Finished, Vec<RunEvent>) {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let listener = Listener { heard: Arc::clone(&heard), at: Box::new(at) };
        let host = RunHost::new(listener);
        let cx = RunContext { usage: probe.requests(), ..RunContext::new(host, stop) };
        let finished = self.claude.start(launch, cx).await;
        let events = heard.lock().expect("no listener panics").clone();
        (finished, events)
    }
}

struct Listener {
    heard: Arc<Mutex<Vec<RunEvent>>>,
    at: Box<dyn Fn(&RunEvent) + Send + Sync>,
}

impl Host for Listener {
    fn hear(&self, event: RunEvent) {
        (self.at)(&event);
        self.heard.lock().expect("no listener panics").push(event);
    }

    fn spawn(&self, _request: SpawnRequest) -> BoxFuture<'static, Result<RunId, Refusal>> {
        let refusal = Refusal::new(RefusalCode::RecursionDisabled, "no children in this test");
        Box::pin(async { Err(refusal) })
    }

    fn wait(&self, _wait: WaitFor) -> BoxFuture<'static, Result<WaitAnswer, Refusal>> {
        Box::pin(async { Ok(WaitAnswer::default()) })
    }
}
