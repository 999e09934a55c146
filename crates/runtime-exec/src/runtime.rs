//! The adapter between the contract and child processes.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use offshoot_model::{BootId, CancelledBy, ProcessIdentity, Reason, Stream, error_chain};
use offshoot_process::{
    Capture, Identity, Keep, Kept, Limits, Processes, Program, ProgramError, Stdin, Stop,
    StopSignal, Stray, boot_id, resolve_program,
};
use offshoot_runtime::{
    Abilities, Finished, Input, Launch, Output, RunContext, RunHost, Runtime, SaidStream, Secrets,
    StopSignal as RunStop, TRACE_VARIABLE_BYTES, Variable, diagnostics, guidance, metered, prompt,
    trace_json,
};
use uuid::Uuid;

use crate::environment;
use crate::output_limit::OutputLimit;
use crate::recent::Recent;
use crate::task_file::task_file;
use crate::{answer, signs, verdict};

/// Output up to this size stays in memory until it is recorded: with a thousand at once still only 64 MiB.
const OUTPUT_BYTES: usize = 64 * 1024;

/// The number of bytes of standard error that are kept to explain a failure.
const DIAGNOSTIC_BYTES: usize = 8 * 1024;

/// The options for starting programs.
#[derive(Clone, Debug, Default)]
pub struct ExecOptions {
    /// Our own environment; only permitted names are handed on.
    pub environment: Vec<(OsString, OsString)>,
    /// Further names and patterns that are permitted.
    pub more: Vec<String>,
    /// Stands before every command: another user, a container.
    pub wrap: Vec<String>,
    /// The absolute path of the command `offshoot`, for agents that want to call it.
    pub offshoot: Option<PathBuf>,
}

/// Runs programs. Cheap to clone.
#[derive(Clone, derive_more::Debug)]
#[debug("ExecRuntime")]
pub struct ExecRuntime {
    inner: Arc<Inner>,
}

struct Inner {
    processes: Processes,
    inherited: Vec<Variable>,
    /// The inherited values that the operator has named.
    chosen: Vec<String>,
    search_path: Option<OsString>,
    wrap: Vec<String>,
    offshoot: Option<PathBuf>,
    programs: Recent<[String], (PathBuf, PathBuf)>,
    tasks: Recent<str, PathBuf>,
}

impl ExecOptions {
    /// Nothing but an environment to inherit from.
    pub fn inheriting(environment: Vec<(OsString, OsString)>) -> Self {
        Self { environment, ..Self::default() }
    }
}

impl ExecRuntime {
    /// A runtime that starts its programs through these processes.
    pub fn new(processes: Processes, options: ExecOptions) -> Self {
        let ExecOptions { environment, more, wrap, offshoot } = options;
        let inherited = environment::inherited(environment, &more);
        let search_path =
            inherited.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
        let chosen = environment::chosen(&inherited);
        let (programs, tasks) = (Recent::new(), Recent::new());
        let inner =
            Inner { processes, inherited, chosen, search_path, wrap, offshoot, programs, tasks };
        Self { inner: Arc::new(inner) }
    }

    /// Returns the path of a command's program as its runs would find it, for checks before anything starts.
    pub fn locate(&self, command: &[String], folder: &Path) -> Result<PathBuf, ProgramError> {
        let program = self.inner.wrap.first().or(command.first()).map_or("", String::as_str);
        resolve_program(program.as_ref(), self.inner.search_path.as_deref(), folder)
    }
}

impl Runtime for ExecRuntime {
    fn name(&self) -> &str {
        offshoot_runtime::EXEC
    }

    fn abilities(&self) -> Abilities {
        Abilities::of_a_command()
    }

    fn start(&self, launch: Launch, cx: RunContext) -> BoxFuture<'static, Finished> {
        let exec = self.clone();
        async move { exec.run(launch, cx).await.unwrap_or_else(Finished::of) }.boxed()
    }
}

impl ExecRuntime {
    /// One run; an error is the reason why nothing was started.
    async fn run(&self, launch: Launch, cx: RunContext) -> Result<Finished, Reason> {
        let secrets = self.secrets(&launch);
        let limit = OutputLimit::new(launch.grant.max_output_bytes);
        let program = self.program(&launch, &cx.host, &secrets, &limit)?;
        let grace = Duration::from_secs(launch.grant.grace_seconds);
        let mut stop = StopRequests { run: cx.stop, limit: limit.clone(), grace };
        let child = tokio::select! {
            biased;
            // The party that asked knows why, and says so in the record.
            _ = stop.heard() => return Err(Reason::Cancelled { by: CancelledBy::Operator }),
            started = self.inner.processes.spawn_when_possible(program) => started,
        };
        let child = child.map_err(|error| match error.is_pressure() {
            true => Reason::NoRoom { message: error_chain(&error) },
            false => cannot_start(&error),
        })?;
        let clock = child.cpu();
        let resident = clock.clone();
        cx.cpu.measures(move || clock.read());
        cx.memory.measures(move || resident.resident());
        let Identity { pid, start_time } = child.identity();
        let boot = boot_id().map(BootId::from_u128);
        cx.host.started(Some(ProcessIdentity::new(pid, start_time).of_boot(boot)));

        let finished = child.wait(stop).await;
        for Stray { pid, name } in &finished.strays {
            cx.host.stray_ended(*pid, name.as_str());
        }
        let mut reason = match limit.broken() {
            Some(bytes) => Reason::OutputLimit { bytes },
            None => verdict::reason(&finished, &launch.ok_exit, &launch.grant),
        };
        let (answer, remarks) = (finished.stdout.total, finished.stderr.total);
        tracing::debug!(pid, reason = reason.code(), answer, remarks, "program ended");
        let diagnostics = match &finished.stderr.kept {
            Kept::Memory(stderr) if !reason.status().is_success() => {
                let text = diagnostics(stderr);
                text.map(|text| secrets.strike_out(&text).into_owned())
            }
            _ => None,
        };
        let output = match finished.stdout.kept {
            Kept::Memory(bytes) => answer::of_memory(bytes, launch.output),
            Kept::File(path) => {
                let format = launch.output;
                match tokio::task::spawn_blocking(move || answer::of_file(path, format)).await {
                    // The threads are being shut down, and this run is dropped with them.
                    Err(error) if error.is_cancelled() => std::future::pending().await,
                    read => read.expect("reading a file does not panic").unwrap_or_else(|error| {
                        reason = Reason::NotRecorded { message: format!("its output: {error}") };
                        Output::None
                    }),
                }
            }
        };
        Ok(Finished { output, diagnostics, ..Finished::of(reason) })
    }

