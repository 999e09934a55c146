//! A runtime of a plugin as an ordinary one.

use std::any::Any;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Either, OptionFuture};
use offshoot_model::{CancelledBy, Reason, Stream};
use offshoot_plugin_abi::abi_stable::std_types::RResult;
use offshoot_plugin_abi::wire::{finished, launch, op, turn};
use offshoot_plugin_abi::{AbiError, Outcome, RunRef, RuntimeRef};
use offshoot_runtime::{
    Abilities, Finished, Launch, Output, Ruling, RunContext, RunHost, Runtime, Secrets, Stop,
    StopSignal, Turns,
};
use tokio::sync::{mpsc, oneshot};

use crate::host::{Log, RunsHost, TurnEnded, cross, panic_text, run_host};
use crate::order::InOrder;
use crate::plugin::{Plugin, words};

/// The time after its grace for which a plugin may still take to say that a run is over. Then the run is dropped, which is the last
/// way to end it.
const LINGER: Duration = Duration::from_secs(5);

/// A runtime of a plugin. Cheap to clone.
#[derive(Clone)]
pub struct PluginRuntime {
    /// The plugin that the functions belong to.
    plugin: Arc<Plugin>,
    name: Arc<str>,
    abilities: Abilities,
    runtime: Arc<RuntimeRef>,
}

impl PluginRuntime {
    pub(crate) fn new(
        plugin: Arc<Plugin>,
        name: &str,
        abilities: Abilities,
        runtime: RuntimeRef,
    ) -> Self {
        Self { plugin, name: name.into(), abilities, runtime: Arc::new(runtime) }
    }

    /// The plugin behind it.
    pub fn plugin(&self) -> &Arc<Plugin> {
        &self.plugin
    }
}

impl Runtime for PluginRuntime {
    fn name(&self) -> &str {
        &self.name
    }

    fn abilities(&self) -> Abilities {
        self.abilities.clone()
    }

    fn start(&self, launch: Launch, cx: RunContext) -> BoxFuture<'static, Finished> {
        let (host, secrets) = (cx.host.clone(), secrets_of(&launch));
        let order = InOrder::of(cx.host);
        let cx = RunContext { host: RunHost::from(Arc::clone(&order)), ..cx };
        let linger = Some(LINGER);
        let log = self.plugin.log();
        let turns = self.abilities.turns;
        let run = carry(&self.runtime, launch, cx, secrets.clone(), turns, linger, log);
        async move {
            let finished = run.await;
            match &finished.output {
                Output::Text(text) => host.said_line(Stream::Stdout, &secrets.strike_out(text)),
                Output::Json(json) => {
                    host.said_line(Stream::Stdout, &secrets.strike_out(json.as_str()));
                }
                Output::None | Output::Bytes(_) | Output::File { .. } => {}
            }
            // A host is let go of before its run is over.
            drop(host);
            order.over(finished)
        }
        .boxed()
    }
}

/// Starts a run of a plugin's runtime and passes on what goes both ways, as it comes. Where the run does not end so long after its
/// grace, it is dropped.
pub(crate) fn carry(
    runtime: &RuntimeRef,
    launch: Launch,
    cx: RunContext,
    secrets: Secrets,
    takes_turns: bool,
    linger: Option<Duration>,
    log: Option<Log>,
) -> impl Future<Output = Finished> + Send + use<> {
    let spec = match launch::encode(launch) {
        Ok(spec) => spec,
        Err(error) => return Either::Left(std::future::ready(failed(&error))),
    };
    let RunContext { host, stop, turns, .. } = cx;
    let (turn_ended, further) = match takes_turns {
        true => {
            // No bound: a run has one turn at a time.
            let (tx, ends) = mpsc::unbounded_channel();
            (Some(tx), Some(Further { turns, ends }))
        }
        false => (None, None),
    };
    let host = run_host(host, secrets, Some(stop.clone()), turn_ended, log);
    let run = runtime.start(spec.as_str().into(), cross(&host));
    Either::Right(Drive { run, host, stop, further, linger }.finish())
}

/// The secrets of a run. Of what a plugin is given, the ticket alone is known to be one.
pub(crate) fn secrets_of(launch: &Launch) -> Secrets {
    Secrets::new(launch.tickets())
}

/// A run, and what is to be passed on to it. Dropping it drops the run, which ends it.
struct Drive {
    run: RunRef,
    /// Held for as long as the run: so the thread that made it gives its memory back.
    host: Arc<RunsHost>,
    stop: StopSignal,
    /// The parts for further turns, if it can take more than one.
    further: Option<Further>,
    /// The time for which it may go on after its grace. None waits without a limit.
    linger: Option<Duration>,
}

/// The sources of further turns: letters to the run, and its words that a turn is over.
struct Further {
    turns: Turns,
    ends: mpsc::UnboundedReceiver<TurnEnded>,
}

enum Heard {
    Letter(Arc<str>),
    TurnEnded(TurnEnded),
}

