//! A plugin as a program of its own: the declaration of a library, asked by lines on standard input.
//!
//! ```text
//!   standard input ─▶ reader ─┬─ answers ────────────────────▶ the run or the plugin that asked
//!                             ├─ starts, stops, letters ──────▶ Service ─▶ runs
//!                             └─ what may call the plugin ────▶ the main thread ─▶ Service ─▶ the plugin
//!   standard output ◀── lines ── answers, events, requests ─┘
//! ```
//!
//! The reader calls no code of the plugin, which may wait for an answer that the reader has to read. What does not call such code
//! is done where it is read, unless something that came before it is still being done.
//!
//! What is asked is what a host asks of a library, by the same functions, so a plugin cannot tell the two apart.

mod link;
mod spool;

use std::collections::HashMap;
use std::io;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

use offshoot_plugin_abi::abi_stable::sabi_trait::TD_Opaque;
use offshoot_plugin_abi::wire::line::{self, Order};
use offshoot_plugin_abi::wire::{NOTHING, finished, manifest};
use offshoot_plugin_abi::{
    AbiError, Host_TO, Later, MergeJobRef, MergeRef, PluginRef, Run as _, RunHost_TO,
};
use offshoot_runtime::Finished;
use tokio::runtime::{Builder, Handle};

use self::link::{Heard, Link, PluginsLink, RunsLink};
use crate::Plugin;
use crate::export::{made_runtime, root_module};
use crate::run::{RunObject, RuntimeObject};

/// The time to end everything when the host has closed standard input without a word. A host that ends a process takes two
/// seconds before it sends signals.
const PARTING_MS: u64 = 1000;

/// Serves until the host closes standard input.
pub fn serve(declaration: fn() -> Plugin) -> ExitCode {
    match serve_until_closed(root_module(declaration)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "standard error is the log of a program")]
            {
                eprintln!("this plugin cannot be served: {error}");
            }
            ExitCode::FAILURE
        }
    }
}

fn serve_until_closed(module: PluginRef) -> io::Result<()> {
    let link = Arc::new(Link::take_standard_output()?);
    let runtime =
        Builder::new_multi_thread().worker_threads(1).thread_name("plugin-lines").build()?;
    let service = Service::new(module, Arc::clone(&link), runtime.handle().clone());
    let service = Arc::new(Mutex::new(service));
    // No bound: answers to what is asked meanwhile come by the same way, and the host sends no more than it would hold itself.
    let (tx, rx) = mpsc::channel();
    // Of what was handed to this thread, the number that is not done. It never falls to zero again after a shutdown.
    let under_way = Arc::new(AtomicUsize::new(0));
    let (reader, at_once, before) =
        (Arc::clone(&link), Arc::clone(&service), Arc::clone(&under_way));
    thread::Builder::new().name("plugin-reader".to_owned()).spawn(move || {
        reader.read(io::stdin().lock(), |heard| {
            if heard.calls_no_plugin() && before.load(Ordering::Acquire) == 0 {
                return perform(&at_once, heard);
            }
            before.fetch_add(1, Ordering::Relaxed);
            // Nothing is asked any more of a plugin that was shut down.
            let _ = tx.send(heard);
        });
    })?;
    let mut limit = PARTING_MS;
    let mut asked_by = None;
    for heard in rx {
        if let Heard::Request { id, order: Order::Shutdown(timeout_ms), .. } = heard {
            (limit, asked_by) = (timeout_ms, id);
            break;
        }
        perform(&service, heard);
        under_way.fetch_sub(1, Ordering::Release);
    }
    let over = runtime.block_on(module.shutdown()(limit)).into_result().map(String::from);
    if let Some(id) = asked_by {
        link.answer(id, &over);
    }
    runtime.shutdown_background();
    Ok(())
}

/// Does what was asked, or what becomes of an answer.
fn perform(service: &Mutex<Service>, heard: Heard) {
    match heard {
        Heard::Request { id, of, order } => {
            service.lock().unwrap_or_else(PoisonError::into_inner).take(id, of, order);
        }
        Heard::Answer(then) => then(),
    }
}

