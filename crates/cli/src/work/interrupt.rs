//! Ctrl-C: once asks everything to stop, twice kills it, a third time leaves at once.

use std::pin::pin;

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

    /// Waits for work on a tree, and passes on to the tree what is heard meanwhile.
    pub(crate) async fn beside<T>(
        &mut self,
        work: impl Future<Output = T>,
        stopper: &Stopper,
        output: Output,
    ) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                () = self.hear() => self.tell(stopper, output),
            }
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

    /// True if the user has asked by a signal to stop; else the tree runs to its end.
    pub(crate) const fn interrupted(&self) -> bool {
        self.heard > 0
    }
}
