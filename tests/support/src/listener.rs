//! A host for runs of a test: it notes what it is told and asked, and answers as the test says.

use std::collections::VecDeque;
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use offshoot_model::{Delegated, Refusal, RefusalCode, RunId, SpawnRequest, Stream};
use offshoot_runtime::{
    Finished, Host, Launch, Ruling, RunContext, RunEvent, RunHost, Runtime, StopHandle, WaitAnswer,
    WaitFor,
};
use tokio::sync::{mpsc, oneshot, watch};

/// A host that admits no child, ends each run with its first turn and notes everything, unless the test says otherwise.
/// Clones share what was noted.
#[derive(Clone, Default)]
pub struct Listener {
    noted: Arc<Mutex<Noted>>,
    look: Option<Look>,
    spawn: Option<Spawn>,
    wait: Option<Wait>,
    delegate: Option<Delegate>,
    observe: Option<Observe>,
    memory_short: Arc<watch::Sender<bool>>,
}

type Look = Arc<dyn Fn(&RunEvent) + Send + Sync>;
type Spawn = Arc<dyn Fn(&SpawnRequest, usize) -> Result<RunId, Refusal> + Send + Sync>;
type Wait = Arc<dyn Fn(WaitFor) -> WaitResult + Send + Sync>;
type Delegate = Arc<dyn Fn(&SpawnRequest, bool) -> Result<Delegated, Refusal> + Send + Sync>;
type Observe = Arc<dyn Fn(u32, bool) -> Result<(), Refusal> + Send + Sync>;
type WaitResult = BoxFuture<'static, Result<WaitAnswer, Refusal>>;

#[derive(Default)]
struct Noted {
    events: Vec<RunEvent>,
    said: Vec<(Stream, String)>,
    requests: Vec<SpawnRequest>,
    answers: Vec<(Option<Arc<str>>, u32)>,
    /// The rulings of the next turns.
    rulings: VecDeque<oneshot::Receiver<Ruling>>,
    watcher: Option<mpsc::UnboundedSender<Told>>,
}

/// A report of a run to a test that watches it.
#[derive(Clone, Debug)]
pub enum Told {
    /// An event.
    Event(RunEvent),
    /// The end of a turn.
    TurnEnded,
}

impl Listener {
    /// Calls this with each event as it comes.
    pub fn at(look: impl Fn(&RunEvent) + Send + Sync + 'static) -> Self {
        Self::default().looking(look)
    }

    /// Calls this with each event as it comes.
    pub fn looking(self, look: impl Fn(&RunEvent) + Send + Sync + 'static) -> Self {
        Self { look: Some(Arc::new(look)), ..self }
    }

    /// Answers each request for a child in this way. The number counts the requests, from 1.
    pub fn spawning(
        self,
        spawn: impl Fn(&SpawnRequest, usize) -> Result<RunId, Refusal> + Send + Sync + 'static,
    ) -> Self {
        Self { spawn: Some(Arc::new(spawn)), ..self }
    }

    /// Answers each wait in this way.
    pub fn waiting(self, wait: impl Fn(WaitFor) -> WaitResult + Send + Sync + 'static) -> Self {
        Self { wait: Some(Arc::new(wait)), ..self }
    }

    /// Answers each task that is handed on in this way. The flag says that nothing is to be started.
    pub fn delegating(
        self,
        delegate: impl Fn(&SpawnRequest, bool) -> Result<Delegated, Refusal> + Send + Sync + 'static,
    ) -> Self {
        Self { delegate: Some(Arc::new(delegate)), ..self }
    }

    /// Answers in this way what is told of a task that the run did itself: its observation, and whether it is done.
    pub fn observing(
        self,
        observe: impl Fn(u32, bool) -> Result<(), Refusal> + Send + Sync + 'static,
    ) -> Self {
        Self { observe: Some(Arc::new(observe)), ..self }
    }

    /// Returns a sender for the ruling of one more turn. The run waits for it; without one, its turn is the last.
    pub fn rules(&self) -> oneshot::Sender<Ruling> {
        let (sender, ruling) = oneshot::channel();
        self.noted().rulings.push_back(ruling);
        sender
    }

    /// Tells runs that others wait for memory.
    pub fn memory_is_short(&self) {
        self.memory_short.send_replace(true);
    }

