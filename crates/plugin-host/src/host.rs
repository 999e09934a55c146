//! Our side of the boundary: what plugins call. Nothing here blocks, and nothing here unwinds.

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use offshoot_plugin_abi::abi_stable::sabi_trait::TD_Opaque;
use offshoot_plugin_abi::abi_stable::std_types::{RResult, RStr, RString};
use offshoot_plugin_abi::async_ffi::FutureExt;
use offshoot_plugin_abi::wire::{
    NOTHING, delegate, event, group, offshoot, op, orphans, refused, spawn, turn, wait,
};
use offshoot_plugin_abi::{
    AbiError, Answer, Host, Host_TO, HostRef, Later, RunHost, RunHost_TO, RunHostRef,
    event as kinds,
};
use offshoot_process::{Adopted, Processes};
use offshoot_runtime::{Ruling, Secrets, StopSignal};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tracing::Span;

use crate::fields::Fields;

/// A line of a plugin for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLine<'a> {
    /// From 1 (error) to 5 (trace).
    pub level: u32,
    /// The part of the plugin.
    pub target: &'a str,
    /// The text.
    pub message: &'a str,
    /// A JSON object, or empty.
    pub fields_json: &'a str,
}

/// Takes what plugins say for the log. It must not block.
pub type Log = Arc<dyn Fn(LogLine<'_>) + Send + Sync>;

/// The parts of this process that plugins are given.
#[derive(Clone, Default)]
pub struct Surroundings {
    /// Takes what they log; nothing listens where absent.
    pub log: Option<Log>,
    /// Starts plugins that are programs. Its keeper ends the processes of plugins if this process is killed.
    pub processes: Option<Processes>,
    /// The path of the command `offshoot`, where this host is a part of it.
    pub offshoot: Option<PathBuf>,
    /// The environment of plugins that are programs.
    pub environment: Vec<(OsString, OsString)>,
}

/// The part of a plugin that tells what cannot be read.
pub(crate) const UNREADABLE: &str = "events";
/// Levels of the log.
const ERROR: u32 = 1;
const WARN: u32 = 2;
const INFO: u32 = 3;
const DEBUG: u32 = 4;
const TRACE: u32 = 5;

/// The host of one plugin, as it crosses. Its lines are logged within the span.
pub(crate) fn host(surroundings: Surroundings, span: Span) -> HostRef {
    Host_TO::from_value(PluginsHost { surroundings, span }, TD_Opaque)
}

/// The parts of the host of one run. The tools that it uses are told without these secrets. Ends of turns go to `turns`, where
/// there are some.
pub(crate) fn run_host(
    host: offshoot_runtime::RunHost,
    secrets: Secrets,
    stop: Option<StopSignal>,
    turns: Option<mpsc::UnboundedSender<TurnEnded>>,
    log: Option<Log>,
) -> Arc<RunsHost> {
    let home = Home(Handle::try_current().ok());
    Arc::new(RunsHost { host, secrets, stop, turns, log, home, span: Span::current() })
}

/// The host of one run, as it crosses. What crosses is small, because a plugin gives it back in a thread of its own: memory above
/// some hundred bytes that one thread takes and another gives back makes both wait in most allocators.
pub(crate) fn cross(host: &Arc<RunsHost>) -> RunHostRef {
    RunHost_TO::from_value(Crossing(Arc::clone(host)), TD_Opaque)
}

/// A turn of a run is over; the driver of the run rules how it goes on.
pub(crate) struct TurnEnded {
    pub(crate) ended: turn::Ended,
    pub(crate) reply: oneshot::Sender<Ruling>,
}

/// Writes a line to the log of the process and hands it to the caller's. What the caller makes of it is no concern of the plugin.
fn write(log: Option<&Log>, line: LogLine<'_>) {
    let LogLine { level, target: part, message: said, fields_json } = line;
    // Read where something listens. Text is escaped, so that a plugin can write no line of another.
    let fields = || Fields::read(fields_json).map(tracing::field::display);
    match level {
        0 | ERROR => tracing::error!(part, said, fields = fields(), "plugin says"),
        WARN => tracing::warn!(part, said, fields = fields(), "plugin says"),
        INFO => tracing::info!(part, said, fields = fields(), "plugin says"),
        DEBUG => tracing::debug!(part, said, fields = fields(), "plugin says"),
        _ => tracing::trace!(part, said, fields = fields(), "plugin says"),
    }
    hand_over(log, line);
}

/// Hands a line to the caller's log.
fn hand_over(log: Option<&Log>, line: LogLine<'_>) {
    if let Some(log) = log {
        let _ = catch_unwind(AssertUnwindSafe(|| log(line)));
    }
}

struct PluginsHost {
    surroundings: Surroundings,
    span: Span,
}

impl Host for PluginsHost {
    fn log(&self, level: u32, target: RStr<'_>, message: RStr<'_>, fields_json: RStr<'_>) {
        let line = LogLine {
            level,
            target: target.as_str(),
            message: message.as_str(),
            fields_json: fields_json.as_str(),
        };
        let _in = self.span.enter();
        write(self.surroundings.log.as_ref(), line);
    }

    fn call(&self, name: RStr<'_>, args_json: RStr<'_>) -> Answer {
        match name.as_str() {
            op::GROUP => caught(|| self.group(args_json.as_str())).into(),
            op::ORPHANS => caught(|| Ok(self.orphans())).into(),
            op::OFFSHOOT => {
                let path = self.surroundings.offshoot.as_deref();
                caught(|| offshoot::encode(path).map(RString::from)).into()
            }
            unknown => RResult::RErr(AbiError::unsupported(unknown)),
        }
    }
}

impl PluginsHost {
    fn group(&self, args_json: &str) -> Result<RString, AbiError> {
        let change = group::decode(args_json)?;
        let mut mark = None;
        if let Some(processes) = &self.surroundings.processes {
            match change {
                group::Change::Starting => mark = Some(processes.guest_starting()),
                group::Change::NotStarted => processes.guest_not_started(),
                group::Change::Started(leader) => processes
                    .guest_started(identity(leader))
                    .map_err(|error| AbiError::new(AbiError::UNAVAILABLE, error.to_string()))?,
                group::Change::Ended(leader) => processes.guest_ended(identity(leader)),
            }
        }
        Ok(group::encode_answer(mark).into())
    }
}

impl PluginsHost {
    fn orphans(&self) -> RString {
        let adopted = self.surroundings.processes.as_ref().and_then(Processes::guest_orphans);
        let adopted = adopted.map(|Adopted { pids, quiet }| orphans::Orphans { pids, quiet });
        orphans::encode_answer(adopted).into()
    }
}

fn identity(leader: offshoot_model::ProcessIdentity) -> offshoot_process::Identity {
    offshoot_process::Identity { pid: leader.pid, start_time: leader.start_time }
}

/// The parts of the host of one run.
pub(crate) struct RunsHost {
    pub(crate) host: offshoot_runtime::RunHost,
    secrets: Secrets,
    stop: Option<StopSignal>,
    /// No bound: a run has one turn at a time.
    turns: Option<mpsc::UnboundedSender<TurnEnded>>,
    log: Option<Log>,
    home: Home,
    /// The attempt of the run.
    span: Span,
}

struct Crossing(Arc<RunsHost>);

impl RunHost for Crossing {
    fn event(&self, kind: u32, payload: RStr<'_>) -> u32 {
        self.0.event(kind, payload)
    }

    fn spawn(&self, spec_json: RStr<'_>) -> Later {
        self.0.spawn(spec_json)
    }

    fn call(&self, name: RStr<'_>, args_json: RStr<'_>) -> Later {
        self.0.call(name, args_json)
    }
}

impl RunsHost {
    fn event(&self, kind: u32, payload: RStr<'_>) -> u32 {
        let _in = self.span.enter();
        let told = caught(|| {
            if let Some(told) = event::decode_without(&self.secrets, kind, payload.as_str())? {
                self.host.tell(told);
            }
            Ok(())
        });
        let line = |level, target, message| LogLine { level, target, message, fields_json: "" };
        match told {
            // The author of a plugin that looks for a mistake may want all of it.
            Ok(()) if kind == kinds::RAW => {
                // It holds prompts and answers.
                tracing::trace!(bytes = payload.len(), "vendor event");
                hand_over(self.log.as_ref(), line(TRACE, "vendor", payload.as_str()));
            }
            Ok(()) => {}
            // An event that cannot be read is lost, not the run.
            Err(error) => {
                let message = format!("an event of kind {kind} cannot be read: {}", error.message);
                write(self.log.as_ref(), line(WARN, UNREADABLE, &message));
            }
        }
        match self.stop.as_ref().and_then(StopSignal::requested) {
            Some(_) => kinds::PLEASE_STOP,
            None => kinds::GO_ON,
        }
    }

    fn spawn(&self, spec_json: RStr<'_>) -> Later {
        let (host, request) = (self.host.clone(), spawn::decode(spec_json.as_str()));
        let answer = async move {
            let answer = host.spawn(request?).await;
            Ok(spawn::encode_answer(answer).into())
        };
        self.home.later(answer)
    }

    fn call(&self, name: RStr<'_>, args_json: RStr<'_>) -> Later {
        match name.as_str() {
            op::WAIT => {
                let (host, order) = (self.host.clone(), wait::decode(args_json.as_str()));
                self.home.later(async move {
                    let answer = host.wait(order?).await.map_err(refused::encode)?;
                    Ok(wait::encode_answer(answer)?.into())
                })
            }
            op::DELEGATE => {
                let (host, order) = (self.host.clone(), delegate::decode(args_json.as_str()));
                self.home.later(async move {
                    let (request, choose_only) = order?;
                    let answer = host.delegate(request, choose_only).await;
                    Ok(delegate::encode_answer(answer.map_err(refused::encode)?).into())
                })
            }
            op::OBSERVED => {
                let (host, told) =
                    (self.host.clone(), delegate::decode_observed(args_json.as_str()));
                self.home.later(async move {
                    let (observation, success) = told?;
                    host.observed(observation, success).await.map_err(refused::encode)?;
                    Ok(NOTHING.into())
                })
            }
            op::TURN_ENDED => {
                let (turns, ended) = (self.turns.clone(), turn::decode(args_json.as_str()));
                self.home.later(async move {
                    Ok(turn::encode_answer(ruling(turns, ended?).await).into())
                })
            }
            unknown => {
                let unsupported = AbiError::unsupported(unknown);
                self.home.later(async { Err(unsupported) })
            }
        }
    }
}

/// Returns how a run goes on after a turn. Where nothing rules, it is over.
async fn ruling(turns: Option<mpsc::UnboundedSender<TurnEnded>>, ended: turn::Ended) -> Ruling {
    let (reply, answer) = oneshot::channel();
    let Some(turns) = turns else { return Ruling::End };
    if turns.send(TurnEnded { ended, reply }).is_err() {
        return Ruling::End;
    }
    tokio::select! {
        biased;
        ruling = answer => ruling.unwrap_or(Ruling::End),
        // What is sent while a channel is closed may stay in it, and nothing answers then.
        () = turns.closed() => Ruling::End,
    }
}

/// The place where our futures run: a plugin polls what crosses in threads of its own, for which our runtime does not exist.
struct Home(Option<Handle>);

impl Home {
    /// A future of ours as it crosses: a panic in it is an answer, and who no longer waits for it ends it.
    fn later(
        &self,
        answer: impl Future<Output = Result<RString, AbiError>> + Send + 'static,
    ) -> Later {
        let caught = futures_util::FutureExt::catch_unwind(AssertUnwindSafe(answer));
        let answer = async move { caught.await.unwrap_or_else(|panic| Err(panicked(&*panic))) };
        match &self.0 {
            Some(home) => {
                let task = AbortOnDrop(home.spawn(answer));
                FutureExt::into_ffi(async move { RResult::from(task.answer().await) })
            }
            None => FutureExt::into_ffi(async move { RResult::from(answer.await) }),
        }
    }
}

struct AbortOnDrop(JoinHandle<Result<RString, AbiError>>);

impl AbortOnDrop {
    async fn answer(mut self) -> Result<RString, AbiError> {
        let over = |_| Err(AbiError::new(AbiError::CANCELLED, "the host is ending"));
        (&mut self.0).await.unwrap_or_else(over)
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn caught<T>(work: impl FnOnce() -> Result<T, AbiError>) -> Result<T, AbiError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panicked(&*panic)))
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> AbiError {
    let text = panic_text(panic);
    AbiError::new(AbiError::PANICKED, format!("the host panicked: {text}"))
}

/// The words of a panic.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("with something that is no text")
}
