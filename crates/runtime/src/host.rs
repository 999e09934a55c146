//! The other side of a running agent: whom it tells how it goes, and asks for children.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use offshoot_model::{
    Cost, Delegated, Directly, Envelope, JsonText, ProcessIdentity, Refusal, RunId, SpawnRequest,
    Stream, Timestamp, ToolUse, Usage, WaitMode,
};

use crate::Ruling;

/// One thing a run tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEvent {
    /// The run has started; with the process, where there is one.
    Started(Option<ProcessIdentity>),
    /// A line for people. May be dropped where the reader is too slow.
    Progress(Arc<str>),
    /// The agent has used a tool. May be dropped where the reader is too slow.
    ToolUsed(ToolUse),
    /// A process that had left its run was ended, because this run was the last that lived.
    StrayEnded {
        /// The process id.
        pid: u32,
        /// The name of the process.
        name: Arc<str>,
    },
    /// The service has said how much is left of a quota of its account. May be dropped where the reader is too slow.
    QuotaLeft {
        /// The quota in the words of the service, such as `five_hour`.
        window: Arc<str>,
        /// The part that is left, in millionths.
        left: u32,
        /// The reset.
        until: Timestamp,
    },
    /// The model has begun to answer.
    Answers,
    /// The service has refused or broken off a call, and is asked again after this wait. May be dropped where the reader is too slow.
    BacksOff {
        /// The fault of the service, in words without secrets.
        why: Arc<str>,
        /// The wait before the next call.
        wait: Duration,
        /// True if the service has too much to do, or is not there: fewer runs of the account start then.
        is_pressure: bool,
    },
    /// Another model answers from here on. May be dropped where the reader is too slow.
    ModelChanged(Arc<str>),
    /// The usage so far. Cumulative.
    Used {
        /// The tokens used.
        usage: Usage,
        /// The money spent.
        cost: Cost,
    },
}

/// The runs to wait for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitFor {
    /// Runs of the caller's own subtree; empty means all its children so far.
    pub runs: Vec<RunId>,
    /// All of them, or any.
    pub mode: WaitMode,
    /// After which the answer names what is still pending. None waits for ever.
    pub timeout: Option<Duration>,
}

/// The answer of a wait. Asking again brings the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitAnswer {
    /// The runs that have ended, in the order asked.
    pub ended: Vec<Envelope>,
    /// The runs that have not ended.
    pub pending: Vec<RunId>,
}

/// A tool that the engine offers to an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolOffer {
    /// The name by which it is called.
    pub name: Arc<str>,
    /// The purpose, for a model.
    pub words: Arc<str>,
    /// The JSON Schema of its arguments.
    pub schema: JsonText,
}

/// The services of the engine for a running agent. The caller is known from the host itself: one per run.
pub trait Host: Send + Sync {
    /// One event, in order. Called in the run's own task: it must not block.
    fn hear(&self, event: RunEvent);

    /// A sign of life that nothing is told of: a limit of silence counts from it. As often as there is one, so it must
    /// cost next to nothing. A host that knows no such limit passes over it.
    fn sign(&self) {}

    /// Something that the run said, without secrets, as it came: for its logs, and for no decision. Called as often as there is
    /// something: it must not wait. A host that keeps no logs passes over it.
    fn said(&self, stream: Stream, bytes: &[u8]) {
        let _ = (stream, bytes);
    }

    /// Asks for a child.
    fn spawn(&self, request: SpawnRequest) -> BoxFuture<'static, Result<RunId, Refusal>>;