    /// Returns the values that are not to be recorded in remarks of this run.
    fn secrets(&self, launch: &Launch) -> Secrets {
        Secrets::new(self.inner.chosen.iter().cloned().chain(launch.tickets()))
    }

    fn program(
        &self,
        launch: &Launch,
        host: &RunHost,
        secrets: &Secrets,
        limit: &OutputLimit,
    ) -> Result<Program, Reason> {
        let Inner { inherited, wrap, offshoot, tasks, .. } = &*self.inner;
        let Some(command) = launch.command.as_ref().filter(|command| !command.is_empty()) else {
            return Err(Reason::CannotStart { message: "no command was given".to_owned() });
        };
        let path = self.resolve(command, launch)?;
        let file = |what: &str, text: &str| {
            task_file(&launch.run_folder, text).map_err(|error| unwritten_file(what, &error))
        };
        let task = tasks.get(&launch.task, || file("its task file", &launch.task))?;
        let guidance = guidance(launch);
        let guidance_file = guidance.map(|text| file("its guidance", &text)).transpose()?;
        let trace = trace_json(launch).filter(|json| json.len() > TRACE_VARIABLE_BYTES);
        let trace_file = trace.map(|json| file("its trace", &json)).transpose()?;
        let said = |stream| SaidStream::new(host.clone(), stream, secrets.clone());
        let mut env = metered(launch, inherited.clone());
        let (guidance_file, trace_file) = (guidance_file.as_deref(), trace_file.as_deref());
        env.extend(environment::own(launch, &task, guidance_file, trace_file, offshoot.as_ref()));
        Ok(Program {
            args: wrap.iter().chain(command.iter()).skip(1).map(OsString::from).collect(),
            env,
            stdin: stdin(launch),
            stdout: Capture {
                keep: Keep::Whole {
                    memory: OUTPUT_BYTES,
                    // Of its own name: an earlier attempt of the run, whose supervisor was killed, may have left its file.
                    file: launch.spool_folder.join(format!(
                        "output-{}-{}",
                        launch.run,
                        Uuid::now_v7().simple()
                    )),
                    limit: limit.bytes,
                },
                tap: Some(limit.watch(signs::of_answer(host.clone(), said(Stream::Stdout)))),
            },
            stderr: Capture {
                keep: Keep::Last(DIAGNOSTIC_BYTES),
                tap: Some(signs::of_remarks(host.clone(), secrets.clone(), said(Stream::Stderr))),
            },
            limits: Limits {
                memory_bytes: launch.grant.max_memory_bytes,
                open_files: launch.grant.max_open_files,
                cpu_seconds: launch.grant.max_cpu_seconds,
            },
            ..Program::new(path, launch.working_folder.to_path_buf())
        })
    }

    /// The program's file, looked for once for all runs of one command in one folder.
    fn resolve(&self, command: &Arc<[String]>, launch: &Launch) -> Result<PathBuf, Reason> {
        let folder = &*launch.working_folder;
        let find = || Ok((folder.clone(), self.locate(command, folder)?));
        let not_found = |error: ProgramError| cannot_start(&error);
        let (known_folder, path) = self.inner.programs.get(command, find).map_err(not_found)?;
        if known_folder == *folder {
            return Ok(path);
        }
        self.locate(command, folder).map_err(not_found)
    }
}

fn stdin(launch: &Launch) -> Stdin {
    match &launch.input {
        Input::Empty => Stdin::Null,
        Input::Prompt => {
            let text = prompt(&launch.task, &launch.context, launch.context_manifest.as_deref());
            if text.is_empty() { Stdin::Null } else { Stdin::Bytes(text.into_bytes().into()) }
        }
        Input::Piece(range) => Stdin::Range {
            path: range.path.to_path_buf(),
            offset: range.offset,
            length: range.length,
        },
    }
}

/// Requests to stop, in the words of processes: from the engine, and from the limit of the output.
struct StopRequests {
    run: RunStop,
    limit: OutputLimit,
    grace: Duration,
}

impl StopSignal for StopRequests {
    async fn heard(&mut self) -> Stop {
        tokio::select! {
            biased;
            stop = self.run.heard() => match stop {
                offshoot_runtime::Stop::Soft { grace } => Stop::Soft { grace },
                offshoot_runtime::Stop::Firm => Stop::Firm,
            },
            () = self.limit.exceeded() => Stop::Soft { grace: self.grace },
        }
    }
}

fn cannot_start(error: &dyn std::error::Error) -> Reason {
    Reason::CannotStart { message: error_chain(error) }
}

/// Returns why a run ends whose file could not be written. A full disk says nothing about the program.
fn unwritten_file(what: &str, error: &io::Error) -> Reason {
    let message = format!("{what}: {error}");
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Reason::NotRecorded { message }
        }
        _ => Reason::CannotStart { message },
    }
}