    /// Lets a run go on with one more turn, with this prompt.
    pub fn goes_on(&self, prompt: &str) {
        let ruling = Ruling::Go(Some(prompt.to_owned()));
        self.rules().send(ruling).expect("the receiver stands in the list");
    }

    /// Returns what comes from now on, as it comes.
    pub fn watch(&self) -> mpsc::UnboundedReceiver<Told> {
        let (sender, told) = mpsc::unbounded_channel();
        self.noted().watcher = Some(sender);
        told
    }

    /// The events so far.
    pub fn heard(&self) -> Vec<RunEvent> {
        self.noted().events.clone()
    }

    /// The output so far, in the blocks in which it came.
    pub fn said(&self) -> Vec<(Stream, String)> {
        self.noted().said.clone()
    }

    /// The children that were asked for so far.
    pub fn asked(&self) -> Vec<SpawnRequest> {
        self.noted().requests.clone()
    }

    /// The answers of the turns so far, each with the number of letters that the run had taken.
    pub fn answers(&self) -> Vec<(Option<Arc<str>>, u32)> {
        self.noted().answers.clone()
    }

    /// The processes that were started so far.
    pub fn processes(&self) -> Vec<u32> {
        let started = |event: &RunEvent| match event {
            RunEvent::Started(process) => process.map(|process| process.pid),
            _ => None,
        };
        self.noted().events.iter().filter_map(started).collect()
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Noted {
    fn tell(&self, told: Told) {
        if let Some(watcher) = &self.watcher {
            // A test that has seen enough watches no longer.
            let _ = watcher.send(told);
        }
    }
}

impl Host for Listener {
    fn hear(&self, event: RunEvent) {
        if let Some(look) = &self.look {
            look(&event);
        }
        let mut noted = self.noted();
        noted.tell(Told::Event(event.clone()));
        noted.events.push(event);
    }

    fn memory_short(&self) -> BoxFuture<'static, ()> {
        let mut memory_short = self.memory_short.subscribe();
        async move { drop(memory_short.wait_for(|short| *short).await) }.boxed()
    }

    fn said(&self, stream: Stream, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes).into_owned();
        self.noted().said.push((stream, text));
    }

    fn spawn(&self, request: SpawnRequest) -> BoxFuture<'static, Result<RunId, Refusal>> {
        let number = {
            let mut noted = self.noted();
            noted.requests.push(request.clone());
            noted.requests.len()
        };
        let no_children =
            || Refusal::new(RefusalCode::RecursionDisabled, "no children in this test");
        let answer = match &self.spawn {
            Some(spawn) => spawn(&request, number),
            None => Err(no_children()),
        };
        ready(answer).boxed()
    }

    fn delegate(
        &self,
        request: SpawnRequest,
        choose_only: bool,
    ) -> BoxFuture<'static, Result<Delegated, Refusal>> {
        let unasked =
            || Err(Refusal::new(RefusalCode::RecursionDisabled, "no agents in this test"));
        let delegate = self.delegate.as_ref();
        ready(delegate.map_or_else(unasked, |delegate| delegate(&request, choose_only))).boxed()
    }

    fn observed(&self, observation: u32, success: bool) -> BoxFuture<'static, Result<(), Refusal>> {
        let unasked = || Err(Refusal::invalid("observation", "none is open in this test"));
        let observe = self.observe.as_ref();
        ready(observe.map_or_else(unasked, |observe| observe(observation, success))).boxed()
    }

    fn wait(&self, wait: WaitFor) -> WaitResult {
        match &self.wait {
            Some(answer) => answer(wait),
            None => ready(Ok(WaitAnswer::default())).boxed(),
        }
    }

    fn turn_ended(&self, answer: Option<Arc<str>>, taken: u32) -> BoxFuture<'static, Ruling> {
        let mut noted = self.noted();
        noted.answers.push((answer, taken));
        noted.tell(Told::TurnEnded);
        match noted.rulings.pop_front() {
            Some(ruling) => async { ruling.await.unwrap_or(Ruling::End) }.boxed(),
            None => ready(Ruling::End).boxed(),
        }
    }
}

/// Runs to the end, with nothing that stops it: how it ended, and what it told.
pub async fn run(runtime: &dyn Runtime, launch: Launch) -> (Finished, Vec<RunEvent>) {
    let listener = Listener::default();
    let (_handle, stop) = StopHandle::new();
    let cx = RunContext::new(RunHost::new(listener.clone()), stop);
    let finished = runtime.start(launch, cx).await;
    (finished, listener.heard())
}