impl Heard {
    /// True if it can be done without a call of the plugin's code.
    fn calls_no_plugin(&self) -> bool {
        match self {
            Self::Request { order, .. } => {
                matches!(order, Order::Start(_) | Order::Cancel(_) | Order::Call(..))
            }
            Self::Answer(_) => true,
        }
    }
}

/// The objects that were made, by the numbers of the requests that made them.
struct Service {
    module: PluginRef,
    link: Arc<Link>,
    executor: Handle,
    runtimes: HashMap<u64, RuntimeObject>,
    merges: HashMap<u64, Arc<MergeRef>>,
    jobs: Jobs,
    /// A run leaves when it has ended.
    runs: Arc<Mutex<HashMap<u64, RunObject>>>,
}

/// Merges that have begun.
type Jobs = Arc<Mutex<HashMap<u64, Arc<Mutex<MergeJobRef>>>>>;

impl Service {
    fn new(module: PluginRef, link: Arc<Link>, executor: Handle) -> Self {
        let (runtimes, merges) = (HashMap::new(), HashMap::new());
        let (jobs, runs) = (Arc::default(), Arc::default());
        Self { module, link, executor, runtimes, merges, jobs, runs }
    }

    /// Does what one request asks, and answers it, now or later.
    fn take(&mut self, id: Option<u64>, of: Option<u64>, order: Order) {
        // What makes something is known by its number.
        let number = id.unwrap_or_default();
        let answer = match order {
            Order::Describe => self.describe(),
            Order::Init(config) => {
                let host = Host_TO::from_value(PluginsLink(Arc::clone(&self.link)), TD_Opaque);
                self.module.init()(host, config.as_str().into()).into_result().map(String::from)
            }
            Order::Runtime(name, config) => {
                made_runtime(&name, &config).map(|(runtime, abilities)| {
                    self.runtimes.insert(number, runtime);
                    manifest::encode_made(abilities)
                })
            }
            Order::Merge(name, config) => {
                let made = self.module.merge()(name.as_str().into(), config.as_str().into());
                made.into_result()
                    .map(|made| drop(self.merges.insert(number, Arc::new(made))))
                    .map(nothing)
            }
            Order::Start(launch) => match self.start(number, of, &launch) {
                Ok(()) => return,
                Err(error) => Err(error),
            },
            Order::Begin(params) => match self.begin(number, of, params) {
                Ok(()) => return,
                Err(error) => Err(error),
            },
            Order::Push(index, meta, result) => match self.push(number, of, index, meta, result) {
                Ok(()) => return,
                Err(error) => Err(error),
            },
            Order::Finish => match self.job(of) {
                Ok(job) => {
                    let answer = job.lock().unwrap_or_else(PoisonError::into_inner).finish();
                    return self.answer_later(id, answer);
                }
                Err(error) => Err(error),
            },
            Order::Call(name, args) => {
                let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
                match of.and_then(|of| runs.get(&of)) {
                    Some(run) => {
                        let answer = run.call(name.as_str().into(), args.as_str().into());
                        drop(runs);
                        return self.answer_later(id, answer);
                    }
                    None => Err(AbiError::unsupported(&name)),
                }
            }
            Order::Cancel(grace_ms) => {
                let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(run) = of.and_then(|of| runs.get(&of)) {
                    run.cancel(grace_ms);
                }
                Ok(nothing(()))
            }
            Order::Drop => {
                let of = of.unwrap_or_default();
                let run = self.runs.lock().unwrap_or_else(PoisonError::into_inner).remove(&of);
                let job = self.jobs.lock().unwrap_or_else(PoisonError::into_inner).remove(&of);
                drop((run, job));
                Ok(nothing(()))
            }
            Order::Shutdown(_) => unreachable!("it ends the loop of requests"),
            Order::Unknown(name) => Err(AbiError::unsupported(&name)),
        };
        if let Some(id) = id {
            self.link.answer(id, &answer);
        }
    }

    fn describe(&self) -> Result<String, AbiError> {
        let manifest = String::from(self.module.describe()());
        // A library has no other way to say it.
        let panicked = || AbiError::new(AbiError::PANICKED, "its declaration panicked");
        Some(manifest).filter(|manifest| !manifest.is_empty()).ok_or_else(panicked)
    }

