//! A plugin as a program of its own: the declaration of a library, asked by lines on standard input.
//!
//! ```text
//!   standard input ─▶ reader ─── answers ────────────────▶ the run or the plugin that asked
//!                        └────── requests, in order ─────▶ Service ─▶ objects of the interface
//!   standard output ◀── lines ── answers, events, requests ─┘
//! ```
//!
//! What is asked is what a host asks of a library, by the same functions, so a plugin cannot tell the two apart.

mod link;
mod spool;

use std::collections::HashMap;
use std::io;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use offshoot_plugin_abi::abi_stable::sabi_trait::TD_Opaque;
use offshoot_plugin_abi::wire::line::{self, Order};
use offshoot_plugin_abi::wire::{NOTHING, manifest};
use offshoot_plugin_abi::{
    AbiError, Host_TO, Later, MergeJobRef, MergeRef, PluginRef, RunHost_TO, RunRef, RuntimeRef,
};
use tokio::runtime::{Builder, Handle};
use tokio::sync::mpsc;

use self::link::{Heard, Link, PluginsLink, RunsLink};
use crate::Plugin;
use crate::export::{made_runtime, root_module};

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
    // No bound: answers to what is asked meanwhile come by the same way, and the host sends no more than it would hold itself.
    let (tx, mut rx) = mpsc::unbounded_channel();
    let reader = Arc::clone(&link);
    thread::Builder::new().name("plugin-reader".to_owned()).spawn(move || {
        reader.read(io::stdin().lock(), |heard| {
            // Nothing is asked any more of a plugin that was shut down.
            let _ = tx.send(heard);
        });
    })?;
    let runtime =
        Builder::new_multi_thread().worker_threads(1).thread_name("plugin-lines").build()?;
    let mut service = Service::new(module, link, runtime.handle().clone());
    runtime.block_on(async {
        let mut limit = PARTING_MS;
        let mut asked_by = None;
        while let Some(heard) = rx.recv().await {
            match heard {
                Heard::Request { id, order: Order::Shutdown(timeout_ms), .. } => {
                    (limit, asked_by) = (timeout_ms, id);
                    break;
                }
                Heard::Request { id, of, order } => service.take(id, of, order),
                Heard::Answer(then) => then(),
            }
        }
        let over = module.shutdown()(limit).await.into_result().map(String::from);
        if let Some(id) = asked_by {
            service.link.answer(id, &over);
        }
    });
    runtime.shutdown_background();
    Ok(())
}

/// What was made, by the numbers of the requests that made it.
struct Service {
    module: PluginRef,
    link: Arc<Link>,
    executor: Handle,
    runtimes: HashMap<u64, RuntimeRef>,
    merges: HashMap<u64, Arc<MergeRef>>,
    jobs: Jobs,
    /// A run leaves when it has ended.
    runs: Arc<Mutex<HashMap<u64, RunRef>>>,
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
        let run = runtime.start(launch.into(), self.host_of(number));
        let outcome = run.outcome();
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).insert(number, run);
        let (link, runs) = (Arc::clone(&self.link), Arc::clone(&self.runs));
        let folder = spool::folder(launch);
        self.executor.spawn(async move {
            let outcome = outcome.await.into_result();
            let mut line = line::outcome(number, &outcome);
            if line.len() >= line::LONGEST {
                let spooled = outcome.and_then(|outcome| spool::write(&outcome, folder, number));
                line = line::outcome(number, &spooled);
            }
            link.write(&line);
            let ended = runs.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
            drop(ended);
        });
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
