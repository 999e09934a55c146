//! A record that cannot be written at the moment, as on a full disk.
//!
//! ```text
//!   a write fails ──▶ nothing starts, nothing is told ──▶ it is tried again ──▶ written: on as before
//!                                                              │ for graceSeconds
//!                                                              ▼
//!                     all that runs is asked to stop ──▶ it is tried again ──▶ written: the tree ends with its record
//!                                                              │ until nothing runs
//!                                                              ▼
//!                                                         the record is broken
//! ```
//!
//! What runs goes on meanwhile, and what it does waits in the outbox. So no result is lost by a disk that is full for a
//! few seconds, and what is lost by one that stays full was never told.

use std::sync::Arc;
use std::time::Duration;

use offshoot_model::{Reason, Timestamp, error_chain};
use offshoot_store::StoreError;

use super::Supervisor;
use crate::machine::Input;
use crate::message::TreeState;

/// The time between two attempts. Nothing tells when a disk has space again; four attempts a second cost nothing beside
/// what waits for them.
const EVERY: Duration = Duration::from_millis(250);

/// Since when the record cannot be written.
#[derive(Debug)]
pub(super) struct Unwritten {
    since: Timestamp,
    /// The moment of the next attempt; none while one is on its way.
    next: Option<Timestamp>,
    /// True once all that runs was asked to stop.
    stopping: bool,
}

impl Unwritten {
    /// Returns the moment of the next attempt.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.next
    }
}

/// The time beside its grace that a stopped run may take: to be killed and reaped on a busy machine.
const LADDER: Duration = Duration::from_secs(2);

impl Supervisor {
    /// Events could not be written. Where that may pass, they are tried again.
    pub(super) fn not_written(&mut self, error: StoreError) {
        if !error.may_pass() {
            return self.broken(error);
        }
        let now = self.tree.clock.now();
        let next = Some(now.plus(EVERY));
        let Some(unwritten) = &mut self.unwritten else {
            tracing::error!(
                error = error_chain(&error),
                "record cannot be written, nothing starts"
            );
            self.unwritten = Some(Unwritten { since: now, next, stopping: false });
            self.state.send_replace(TreeState::Unwritten(Arc::new(error)));
            return self.step(Input::Hold(true));
        };
        unwritten.next = next;
        let patience = Duration::from_secs(self.machine.grace_seconds());
        // All that ran has been stopped and killed by then. What is left waits for its start to be written, and never starts.
        let is_late = now.since(unwritten.since) >= patience * 2 + LADDER;
        if unwritten.stopping && (self.machine.works() == 0 || is_late) {
            self.broken(error);
        } else if !unwritten.stopping && now.since(unwritten.since) >= patience {
            unwritten.stopping = true;
            let reason = Reason::NotRecorded { message: error_chain(&error) };
            self.step(Input::Stop { reason });
        }
    }

    /// Tries again.
    pub(super) fn write_again(&mut self) {
        if let Some(unwritten) = &mut self.unwritten {
            unwritten.next = None;
            self.outbox.append_again(&*self.tree.store);
        }
    }

    /// Events were written.
    pub(super) fn written(&mut self) {
        if self.unwritten.take().is_some() {
            tracing::info!("record is written again");
            self.state.send_replace(TreeState::Live);
            self.step(Input::Hold(false));
        }
    }
}
