//! A plugin that is a program: its functions are asked by lines on its standard input, and answered on its standard output.
//!
//! ```text
//!   Service ── start ──▶ Link: one process ── lines ──▶ program        in a copy of its folder
//!     │                    │ ◀── lines ─────────────────┘              answers, events, requests for children
//!     │                    └── ended: each request that waits fails by name
//!     └─ RuntimeObject, RunObject, MergeObject, JobObject               the objects of the interface
//! ```
//!
//! Promise: whatever the program does (it ends, writes what is no line of the protocol, writes a line without an end, reads
//! nothing, answers nothing), its runs fail and nothing else does. Its process is held as every other process is.

mod files;
mod job;
mod link;
mod private_copy;
mod run;
mod visit;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use futures_util::future::join_all;
use offshoot_model::ProcessIdentity;
use offshoot_plugin_abi::async_ffi::FutureExt;
use offshoot_plugin_abi::wire::line::{Request, op};
use offshoot_plugin_abi::wire::{manifest, shutdown};
use offshoot_plugin_abi::{AbiError, HostRef, Later, MergeRef, RuntimeRef};
use offshoot_process::{Processes, resolve_program};
use offshoot_runtime::{Abilities, is_of_a_run};
use serde_json::value::RawValue;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::error::PluginError;
use crate::host::Surroundings;
use crate::package::Per;

pub(crate) use files::Program;
use link::{Link, Reply};
use private_copy::PrivateCopy;

/// The time that a program may take for an answer that a thread waits for.
const PATIENCE: Duration = Duration::from_secs(30);

/// The variable with the path of the command.
const OFFSHOOT: &str = "OFFSHOOT";

/// A plugin that is a program.
pub(crate) struct Service(Arc<Inner>);

/// The parts that start its processes.
struct Inner {
    /// The name of the plugin, for messages.
    name: Arc<str>,
    path: PathBuf,
    args: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    per: Per,
    processes: Processes,
    /// The runtime of its tasks. A plugin is asked from threads of any runtime, and from none.
    home: Handle,
    state: Mutex<State>,
}

struct State {
    /// None once it is shut down.
    threads: Option<Threads>,
    /// The folder in which its processes work, with its files as they were read.
    copy: Option<PrivateCopy>,
    /// Known since it began.
    begun: Option<Begun>,
    /// The process that answers for the plugin itself. Where each run has one, the next run takes it over.
    link: Option<Arc<Link>>,
    /// All processes that may live.
    live: Vec<std::sync::Weak<Link>>,
}

#[derive(Clone)]
struct Begun {
    host: Arc<HostRef>,
    config: Box<RawValue>,
}

impl Service {
    /// Makes a program ready to be started, from its files as they were read.
    pub(crate) fn new(
        program: &Program,
        name: &str,
        surroundings: &Surroundings,
    ) -> Result<Self, PluginError> {
        let not_opened = |why: String| PluginError::NotStarted { path: program.path.clone(), why };
        let processes = surroundings.processes.clone();
        let processes = processes.ok_or_else(|| not_opened("nothing can start it here".into()))?;
        let mut environment = surroundings.environment.clone();
        // Each launch says which run it is. What is around the supervisor is none of them.
        environment.retain(|(name, _)| !is_of_a_run(name));
        if let Some(offshoot) = &surroundings.offshoot {
            environment.push((OFFSHOOT.into(), offshoot.into()));
        }
        let copy = PrivateCopy::new(program, &environment)
            .map_err(|error| not_opened(format!("its files: {error}")))?;
        let (word, args) = program.entry.command.split_first().expect("a command has a word");
        let path = find(word, &environment, copy.path());
        let path = path.map_err(|error| not_opened(error.to_string()))?;
        let threads = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("plugin")
            .enable_all()
            .build()
            .map_err(|error| not_opened(format!("the system has no thread for it: {error}")))?;
        let home = threads.handle().clone();
        let state = State {
            threads: Some(Threads(Some(threads))),
            copy: Some(copy),
            begun: None,
            link: None,
            live: Vec::new(),
        };
        Ok(Self(Arc::new(Inner {
            name: name.into(),
            path,
            args: args.iter().map(OsString::from).collect(),
            environment,
            per: program.entry.per,
            processes,
            home,
            state: Mutex::new(state),
        })))
    }

    /// Returns the processes that live.
    pub(crate) fn processes(&self) -> Vec<ProcessIdentity> {
        let state = self.0.state();
        let live = state.live.iter().filter_map(std::sync::Weak::upgrade);
        live.filter_map(|link| link.process()).collect()
    }

    pub(crate) fn describe(&self) -> Result<String, AbiError> {
        let link = self.0.link()?;
        self.0.ask(&link, &Request::new(op::DESCRIBE)).map(|reply| reply.ok)
    }

    pub(crate) fn init(&self, host: HostRef, config: &str) -> Result<String, AbiError> {
        let config = json(config, "settings")?;
        let link = self.0.link()?;
        let host = Arc::new(host);
        link.told_to(&host);
        let request = Request { config: Some(&config), ..Request::new(op::INIT) };
        let reply = self.0.ask(&link, &request)?;
        self.0.state().begun = Some(Begun { host, config });
        Ok(reply.ok)
    }

    /// A runtime, with its abilities where its settings change them.
    pub(crate) fn runtime(
        &self,
        name: &str,
        config: &str,
    ) -> Result<(RuntimeRef, Option<Abilities>), AbiError> {
        let config = json(config, "settings")?;
        let made = self.0.try_object(op::RUNTIME, name, &config)?;
        let abilities = manifest::decode_made(&made.ok)?;
        Ok((run::runtime(Arc::clone(&self.0), name, config), abilities))
    }

