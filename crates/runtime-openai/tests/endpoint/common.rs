//! The parts that the test programs share: a scripted endpoint, and a host that listens and decides.

use std::io;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use offshoot_fake_model_api::{FakeModelApi, Rule, Script};
use offshoot_model::{
    AgentId, Ending, Envelope, Grant, Payload, Refusal, RefusalCode, RootId, RunId, SessionKey,
    SpawnRequest, Stream,
};
use offshoot_runtime::{
    Finished, Host, Launch, LetterBox, Ruling, RunContext, RunEvent, RunHost, Runtime, StopHandle,
    StopSignal, Turns, WaitAnswer, WaitFor,
};
use offshoot_runtime_openai::{OpenAiOptions, OpenAiRuntime, Retries};
use tokio::io::{AsyncRead, AsyncReadExt};
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
        let heard = Arc::clone(&listener.heard);
        let letters = listener.letters.clone();
        let host = RunHost::new(listener);
        let letter_box = LetterBox::default();
        let turns = Turns::new(host.clone(), letter_box.clone());
        letters.into_iter().for_each(|letter| letter_box.put(letter.into()));
        let finished =
            self.runtime.start(launch, RunContext { turns, ..RunContext::new(host, stop) }).await;
        let events = heard.lock().expect("no listener panics").clone();
        (finished, events)
    }
}

type At = Box<dyn Fn(&RunEvent) + Send + Sync>;

/// Listens, looks at each event, answers for the engine.
pub(crate) struct Listener {
    pub(crate) heard: Arc<Mutex<Vec<RunEvent>>>,
    /// The blocks that it said, as they came.
    pub(crate) said: Arc<Mutex<Vec<(Stream, String)>>>,
    pub(crate) at: At,
    /// The requests for children.
    pub(crate) spawned: Arc<Mutex<Vec<SpawnRequest>>>,
    /// The number of children that are admitted at once; none where no child is. Each ends with its task in capitals, once so
    /// many live.
    pub(crate) admits: Option<usize>,
    /// Rulings at the ends of turns, the last one first.
    pub(crate) rulings: Mutex<Vec<Ruling>>,
    /// Answers of turns.
    pub(crate) answers: Arc<Mutex<Vec<Option<Arc<str>>>>>,
    /// Put in before it starts.
    pub(crate) letters: Vec<&'static str>,
    /// Told when so many live.
    pub(crate) live: Arc<tokio::sync::watch::Sender<usize>>,
}

impl Default for Listener {
    fn default() -> Self {
        Self {
            heard: Arc::default(),
            said: Arc::default(),
            at: Box::new(|_| {}),
            spawned: Arc::default(),
            admits: None,
            rulings: Mutex::default(),
            answers: Arc::default(),
            letters: Vec::new(),
            live: Arc::new(tokio::sync::watch::channel(0).0),
        }
    }
}

impl Host for Listener {
    fn hear(&self, event: RunEvent) {
        (self.at)(&event);
        self.heard.lock().expect("no listener panics").push(event);
    }

    fn said(&self, stream: Stream, bytes: &[u8]) {
        let text = String::from_utf8(bytes.to_vec()).expect("whole characters");
        self.said.lock().expect("no listener panics").push((stream, text));
    }

    fn spawn(&self, request: SpawnRequest) -> BoxFuture<'static, Result<RunId, Refusal>> {
        let mut spawned = self.spawned.lock().expect("no listener panics");
        spawned.push(request);
        let answer = match self.admits {
            Some(_) => Ok(run_id(spawned.len())),
            None => Err(Refusal::new(RefusalCode::DepthLimit, "Cannot spawn deeper.")
                .with_hint("Do it yourself.")),
        };
        self.live.send_replace(spawned.len());
        std::future::ready(answer).boxed()
    }

    fn wait(&self, wait: WaitFor) -> BoxFuture<'static, Result<WaitAnswer, Refusal>> {
        let spawned = Arc::clone(&self.spawned);
        let together = self.admits.unwrap_or_default();
        let mut live = self.live.subscribe();
        async move {
            live.wait_for(|live| *live >= together).await.expect("the listener lives");
            let spawned = spawned.lock().expect("no listener panics");
            let ended = spawned.iter().enumerate().filter(|(index, _)| {
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
    }

    fn turn_ended(&self, answer: Option<Arc<str>>, _taken: u32) -> BoxFuture<'static, Ruling> {
        self.answers.lock().expect("no listener panics").push(answer);
        let ruling = self.rulings.lock().expect("no listener panics").pop();
        std::future::ready(ruling.unwrap_or(Ruling::End)).boxed()
    }
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
            | RunEvent::Used { .. }
            | RunEvent::StrayEnded { .. } => None,
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
