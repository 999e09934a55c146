//! One process of a plugin: requests to it with what becomes of their answers, and the runs in it with what they ask.

mod hearing;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use offshoot_model::{BootId, ProcessIdentity, error_chain};
use offshoot_plugin_abi::wire::line::{self, Request};
use offshoot_plugin_abi::{AbiError, HostRef, Outcome, RunHostRef};
use offshoot_process::{
    Capture, Exit, Finished, Keep, Kept, Lines, Program, Stdin, Stop, StopHandle, StopReceiver,
    StopSignal, boot_id,
};
use serde_json::value::RawValue;
use tokio::io::AsyncWriteExt;
use tokio::sync::{SetOnce, mpsc};
use tokio::time::timeout;

use super::Inner;
use super::visit::Visit;

/// Of a line on standard error, so many bytes are a line of the log.
const LONGEST_REMARK: usize = 4 << 10;
/// Lines that wait are written together, up to what a pipe holds.
const BLOCK_BYTES: usize = 64 << 10;
/// The number of bytes of its last words that messages have.
const SAID_BYTES: usize = 1000;

/// An answer of the process, out of its line.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) ok: String,
    /// Of `start`.
    pub(super) outcome: Option<Result<Outcome, AbiError>>,
    /// Of `push`.
    pub(super) early: Option<Result<Option<String>, AbiError>>,
}

/// The receiver of an answer. It is called where lines are read, and must not block.
pub(super) type Then = Box<dyn FnOnce(Result<Reply, AbiError>) + Send>;

/// A line for the process, from the moment at which it is certain to come until it was written.
struct Unread(Arc<AtomicUsize>);

impl Unread {
    fn one_more(of: &Arc<AtomicUsize>) -> Self {
        of.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(of))
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One process.
pub(super) struct Link {
    plugin: Arc<Inner>,
    next: AtomicU64,
    /// Lines that wait to be read.
    unread: Arc<AtomicUsize>,
    /// True if it is being ended by force, and heard no more: one that floods would be heard for long.
    deaf: AtomicBool,
    process: OnceLock<ProcessIdentity>,
    host: OnceLock<Arc<HostRef>>,
    stop: StopHandle,
    gone: SetOnce<()>,
    state: Mutex<State>,
}

struct State {
    /// None once standard input is closed.
    lines: Option<mpsc::UnboundedSender<(Vec<u8>, Unread)>>,
    waiting: HashMap<u64, (What, Then)>,
    visits: HashMap<u64, Visit>,
    /// Runtimes and merge functions that were made, by kind, name and settings.
    made: HashMap<(&'static str, String, String), u64>,
    /// Called when the process is gone.
    at_end: Vec<Box<dyn FnOnce() + Send>>,
    /// The reason why it is being ended.
    fault: Option<AbiError>,
    /// The reason why it answers nothing any more.
    over: Option<AbiError>,
}

/// The form in which an answer is read.
#[derive(Clone, Copy, PartialEq)]
enum What {
    Document,
    Outcome,
    Pushed,
}

impl Link {
    /// Starts a process. What is asked before it runs is told to it then; a start that fails fails what was asked.
    pub(super) fn start(plugin: &Arc<Inner>, folder: &Path) -> Arc<Self> {
        // No bound: a program that reads nothing is ended when too many wait.
        let (lines, rx) = mpsc::unbounded_channel();
        let (stop, stopped) = StopHandle::new();
        let link = Arc::new(Self {
            plugin: Arc::clone(plugin),
            next: AtomicU64::new(1),
            unread: Arc::default(),
            deaf: AtomicBool::new(false),
            process: OnceLock::new(),
            host: OnceLock::new(),
            stop,
            gone: SetOnce::new(),
            state: Mutex::new(State {
                lines: Some(lines),
                waiting: HashMap::new(),
                visits: HashMap::new(),
                made: HashMap::new(),
                at_end: Vec::new(),
                fault: None,
                over: None,
            }),
        });
        let (listening, saying) = (Arc::clone(&link), Arc::clone(&link));
        let mut parts = Lines::new(line::LONGEST);
        let listen = move |block: &[u8]| {
            parts.feed(block, |line| listening.hear(line));
            if parts.rest().len() >= line::LONGEST {
                listening.wrong("wrote a line that does not end");
            }
        };
        let mut remarks = Lines::new(LONGEST_REMARK);
        let say = move |block: &[u8]| remarks.feed(block, |line| saying.says(line));
        let program = Program {
            args: plugin.args.clone(),
            env: plugin.environment.clone(),
            stdin: Stdin::Pipe,
            stdout: Capture { keep: Keep::Nothing, tap: Some(Box::new(listen)) },
            stderr: Capture { keep: Keep::Last(SAID_BYTES), tap: Some(Box::new(say)) },
            ..Program::new(plugin.path.clone(), folder)
        };
        plugin.home.spawn(Arc::clone(&link).hold(program, rx, stopped));
        link
    }