    pub(crate) fn merge(&self, name: &str, config: &str) -> Result<MergeRef, AbiError> {
        let config = json(config, "settings")?;
        self.0.try_object(op::MERGE, name, &config)?;
        Ok(job::merge(Arc::clone(&self.0), name, config))
    }

    /// Ends all processes: by a request first, and by signals in the second half of the time.
    pub(crate) fn shutdown(&self, milliseconds: u64) -> Later {
        let (live, threads, copy) = {
            let mut state = self.0.state();
            let live = std::mem::take(&mut state.live);
            state.link = None;
            (live, state.threads.take(), state.copy.take())
        };
        let live: Vec<_> = live.iter().filter_map(std::sync::Weak::upgrade).collect();
        let half = Duration::from_millis(milliseconds / 2);
        let home = self.0.home.clone();
        let ended = home.spawn(async move {
            let request = Request { timeout_ms: Some(milliseconds), ..Request::new(op::SHUTDOWN) };
            let forced = join_all(live.iter().map(|link| link.shut_down(&request, half))).await;
            forced.into_iter().filter(|forced| *forced).count()
        });
        async move {
            let forced = ended.await.unwrap_or_default();
            drop((copy, threads));
            Ok(shutdown::encode(forced).into()).into()
        }
        .into_ffi()
    }
}

impl Drop for Service {
    /// The processes end with the tasks that hold them.
    fn drop(&mut self) {
        let (threads, link) = {
            let mut state = self.0.state();
            (state.threads.take(), state.link.take())
        };
        drop((threads, link));
    }
}

/// The threads of a plugin. Nothing waits for their end.
struct Threads(Option<Runtime>);

impl Drop for Threads {
    fn drop(&mut self) {
        self.0.take().expect("it is dropped once").shutdown_background();
    }
}

impl Inner {
    /// The process that answers for the plugin, started where there is none.
    fn link(self: &Arc<Self>) -> Result<Arc<Link>, AbiError> {
        let mut state = self.state();
        if let Some(link) = state.link.as_ref().filter(|link| !link.is_over()) {
            return Ok(Arc::clone(link));
        }
        let link = self.start(&mut state)?;
        state.link = Some(Arc::clone(&link));
        Ok(link)
    }

    /// The process of a new run or merge.
    fn link_for_one(self: &Arc<Self>) -> Result<Arc<Link>, AbiError> {
        if self.per == Per::Plugin {
            return self.link();
        }
        let mut state = self.state();
        match state.link.take().filter(|link| !link.is_over()) {
            Some(link) => Ok(link),
            None => self.start(&mut state),
        }
    }

    fn start(self: &Arc<Self>, state: &mut State) -> Result<Arc<Link>, AbiError> {
        let over = || AbiError::new(AbiError::CANCELLED, "this plugin is shut down");
        let copy = state.copy.as_ref().ok_or_else(over)?;
        let link = Link::start(self, copy.path());
        state.live.retain(|link| link.strong_count() > 0);
        state.live.push(Arc::downgrade(&link));
        if let Some(begun) = &state.begun {
            link.told_to(&begun.host);
            let request = Request { config: Some(&begun.config), ..Request::new(op::INIT) };
            let failing = Arc::downgrade(&link);
            link.ask(
                &request,
                Box::new(move |answer| {
                    if let (Err(error), Some(link)) = (answer, failing.upgrade()) {
                        link.fail(error);
                    }
                }),
            );
        }
        Ok(link)
    }

    /// Makes a runtime or a merge function, to see whether that can be done.
    fn try_object(
        self: &Arc<Self>,
        kind: &'static str,
        name: &str,
        config: &RawValue,
    ) -> Result<Reply, AbiError> {
        let link = self.link()?;
        let request = Request { name: Some(name), config: Some(config), ..Request::new(kind) };
        let mut made = 0;
        let reply = self.wait(&link, kind, |then| made = link.ask(&request, then))?;
        link.has_made(kind, name, config, made);
        Ok(reply)
    }

    /// Asks, and waits for the answer on this thread.
    fn ask(&self, link: &Link, request: &Request<'_>) -> Result<Reply, AbiError> {
        self.wait(link, request.op, |then| {
            link.ask(request, then);
        })
    }

    fn wait(
        &self,
        link: &Link,
        what: &str,
        ask: impl FnOnce(link::Then),
    ) -> Result<Reply, AbiError> {
        let (tx, rx) = mpsc::channel();
        // One that was given up is not listened to.
        ask(Box::new(move |answer| drop(tx.send(answer))));
        rx.recv_timeout(PATIENCE).unwrap_or_else(|_| {
            let late = format!(
                "the process of the plugin `{}` did not answer `{what}` within {} s",
                self.name,
                PATIENCE.as_secs()
            );
            let late = AbiError::new(AbiError::FAILED, late);
            link.fail(late.clone());
            Err(late)
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The program of a command: a file of the plugin, or one that is looked for as a shell does.
fn find(
    word: &str,
    environment: &[(OsString, OsString)],
    copy: &Path,
) -> Result<PathBuf, offshoot_process::ProgramError> {
    let own = copy.join(word);
    if own.is_file() {
        return resolve_program(own.as_os_str(), None, copy);
    }
    let path = environment.iter().find(|(name, _)| name == "PATH");
    resolve_program(OsStr::new(word), path.map(|(_, path)| path.as_os_str()), copy)
}

/// JSON as it stands in a line.
fn json(text: &str, what: &str) -> Result<Box<RawValue>, AbiError> {
    serde_json::from_str(text)
        .map_err(|error| AbiError::new(AbiError::INVALID, format!("{what}: {error}")))
}
