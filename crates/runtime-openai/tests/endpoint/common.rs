//! The parts that the test programs share: a scripted endpoint, and a host that listens and decides.

use std::io;
use std::sync::Arc;

use futures_util::FutureExt;
use offshoot_fake_model_api::{FakeModelApi, Rule, Script};
use offshoot_model::{
    AgentId, Ending, Envelope, Grant, Payload, RootId, RunId, SessionKey, SpawnRequest,
};
use offshoot_runtime::{
    Finished, Launch, LetterBox, RunContext, RunEvent, RunHost, Runtime, StopHandle, StopSignal,
    Turns, WaitAnswer, WaitFor,
};
use offshoot_runtime_openai::{OpenAiOptions, OpenAiRuntime, Retries};
pub(crate) use offshoot_test_support::Listener;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::watch;
use uuid::Uuid;

/// A scripted endpoint, and a runtime that calls it.
pub(crate) struct Place {
    pub(crate) api: FakeModelApi,
    pub(crate) runtime: OpenAiRuntime,
}

impl Place {
    pub(crate) fn new(rules: impl IntoIterator<Item = Rule>) -> Self {
        Self::with(rules, |_| {})
    }

    /// With other options than those of most tests.
    pub(crate) fn with(
        rules: impl IntoIterator<Item = Rule>,
        change: impl FnOnce(&mut OpenAiOptions),
    ) -> Self {
        let api = FakeModelApi::start(Script::new(rules)).expect("a free port");
        let mut options = OpenAiOptions {
            base_url: format!("{}/v1", api.url()),
            model: Some("small".to_owned()),
            key_variable: Some("TEST_KEY".to_owned()),
            retries: Retries { count: 2, backoff_seconds: 0.0, longest_seconds: 60.0 },
            ..OpenAiOptions::default()
        };
        change(&mut options);
        let environment = [("TEST_KEY".into(), "sk-secret".into())];
        Self { api, runtime: OpenAiRuntime::new("openai", options, &environment) }
    }

    /// Runs to the end, without a request to stop and without children.
    pub(crate) async fn run(&self, task: &str) -> (Finished, Vec<RunEvent>) {
        self.run_with(launch(task), Listener::default()).await
    }

    pub(crate) async fn run_with(
        &self,
        launch: Launch,
        listener: Listener,
    ) -> (Finished, Vec<RunEvent>) {
        self.run_until(launch, listener, StopHandle::new().1).await
    }

    pub(crate) async fn run_until(
        &self,
        launch: Launch,
        listener: Listener,
        stop: StopSignal,
    ) -> (Finished, Vec<RunEvent>) {
        self.run_in(launch, listener, LetterBox::default(), stop).await
    }

    /// Runs to the end, with these letters put in before it starts.
    pub(crate) async fn run_with_letters(
        &self,
        launch: Launch,
        listener: Listener,
        letters: LetterBox,
    ) -> (Finished, Vec<RunEvent>) {
        self.run_in(launch, listener, letters, StopHandle::new().1).await
    }

    async fn run_in(
        &self,
        launch: Launch,
        listener: Listener,
        letters: LetterBox,
        stop: StopSignal,
    ) -> (Finished, Vec<RunEvent>) {
        let host = RunHost::new(listener.clone());
        let turns = Turns::new(host.clone(), letters);
        let cx = RunContext { turns, ..RunContext::new(host, stop) };
        let finished = self.runtime.start(launch, cx).await;
        (finished, listener.heard())
    }
}

/// A host that admits children. Each ends with its task in capitals, once so many live.
pub(crate) fn admitting(together: usize) -> Listener {
    let children = Arc::new(watch::channel(Vec::<SpawnRequest>::new()).0);
    let admitted = Arc::clone(&children);
    let spawn = move |request: &SpawnRequest, number| {
        admitted.send_modify(|children| children.push(request.clone()));
        Ok(run_id(number))
    };
    let wait = move |wait: WaitFor| {
        let mut children = children.subscribe();
        async move {
            let children = children.wait_for(|children| children.len() >= together).await;
            let children = children.expect("the sender lives");
            let ended = children.iter().enumerate().filter(|(index, _)| {
                wait.runs.is_empty() || wait.runs.contains(&run_id(index + 1))
            });
            let ended = ended.map(|(index, request)| {
                let answer = Ending::completed(Payload::text(request.task.to_uppercase()));
                let key = SessionKey::parse("agent:main:subagent:child").expect("a key");
                Envelope::of(&answer, key, run_id(index + 1), AgentId::main(), 1)
            });
            Ok(WaitAnswer { ended: ended.collect(), pending: Vec::new() })
        }
        .boxed()
    };
    Listener::default().spawning(spawn).waiting(wait)
}

/// The id of the n-th child.
pub(crate) fn run_id(number: usize) -> RunId {
    RunId::from_uuid(Uuid::from_u128(number as u128))
}

/// A launch without room for children.
pub(crate) fn launch(task: &str) -> Launch {
    let run = RunId::from_uuid(Uuid::now_v7());
    Launch { run, root: RootId::new(run), ..Launch::bare(task) }
}

/// One with room.
pub(crate) fn parent(task: &str) -> Launch {
    let grant = Grant { max_depth: 3, ..Grant::unbounded() };
    Launch { grant: Arc::new(grant), ..launch(task) }
}

/// Returns the answer as text.
pub(crate) fn text(finished: &Finished) -> &str {
    match &finished.output {
        offshoot_runtime::Output::Text(text) => text,
        offshoot_runtime::Output::None => "",
        other => panic!("no text: {other:?}"),
    }
}

/// The lines for people among these events.
pub(crate) fn progress(events: &[RunEvent]) -> Vec<&str> {
    fn text(event: &RunEvent) -> Option<&str> {
        match event {
            RunEvent::Progress(text) => Some(text),
            RunEvent::Started(_)
            | RunEvent::ToolUsed(_)
            | RunEvent::Answers
            | RunEvent::BacksOff { .. }
            | RunEvent::Used { .. }
            | RunEvent::StrayEnded { .. }
            | RunEvent::ModelChanged(_)
            | RunEvent::QuotaLeft { .. } => None,
        }
    }
    events.iter().filter_map(text).collect()
}

/// One request, to its end: closing a connection with something unread would cut off its answer.
pub(crate) async fn request(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<String> {
    let mut request = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&request);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.and_then(|length| length.parse().ok()).expect("a length");
            if body.len() >= length {
                return Ok(text.into_owned());
            }
        }
        if stream.read_buf(&mut request).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}
