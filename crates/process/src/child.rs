//! A running child, and the one wait for its end.

use std::pin::pin;
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::time::{Instant, sleep_until};

use crate::capture::Reader;
use crate::cgroup::BoundedGroup;
use crate::group::Group;
use crate::input::Input;
use crate::limits::{End, KillsBefore};
use crate::remains::Ended;
use crate::stop::{Ladder, Move};
use crate::{CpuClock, Exit, Finished, Identity, Limits, StopSignal};

/// A running child. Dropped, with or without its wait, it is killed with its whole group; a thread reaps it then.
#[derive(Debug)]
pub struct Child {
    pub(crate) group: Group,
    pub(crate) input: Input,
    pub(crate) stdout: Reader,
    pub(crate) stderr: Reader,
    pub(crate) limits: Limits,
    pub(crate) bounded: Option<BoundedGroup>,
    pub(crate) kills_before: KillsBefore,
}

impl Child {
    /// Returns the identity of the process. Its number is its group's too.
    pub fn identity(&self) -> Identity {
        self.group.known.identity
    }

    /// The CPU time of it and of everything that it starts.
    pub fn cpu(&self) -> CpuClock {
        self.group.cpu.clone()
    }

    /// The pipe into it, once, where it was started with [`Stdin::Pipe`](crate::Stdin::Pipe). Dropping the pipe closes
    /// it; so does [`wait`](Self::wait) where it was not taken.
    pub fn take_stdin(&mut self) -> Option<pipe::Sender> {
        match std::mem::replace(&mut self.input, Input::Done) {
            Input::Pipe(sender) => Some(sender),
            other => {
                self.input = other;
                None
            }
        }
    }

    /// Carries its input, reads its output and hears requests to stop, all at once, until it has ended; then ends whatever
    /// it left.
    ///
    /// A request that comes at the moment of the end finds it ended. However its streams are held open, this comes
    /// back: what is in them is taken, and no more is waited for.
    pub async fn wait(self, mut signal: impl StopSignal) -> Finished {
        let Self { group, input, mut stdout, mut stderr, limits, bounded, kills_before } = self;
        let cpu = (limits.cpu_seconds > 0).then(|| group.cpu.clone());
        let (process, pid) = (group.known.process, group.known.identity.pid);
        let mut ladder = Ladder::new(group.known.inner.options.end_limit);
        let mut input_error = None;
        let ended = {
            let carry = async {
                if let Input::Pump(mut pump) = input {
                    input_error = pump.run().await.err();
                }
            };
            let mut streams = pin!(async { tokio::join!(carry, stdout.run(), stderr.run()) });
            let mut streaming = true;
            loop {
                let deadline = ladder.deadline();
                // The order is the meaning: an end is seen before a request, and both before more is read.
                let step = tokio::select! {
                    biased;
                    () = group.leader_ended() => break true,
                    stop = signal.heard() => {
                        // The thread may hear of both at once, after it has been stopped itself.
                        if group.has_leader_ended() {
                            break true;
                        }
                        ladder.request(stop, Instant::now())
                    }
                    () = until(deadline) => Some(ladder.due(Instant::now())),
                    _ = &mut streams, if streaming => {
                        streaming = false;
                        None
                    }
                };
                let Some(step) = step else { continue };
                tracing::info!(pid, ?step, "process is stopped");
                match step {
                    Move::Ask => process.ask_group(),
                    Move::Kill => process.kill_group(),
                    Move::GiveUp => break false,
                }
            }
        };
        let ended = if ended { group.end().await } else { group.give_up() };
        let Ended { exit, stragglers, strays, lost } = ended;
        tracing::debug!(pid, ?exit, stragglers, lost, "process ended");
        let stop = ladder.rung();
        let stopped = stop.is_some();
        let cpu = cpu.map_or(Duration::ZERO, |cpu| cpu.read());
        let killed = matches!(exit, Exit::Signal(_) | Exit::Code(_)) && exit != Exit::Code(0);
        let memory_kills = killed
            && !stopped
            && (bounded.as_ref().is_some_and(BoundedGroup::has_killed) || kills_before.has_grown());
        let reached = limits.reached(&End { exit, stopped, cpu, memory_kills });
        // What is left of it goes before its output is waited for to the end.
        drop(bounded);
        let (stdout, stderr) = tokio::join!(stdout.finish(), stderr.finish());
        Finished { exit, reached, stop, stdout, stderr, input_error, stragglers, strays, lost }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