impl Drive {
    /// Waits for the outcome, and passes on requests to stop, letters, and what is ruled after a turn.
    async fn finish(self) -> Finished {
        let Self { run, host, mut stop, mut further, linger } = self;
        // A future of a plugin that panics panics here, where it is caught, and nowhere else.
        let mut outcome = AssertUnwindSafe(run.outcome()).catch_unwind();
        let mut over: OptionFuture<BoxFuture<'static, ()>> = None.into();
        let mut ruling: Option<(BoxFuture<'static, Ruling>, oneshot::Sender<Ruling>)> = None;
        loop {
            tokio::select! {
                biased;
                outcome = &mut outcome => return read(outcome),
                request = stop.heard() => {
                    let grace = match request {
                        Stop::Soft { grace } => grace,
                        Stop::Firm => Duration::ZERO,
                    };
                    tracing::debug!(grace_ms = grace.as_millis(), "plugin is asked to stop its run");
                    run.cancel(u64::try_from(grace.as_millis()).unwrap_or(u64::MAX));
                    let limit = linger.map(|linger| grace.saturating_add(linger));
                    over = limit.map(|limit| elapsed(limit).boxed()).into();
                }
                Some(heard) = heard(&mut further) => match heard {
                    Heard::Letter(text) => pass_on(&run, text),
                    Heard::TurnEnded(TurnEnded { ended, reply }) => {
                        let host = host.host.clone();
                        let turn::Ended { answer, letters_taken } = ended;
                        let ruled = async move { host.turn_ended(answer, letters_taken).await };
                        ruling = Some((ruled.boxed(), reply));
                    }
                },
                Some((ruled, reply)) = ruled(&mut ruling) => {
                    // Letters that are there already come before the prompt that the ruling makes.
                    while let Some(text) = further.as_mut().and_then(|further| further.turns.letter().now_or_never()) {
                        pass_on(&run, text);
                    }
                    // A run that has ended meanwhile asks no more.
                    let _ = reply.send(ruled);
                }
                Some(()) = &mut over => {
                    tracing::warn!("run of a plugin did not end in its grace, dropped");
                    drop(outcome);
                    drop(run);
                    let said = "the plugin did not say that the run was over, so it was dropped";
                    return Finished {
                        diagnostics: Some(said.to_owned()),
                        ..Finished::of(Reason::Cancelled { by: CancelledBy::Operator })
                    };
                }
            }
        }
    }
}

fn read(outcome: Result<RResult<Outcome, AbiError>, Box<dyn Any + Send>>) -> Finished {
    match outcome {
        Ok(RResult::ROk(outcome)) => {
            let finished = finished::decode(outcome).unwrap_or_else(|error| failed(&error));
            Finished { reason: as_it_may_say(finished.reason), ..finished }
        }
        Ok(RResult::RErr(error)) => failed(&error),
        Err(panic) => {
            tracing::error!("plugin panicked");
            let message = format!("it panicked: {}", panic_text(&*panic));
            Finished::of(Reason::PluginPanic { message })
        }
    }
}

/// A reason as a run may give it. What only the supervisor can know is no end of a run that came back by itself.
fn as_it_may_say(reason: Reason) -> Reason {
    match reason {
        Reason::Timeout { .. }
        | Reason::Idle { .. }
        | Reason::Repeated { .. }
        | Reason::Deadline
        | Reason::ParkLimit { .. }
        | Reason::Isolation { .. }
        | Reason::NeedFailed { .. }
        | Reason::PiecesFailed { .. }
        | Reason::MergeFailed { .. }
        | Reason::Interrupted
        | Reason::ClientGone => {
            let said = "the plugin says of its run what only the supervisor can know";
            let message = format!("{said}: {reason}");
            Reason::RuntimeError { message, retryable: false }
        }
        Reason::Completed { .. }
        | Reason::ExitCode { .. }
        | Reason::Signal { .. }
        | Reason::CannotStart { .. }
        | Reason::InputUnreadable { .. }
        | Reason::NoRoom { .. }
        | Reason::RuntimeError { .. }
        | Reason::PluginPanic { .. }
        | Reason::TurnLimit
        | Reason::Quota { .. }
        | Reason::Budget { .. }
        | Reason::BudgetPool { .. }
        | Reason::OutOfMemory { .. }
        | Reason::CpuLimit { .. }
        | Reason::OpenFileLimit { .. }
        | Reason::OutputLimit { .. }
        | Reason::SchemaMismatch { .. }
        | Reason::Cancelled { .. }
        | Reason::NotRecorded { .. } => reason,
    }
}

/// Hands a letter over. It is taken in before the call comes back; nothing waits for the answer.
fn pass_on(run: &RunRef, text: Arc<str>) {
    drop(run.call(op::LETTER.into(), turn::encode_letter(text).as_str().into()));
}

async fn heard(further: &mut Option<Further>) -> Option<Heard> {
    let Further { turns, ends } = further.as_mut()?;
    Some(tokio::select! {
        biased;
        Some(ended) = ends.recv() => Heard::TurnEnded(ended),
        letter = turns.letter() => Heard::Letter(letter),
    })
}

async fn ruled(
    ruling: &mut Option<(BoxFuture<'static, Ruling>, oneshot::Sender<Ruling>)>,
) -> Option<(Ruling, oneshot::Sender<Ruling>)> {
    let (ruled, _) = ruling.as_mut()?;
    let ruled = ruled.await;
    let (_, reply) = ruling.take()?;
    Some((ruled, reply))
}

async fn elapsed(limit: Duration) {
    #[expect(
        clippy::disallowed_methods,
        reason = "a grace is a length of time, not a wait for something to have happened"
    )]
    tokio::time::sleep(limit).await;
}

/// A run that came back as an error.
pub(crate) fn failed(error: &AbiError) -> Finished {
    let message = words(error);
    Finished::of(match error.known_code() {
        AbiError::PANICKED => Reason::PluginPanic { message },
        AbiError::CANCELLED => Reason::Cancelled { by: CancelledBy::Operator },
        AbiError::UNAVAILABLE => Reason::RuntimeError { message, retryable: true },
        _ => Reason::RuntimeError { message, retryable: false },
    })
}

impl fmt::Debug for PluginRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PluginRuntime")
            .field("name", &self.name)
            .field("plugin", &self.plugin)
            .finish_non_exhaustive()
    }
}