    fn start(&mut self, number: u64, of: Option<u64>, launch: &str) -> Result<(), AbiError> {
        let runtime = of.and_then(|of| self.runtimes.get(&of)).ok_or_else(|| no("runtime", of))?;
        let (link, runs) = (Arc::clone(&self.link), Arc::clone(&self.runs));
        let folder = spool::folder(launch);
        let at_end = move |outcome: &Result<Finished, AbiError>| {
            let outcome = outcome.as_ref().map_err(AbiError::clone).and_then(finished::encode);
            let mut line = line::outcome(number, &outcome);
            if line.len() >= line::LONGEST {
                let spooled = outcome.and_then(|outcome| spool::write(&outcome, folder, number));
                line = line::outcome(number, &spooled);
            }
            link.write(&line);
            let ended = runs.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
            drop(ended);
        };
        let run = runtime.start_with(launch, self.host_of(number), Some(Box::new(at_end)));
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        // One that is over was not here when it was to leave.
        if !run.is_over() {
            runs.insert(number, run);
        }
        Ok(())
    }

    /// Begins a merge, in a thread where that may wait for its host.
    fn begin(&self, number: u64, of: Option<u64>, params: String) -> Result<(), AbiError> {
        let merge = of.and_then(|of| self.merges.get(&of)).ok_or_else(|| no("merge", of))?;
        let (merge, host) = (Arc::clone(merge), self.host_of(number));
        let (jobs, link) = (Arc::clone(&self.jobs), Arc::clone(&self.link));
        self.executor.spawn_blocking(move || {
            let begun = merge.begin(params.as_str().into(), host).into_result();
            let begun = begun.map(|job| {
                let job = Arc::new(Mutex::new(job));
                jobs.lock().unwrap_or_else(PoisonError::into_inner).insert(number, job);
                NOTHING.to_owned()
            });
            link.answer(number, &begun);
        });
        Ok(())
    }

    /// Hands a result over, in a thread where that may take its time. A host pushes the next one after the answer to this one.
    fn push(
        &self,
        number: u64,
        of: Option<u64>,
        index: u32,
        meta: String,
        result: String,
    ) -> Result<(), AbiError> {
        let (job, link) = (self.job(of)?, Arc::clone(&self.link));
        self.executor.spawn_blocking(move || {
            let mut job = job.lock().unwrap_or_else(PoisonError::into_inner);
            let pushed = job.push(index, meta.as_str().into(), result.as_str().into());
            let early = pushed.into_result().map(|early| early.into_option().map(String::from));
            link.write(&line::pushed(number, &early));
        });
        Ok(())
    }

    fn job(&self, of: Option<u64>) -> Result<Arc<Mutex<MergeJobRef>>, AbiError> {
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        of.and_then(|of| jobs.get(&of)).map(Arc::clone).ok_or_else(|| no("merge", of))
    }

    fn host_of(&self, number: u64) -> offshoot_plugin_abi::RunHostRef {
        RunHost_TO::from_value(RunsLink { link: Arc::clone(&self.link), of: number }, TD_Opaque)
    }

    fn answer_later(&self, id: Option<u64>, answer: Later) {
        let link = Arc::clone(&self.link);
        self.executor.spawn(async move {
            let answer = answer.await.into_result().map(String::from);
            if let Some(id) = id {
                link.answer(id, &answer);
            }
        });
    }
}

fn nothing((): ()) -> String {
    NOTHING.to_owned()
}

fn no(what: &str, of: Option<u64>) -> AbiError {
    let message = match of {
        Some(of) => format!("request {of} has made no {what} here"),
        None => format!("a request to a {what} names it with `of`"),
    };
    AbiError::new(AbiError::INVALID, message)
}

/// Makes the `main` of a program that is a plugin: `serve_plugin!(declaration)`, once, where `declaration` is an expression of
/// type [`Plugin`]. `plugin.toml` names the program with `[process] command`.
///
/// Standard output is the host's: what the program prints there by itself goes to standard error, and so into the log.
#[macro_export]
macro_rules! serve_plugin {
    ($declaration:expr) => {
        fn main() -> ::std::process::ExitCode {
            fn declaration() -> $crate::Plugin {
                $crate::__declared!($declaration)
            }
            $crate::export::serve(declaration)
        }
    };
}
