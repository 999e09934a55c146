//! Runs that wait for memory of the computer.
//!
//! ```text
//!   in line, a slot is free ──▶ enough memory? ──yes──▶ starts
//!                                  │ not known: the supervisor looks, and tells
//!                                  └ no: waits until a run has ended, or the next look
//! ```
//!
//! One run may always run: where none holds a slot, the next one starts whatever is left.

use offshoot_model::EventKind;
use offshoot_policy::memory::{ASK_AGAIN, Gate, HostMemory};

use super::run::RunIndex;
use super::slots::Part;
use super::timer::Due;
use super::{Effect, Machine};

/// The wait for memory, as far as it is not on record.
#[derive(Debug, Default)]
pub(super) struct MemoryWait {
    /// True while a run waits, which is on record.
    pub(super) is_short: bool,
    /// The look of the supervisor at memory that it has not answered.
    look: Option<Look>,
    /// True once a timer is set for the next look.
    timed: bool,
    /// The answer to the last run that asked in this step: true if it waits.
    answer: Option<bool>,
}

/// A look at how much memory there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// At that of the computer: answered before anything else happens but what the supervisor has taken in already.
    Brief,
    /// At that of the processes of all live runs as well, beside the supervisor.
    Measured,
}

/// The memory of the computer, and that of the processes of live runs where they were measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemorySeen {
    pub(crate) memory: HostMemory,
    pub(crate) runs: Option<Vec<(RunIndex, u64)>>,
}

impl Machine {
    /// The supervisor can look at the memory of the computer: from here on runs wait for it, where the configuration keeps some.
    pub(crate) fn watch_memory(&mut self) {
        self.books.memory.keep(self.config.host().memory_keep());
    }

    /// Takes in how much memory there is; nothing where that could not be read, and then runs start.
    pub(super) fn memory_seen(&mut self, seen: Option<MemorySeen>) {
        self.memory_wait.look = None;
        let memory = HostMemory { total: 0, available: 0, stalled: None };
        let MemorySeen { memory, runs } = seen.unwrap_or(MemorySeen { memory, runs: None });
        let runs: Option<Vec<_>> =
            runs.map(|runs| runs.iter().map(|(run, bytes)| (self.id(*run), *bytes)).collect());
        self.books.memory.read(memory, runs.as_deref(), self.now);
    }

    /// Returns true if a run that has a slot may not start because memory is short, or because that is not known yet.
    pub(super) fn waits_for_memory(&mut self, run: RunIndex) -> bool {
        if !self.books.memory.is_kept() || self.slots.live() == 0 {
            return false;
        }
        let entry = &self.runs[run];
        let Some(live) = entry.live() else { return false };
        let gate = self.books.memory.gate(&entry.agent, live.memory, self.now);
        let waits = match gate {
            Gate::Open => false,
            Gate::Look { measure } => {
                if self.memory_wait.look.is_none() {
                    self.memory_wait.look =
                        Some(if measure { Look::Measured } else { Look::Brief });
                    self.out.push(Effect::LookAtMemory { measure });
                }
                true
            }
            Gate::Short(shortage) => {
                if !self.memory_wait.is_short {
                    self.record(RunIndex::ROOT, EventKind::MemoryShort(shortage));
                }
                if !std::mem::replace(&mut self.memory_wait.timed, true) {
                    self.timers.arm(self.now.plus(ASK_AGAIN), Due::Memory);
                }
                true
            }
        };
        self.memory_wait.answer = Some(waits);
        waits
    }

    /// Returns true if whichever run comes next in line waits: nothing has changed since the last one that asked.
    pub(super) fn is_known_to_wait_for_memory(&mut self) -> bool {
        let waits = self.books.memory.is_kept()
            && self.slots.live() > 0
            && (self.looks_at_memory() || self.books.memory.is_short())
            && self.queue.has_new(Part::TREE);
        if waits {
            self.memory_wait.answer = Some(true);
        }
        waits
    }

    /// Returns true while the supervisor looks how much memory there is.
    pub(super) fn looks_at_memory(&self) -> bool {
        self.memory_wait.look.is_some()
    }

    /// Returns true while the supervisor is about to say how much memory there is.
    pub(super) fn looks_briefly(&self) -> bool {
        self.memory_wait.look == Some(Look::Brief)
    }

    /// Returns true while runs wait for memory.
    pub(crate) fn is_memory_short(&self) -> bool {
        self.memory_wait.is_short
    }

    /// Reserves what a run will take that starts.
    pub(super) fn reserve_memory(&mut self, run: RunIndex) {
        let entry = &self.runs[run];
        if let Some(live) = entry.live() {
            self.books.memory.started(entry.id, &entry.agent, live.memory);
        }
    }

    /// The time has come to look again.
    pub(super) fn look_at_memory_again(&mut self) {
        self.memory_wait.timed = false;
        self.memory_wait.look = None;
        self.books.memory.forget_reading();
    }

    /// Returns true if runs stand in lines of accounts, and none works: the next one starts whatever is left of memory, although what comes first in the
    /// queue waits for something else.
    fn may_start_in_account_lines(&self) -> bool {
        let in_line = self.account_slots.in_line_count() + self.account_slots.returning();
        self.slots.live() == 0 && in_line > 0
    }

    /// All that may start has started: where no run waits for memory any more, that goes on record, and this returns true. `all_tried` is true if
    /// no run is left in line that has a slot.
    pub(super) fn memory_wait_over(&mut self, all_tried: bool) -> bool {
        let answer = self.memory_wait.answer.take();
        if !self.memory_wait.is_short || !self.is_open() {
            return false;
        }
        let is_over = match answer {
            Some(waits) => !waits,
            None => !self.books.memory.is_kept() || all_tried || self.may_start_in_account_lines(),
        };
        if is_over {
            self.record(RunIndex::ROOT, EventKind::MemoryEnough);
        }
        is_over
    }
}
