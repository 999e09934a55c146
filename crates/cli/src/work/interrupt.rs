//! Ctrl-C: once asks everything to stop, twice kills it, a third time leaves at once.

use std::convert::Infallible;

use offshoot_spawner::Stopper;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::code::{FailureCode, NoteCode};
use crate::exit::{self, Exit};
use crate::failure::Failure;
use crate::output::Output;

/// The signals by which a terminal, a shell or a service manager asks us to stop.
#[derive(Debug)]
pub(crate) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    heard: u32,
}

/// The requests of the user to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interrupted {
    /// By a signal.
    Yes,
    /// No request: the tree ran to its end.
    No,
}

impl Interrupts {
    /// From here on these signals are ours.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let listen = |kind| {
            signal(kind).map_err(|error| {
                Failure::new(FailureCode::NoSignals, Exit::NoRuntime, "cannot listen for signals")
                .hint("the system has too few threads or descriptors left: end other programs, or raise `ulimit -n -u`")
                    .caused_by(Some(&error))
            })
        };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
            heard: 0,
        })
    }

    /// Passes what is heard on to the tree. Never ends by itself: select it beside the work.
    pub(crate) async fn pass_on(&mut self, stopper: &Stopper, output: Output) -> Infallible {
        loop {
            self.hear().await;
            self.tell(stopper, output);
        }
    }

    /// Waits for one signal, which counts as heard.
    pub(crate) async fn hear(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hang_up.recv() => {}
        }
        self.heard += 1;
    }

    /// Tells the tree what was heard last.
    pub(crate) fn tell(&self, stopper: &Stopper, output: Output) {
        match self.heard {
            0 => {}
            1 => {
                stopper.stop_all(false);
                output.note(NoteCode::Stopping, "stopping everything; once more kills it");
            }
            2 => {
                stopper.stop_all(true);
                output.note(NoteCode::Killing, "killing everything");
            }
            // The keeper ends the processes that are left.
            _ => exit::end(Exit::Interrupted),
        }
    }

    /// Returns the furthest request so far.
    pub(crate) const fn interrupted(&self) -> Interrupted {
        if self.heard > 0 { Interrupted::Yes } else { Interrupted::No }
    }
}