    /// Hands a task on to the agent that fits it; with `choose_only` nothing is started. A host that chooses no agents leaves the task to
    /// the run.
    fn delegate(
        &self,
        request: SpawnRequest,
        choose_only: bool,
    ) -> BoxFuture<'static, Result<Delegated, Refusal>> {
        let _ = (request, choose_only);
        Box::pin(async { Ok(no_choice()) })
    }

    /// Hears that the run is over with a task that it was told to do itself: the number of the observation, and whether it is done.
    fn observed(&self, observation: u32, success: bool) -> BoxFuture<'static, Result<(), Refusal>> {
        let _ = success;
        let message = format!("this session has no open observation {observation}");
        Box::pin(async { Err(Refusal::invalid("observation", message)) })
    }

    /// Waits for children. The caller's slot is lent meanwhile. A refusal is an answer: nothing was waited for, and asking
    /// again brings the same.
    fn wait(&self, wait: WaitFor) -> BoxFuture<'static, Result<WaitAnswer, Refusal>>;

    /// Answers once everything that the run has told was taken in: true if the run goes on after that, false if it is to stop. A host that stops
    /// no run for what it tells answers at once.
    fn goes_on(&self) -> BoxFuture<'static, bool> {
        Box::pin(async { true })
    }

    /// Answers as soon as runs of the tree wait for memory of the computer, at once where they do: what only waits may then end its processes. A
    /// host that looks at no memory never answers.
    fn memory_short(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    /// Returns the tools by which the run may ask its tree for more than children. A host without a door offers none.
    fn tools(&self) -> BoxFuture<'static, Vec<ToolOffer>> {
        Box::pin(async { Vec::new() })
    }

    /// Calls one of these tools, with a JSON object of arguments. The answer is JSON for a model; a refusal and a mistake in the
    /// call are answers too.
    fn call_tool(&self, name: &str, arguments: &str) -> BoxFuture<'static, JsonText> {
        let _ = arguments;
        let refusal = Refusal::invalid("name", format!("there is no tool `{name}`"));
        Box::pin(async move { JsonText::of(&refusal).expect("a refusal is plain data") })
    }

    /// A turn of a run that can take further ones is over, with this answer, when it had taken so many letters.
    /// Answers once it is known how the run goes on; its slot is lent meanwhile. A host that says nothing else has
    /// nothing more to say.
    fn turn_ended(
        &self,
        answer: Option<Arc<str>>,
        letters_taken: u32,
    ) -> BoxFuture<'static, Ruling> {
        let _ = (answer, letters_taken);
        Box::pin(async { Ruling::End })
    }
}

fn no_choice() -> Delegated {
    Delegated::ExecuteDirectly {
        reason: Directly::NoPreferred,
        message: "no agent is chosen here".to_owned(),
        observation: None,
        scores: Vec::new(),
        learned: None,
    }
}

/// A run's own host. Cheap to clone.
#[derive(Clone, derive_more::Debug)]
#[debug("RunHost")]
pub struct RunHost(Arc<dyn Host>);

impl RunHost {
    /// Wraps what the engine brings.
    pub fn new(host: impl Host + 'static) -> Self {
        Self(Arc::new(host))
    }

    /// Passes on an event of another party, as a plugin's.
    pub fn tell(&self, event: RunEvent) {
        self.0.hear(event);
    }

    /// Tells that the run runs.
    pub fn started(&self, process: Option<ProcessIdentity>) {
        self.0.hear(RunEvent::Started(process));
    }