    /// Returns the process, while it lives.
    pub(super) fn process(&self) -> Option<ProcessIdentity> {
        self.process.get().copied().filter(|_| self.gone.get().is_none())
    }

    /// Holds the process until it is gone: writes what it is told and hears what it says.
    async fn hold(
        self: Arc<Self>,
        program: Program,
        mut lines: mpsc::UnboundedReceiver<(Vec<u8>, Unread)>,
        stop: StopReceiver,
    ) {
        let mut before = stop.clone();
        let started = tokio::select! {
            biased;
            started = self.plugin.processes.spawn_when_possible(program) => started,
            _ = before.heard() => return self.over(None),
        };
        let mut child = match started {
            Ok(child) => child,
            Err(error) => {
                self.fail(AbiError::new(AbiError::UNAVAILABLE, error_chain(&error)));
                return self.over(None);
            }
        };
        let identity = child.identity();
        let boot = boot_id().map(BootId::from_u128);
        let identity = ProcessIdentity::new(identity.pid, identity.start_time).of_boot(boot);
        self.process.get_or_init(|| identity);
        let stdin = child.take_stdin();
        let write = async {
            let Some(mut stdin) = stdin else { return };
            while let Some((mut block, unread)) = lines.recv().await {
                let mut unread = vec![unread];
                while block.len() < BLOCK_BYTES
                    && let Ok((line, one)) = lines.try_recv()
                {
                    block.extend_from_slice(&line);
                    unread.push(one);
                }
                // One that reads no more has ended or is about to, which is what will be told.
                if stdin.write_all(&block).await.is_err() {
                    return;
                }
            }
        };
        let wait = child.wait(stop);
        tokio::pin!(wait, write);
        let finished = tokio::select! {
            finished = &mut wait => finished,
            () = &mut write => wait.await,
        };
        self.over(Some(finished));
    }

    /// The process is gone: what waits for it fails, by name.
    fn over(&self, finished: Option<Finished>) {
        let (waiting, visits) = {
            let mut state = self.state();
            state.lines = None;
            let fault = state.fault.take();
            let error = fault.unwrap_or_else(|| self.ended(finished.as_ref()));
            state.over.get_or_insert(error);
            (std::mem::take(&mut state.waiting), std::mem::take(&mut state.visits))
        };
        // First nothing more is told, then the outcomes are known.
        drop(visits);
        let error = self.over_with();
        waiting.into_values().for_each(|(_, then)| then(Err(error.clone())));
        let at_end = std::mem::take(&mut self.state().at_end);
        at_end.into_iter().for_each(|then| then());
        let _ = self.gone.set(());
    }

    /// Returns how it ended, in words.
    fn ended(&self, finished: Option<&Finished>) -> AbiError {
        let name = &self.plugin.name;
        let how = match finished.map(|finished| finished.exit) {
            Some(Exit::Code(code)) => format!("ended with code {code}"),
            Some(Exit::Signal(signal)) => format!("was ended by signal {signal}"),
            Some(Exit::Lost) | None => "ended".to_owned(),
        };
        let said = match finished.map(|finished| &finished.stderr.kept) {
            Some(Kept::Memory(bytes)) => String::from_utf8_lossy(bytes).trim().to_owned(),
            _ => String::new(),
        };
        let said = if said.is_empty() { said } else { format!("; it said: {said}") };
        let message = format!("the process of the plugin `{name}` {how}{said}");
        AbiError::new(AbiError::FAILED, message)
    }

    fn over_with(&self) -> AbiError {
        let ended = || AbiError::new(AbiError::FAILED, "the process of the plugin has ended");
        self.state().over.clone().unwrap_or_else(ended)
    }

    /// Asks for something. What becomes of the answer is called once, also where there is none.
    pub(super) fn ask(&self, request: &Request<'_>, then: Then) -> u64 {
        self.ask_for(What::Document, request, None, then)
    }