    /// Answers as soon as runs of the tree wait for memory of the computer.
    pub fn memory_short(&self) -> BoxFuture<'static, ()> {
        self.0.memory_short()
    }

    /// Tells that the model has begun to answer.
    pub fn answers(&self) {
        self.0.hear(RunEvent::Answers);
    }

    /// Tells that the service has refused or broken off a call, why, and that it is asked again after this wait. `is_pressure` is true if the
    /// service has too much to do, or is not there. The next answer is told with [`answers`](Self::answers).
    pub fn backs_off(&self, why: impl Into<Arc<str>>, wait: Duration, is_pressure: bool) {
        self.0.hear(RunEvent::BacksOff { why: why.into(), wait, is_pressure });
    }

    /// Tells that another model answers from here on.
    pub fn model_changed(&self, model: impl Into<Arc<str>>) {
        self.0.hear(RunEvent::ModelChanged(model.into()));
    }

    /// Shows that the run is at work, as often as that is seen; nothing is told.
    pub fn sign(&self) {
        self.0.sign();
    }

    /// Keeps what the run said, without secrets, for its logs.
    pub fn said(&self, stream: Stream, bytes: &[u8]) {
        self.0.said(stream, bytes);
    }

    /// Keeps a line that the run said.
    pub fn said_line(&self, stream: Stream, text: &str) {
        // Most lines are short, and many hosts keep none: those take no memory.
        let mut short = [0; 256];
        if let Some(line) = short.get_mut(..=text.len()) {
            line[..text.len()].copy_from_slice(text.as_bytes());
            line[text.len()] = b'\n';
            return self.0.said(stream, line);
        }
        self.0.said(stream, format!("{text}\n").as_bytes());
    }

    /// Tells how it goes.
    pub fn progress(&self, text: impl Into<Arc<str>>) {
        self.0.hear(RunEvent::Progress(text.into()));
    }

    /// Tells that the agent has used a tool.
    pub fn tool_used(&self, used: ToolUse) {
        self.0.hear(RunEvent::ToolUsed(used));
    }

    /// Tells that a process which had left its run was ended.
    pub fn stray_ended(&self, pid: u32, name: impl Into<Arc<str>>) {
        self.0.hear(RunEvent::StrayEnded { pid, name: name.into() });
    }

    /// Tells how much is left of a quota of the account, in millionths, and its reset.
    pub fn quota_left(&self, window: impl Into<Arc<str>>, left: u32, until: Timestamp) {
        self.0.hear(RunEvent::QuotaLeft { window: window.into(), left, until });
    }

    /// Tells what has been used so far.
    pub fn used(&self, usage: Usage, cost: Cost) {
        self.0.hear(RunEvent::Used { usage, cost });
    }

    /// Asks for a child; a refusal is an answer.
    pub async fn spawn(&self, request: SpawnRequest) -> Result<RunId, Refusal> {
        self.0.spawn(request).await
    }

    /// Hands a task on to the agent that the request names, else to the preferred one that fits it; with `choose_only` nothing is
    /// started. Where no agent fits and where the run may have no child, the answer is that the run does the task itself.
    ///
    /// # Errors
    /// The refusals of [`spawn`](Self::spawn) that mean something else, such as a budget that is used up.
    pub async fn delegate(
        &self,
        request: SpawnRequest,
        choose_only: bool,
    ) -> Result<Delegated, Refusal> {
        self.0.delegate(request, choose_only).await
    }

    /// Tells that the run is over with a task that it was told to do itself, by the number of the observation. What is not told ends
    /// with the turn.
    ///
    /// # Errors
    /// Fails if the observation is not open.
    pub async fn observed(&self, observation: u32, success: bool) -> Result<(), Refusal> {
        self.0.observed(observation, success).await
    }

    /// Waits for children, with the slot lent.
    ///
    /// # Errors
    /// Fails if there is nothing to wait for: the caller's session or its tree is over, or its host cannot be asked.
    pub async fn wait(&self, wait: WaitFor) -> Result<WaitAnswer, Refusal> {
        self.0.wait(wait).await
    }

    /// Waits until everything that the run has told was taken in, such as what it has used: true if the run goes on after that, false if it is
    /// to stop.
    pub async fn goes_on(&self) -> bool {
        self.0.goes_on().await
    }

    /// Returns the tools by which the run may ask its tree for more than children.
    pub async fn tools(&self) -> Vec<ToolOffer> {
        self.0.tools().await
    }

    /// Calls one of these tools. A refusal is an answer.
    pub async fn call_tool(&self, name: &str, arguments: &str) -> JsonText {
        self.0.call_tool(name, arguments).await
    }

    /// The request of [`Turns::ended`](crate::Turns::ended), which keeps the count; for code that passes on the requests of a
    /// run.
    pub async fn turn_ended(&self, answer: Option<Arc<str>>, letters_taken: u32) -> Ruling {
        self.0.turn_ended(answer, letters_taken).await
    }
}

/// A weak handle of a host.
impl<H: Host + 'static> From<Arc<H>> for RunHost {
    fn from(host: Arc<H>) -> Self {
        Self(host)
    }
}