    /// Starts a run or begins a merge, whose requests go to this host from the moment of its start.
    pub(super) fn ask_with(&self, request: &Request<'_>, host: RunHostRef, then: Then) -> u64 {
        self.ask_for(What::Document, request, Some(host), then)
    }

    /// As above, for a run: its answer is an outcome.
    pub(super) fn ask_run(&self, request: &Request<'_>, host: RunHostRef, then: Then) -> u64 {
        self.ask_for(What::Outcome, request, Some(host), then)
    }

    /// Pushes a result to a merge.
    pub(super) fn ask_push(&self, request: &Request<'_>, then: Then) {
        self.ask_for(What::Pushed, request, None, then);
    }

    fn ask_for(
        &self,
        what: What,
        request: &Request<'_>,
        host: Option<RunHostRef>,
        then: Then,
    ) -> u64 {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let line = request.line(id);
        let mut state = self.state();
        if let Some(error) = state.over.clone().or_else(|| state.fault.clone()) {
            drop(state);
            then(Err(error));
            return id;
        }
        state.waiting.insert(id, (what, then));
        if let Some(host) = host {
            state.visits.insert(id, Visit::new(host));
        }
        self.write(&state, line);
        id
    }

    /// Tells something that wants no answer.
    pub(super) fn tell(&self, request: &Request<'_>) {
        self.write(&self.state(), line::tell(request));
    }

    fn write(&self, state: &State, line: Vec<u8>) {
        if let Some(lines) = &state.lines {
            // One that is about to end reads no more.
            let _ = lines.send((line, Unread::one_more(&self.unread)));
        }
    }

    /// The number of a runtime or a merge function in this process, made where it is not yet.
    pub(super) fn object(
        &self,
        kind: &'static str,
        name: &str,
        config: &RawValue,
        then: Then,
    ) -> u64 {
        let key = (kind, name.to_owned(), config.get().to_owned());
        if let Some(id) = self.state().made.get(&key) {
            return *id;
        }
        let id = self
            .ask(&Request { name: Some(name), config: Some(config), ..Request::new(kind) }, then);
        self.state().made.insert(key, id);
        id
    }

    /// Notes what was made.
    pub(super) fn has_made(&self, kind: &'static str, name: &str, config: &RawValue, id: u64) {
        self.state().made.insert((kind, name.to_owned(), config.get().to_owned()), id);
    }

    /// From now on its log goes to this host, and so do requests of the plugin itself.
    pub(super) fn told_to(&self, host: &Arc<HostRef>) {
        let _ = self.host.set(Arc::clone(host));
    }

    /// A run or a merge is heard no more.
    pub(super) fn forget(&self, id: u64) {
        let visit = self.state().visits.remove(&id);
        drop(visit);
    }

    /// Ends the process at once, for this reason, which everything that waits for it is told.
    pub(super) fn fail(&self, why: AbiError) {
        self.state().fault.get_or_insert(why);
        self.deaf.store(true, Ordering::Relaxed);
        self.stop.stop(Stop::Firm);
    }

    /// Asks the process to end by a signal, and ends it by force after the grace.
    pub(super) fn stop(&self, grace: Duration, why: AbiError) {
        self.state().fault.get_or_insert(why);
        self.stop.stop(Stop::Soft { grace });
    }

    /// Closes its standard input, and waits until it is gone: by itself within this time, else by force.
    pub(super) async fn retire(&self, limit: Duration) -> bool {
        self.state().lines = None;
        if timeout(limit, self.gone.wait()).await.is_ok() {
            return false;
        }
        self.stop.stop(Stop::Soft { grace: limit });
        self.gone.wait().await;
        true
    }

    /// Asks it to end everything. True where it had to be ended by force.
    pub(super) async fn shut_down(&self, request: &Request<'_>, half: Duration) -> bool {
        let over = AbiError::new(AbiError::CANCELLED, "this plugin is shut down");
        self.state().fault.get_or_insert(over);
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.write(&self.state(), request.line(id));
        self.retire(half).await
    }

    /// Calls this when the process is gone. It is called by what the process says or by its end, so it is not gone yet.
    pub(super) fn when_gone(&self, then: impl FnOnce() + Send + 'static) {
        self.state().at_end.push(Box::new(then));
    }

    pub(super) fn is_over(&self) -> bool {
        let state = self.state();
        state.over.is_some() || state.fault.is_some()
    }

    /// The plugin that it is a process of.
    pub(super) fn plugin(&self) -> &Arc<Inner> {
        &self.plugin
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
