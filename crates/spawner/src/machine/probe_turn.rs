//! One probe of an account over all trees of the user: a tree whose account is due takes its turn before one of its runs starts.
//!
//! ```text
//!   the reset ──▶ asks ──▶ waits ──┬─ its turn ─────────────▶ one run starts ──answered, or over──▶ the next tree has the turn
//!                                  ├─ another was answered ─▶ the account is open
//!                                  └─ a minute is over ─────▶ one run starts without the turn
//! ```
//!
//! A turn with which nothing can be started, because the tree is paused or memory is short, goes to the next tree in the step that takes it. It
//! stays while a run waits for a slot of the host or of the account, or for a look at the memory of the computer: it starts when that is
//! answered.

use std::collections::BTreeMap;
use std::time::Duration;

use offshoot_model::{Account, Timestamp};

use super::timer::Due;
use super::{Effect, Machine};

/// The longest wait for a turn: the tree that has it may be stopped, or its run may hang.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// The turns of a tree among those of the user.
#[derive(Debug, Default)]
pub(super) struct ProbeTurns {
    /// True if there are other trees that take turns with this one.
    are_shared: bool,
    turns: BTreeMap<Account, Turn>,
}

/// The turn of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// The tree has asked for it, and waits until this moment.
    Asked(Timestamp),
    /// The tree has it.
    Taken {
        /// True if the run that was started with it was answered.
        is_answered: bool,
    },
}

impl Machine {
    /// The trees of the user take turns: from here on a run probes only where its tree has the turn of its account.
    pub(crate) fn share_probes(&mut self) {
        self.probe_turns.are_shared = true;
    }

    /// Returns true if a run that would probe its account may not start, because another tree may. The tree asks for its turn.
    pub(super) fn waits_for_probe_turn(&mut self, account: &Account) -> bool {
        if !self.probe_turns.are_shared {
            return false;
        }
        match self.probe_turns.turns.get(account) {
            Some(Turn::Taken { .. }) => false,
            Some(Turn::Asked(until)) => self.now < *until,
            None => {
                let since = self.books.quotas.wall(account).map(|wall| wall.since);
                let since = since.expect("an account that is probed has a wall");
                let until = self.now.plus(PATIENCE);
                self.probe_turns.turns.insert(account.clone(), Turn::Asked(until));
                self.timers.arm(until, Due::Reconsider);
                self.out.push(Effect::AskForProbe { account: account.clone(), since });
                true
            }
        }
    }

    /// Takes in that it is the turn of this tree to probe an account. `is_answered` is true if another tree was answered since this one was parked.
    pub(super) fn takes_probe_turn(&mut self, account: Account, is_answered: bool) {
        let wall = self.books.quotas.wall(&account);
        let is_due = wall.is_some_and(|wall| wall.until <= self.now && !wall.has_probe());
        if is_answered && is_due && self.is_open() {
            self.unpark(account.clone());
            self.goes_on_slowly(&account);
        }
        self.probe_turns.turns.insert(account, Turn::Taken { is_answered: false });
        self.reconsider();
    }

    /// The run that probes this account was answered.
    pub(super) fn probe_is_answered(&mut self, account: &Account) {
        if let Some(turn @ Turn::Taken { .. }) = self.probe_turns.turns.get_mut(account) {
            *turn = Turn::Taken { is_answered: true };
        }
    }

    /// Gives back the turns that are not used: nothing has started with them, or what has is answered or over.
    pub(super) fn give_back_probe_turns(&mut self) {
        if self.probe_turns.turns.is_empty() {
            return;
        }
        // A run could start but for that, and will.
        let waits = self.waits_for_host() || self.looks_at_memory();
        let starts_none = self.starts_none();
        let mut turns = std::mem::take(&mut self.probe_turns.turns);
        turns.retain(|account, turn| {
            let Turn::Taken { is_answered } = *turn else { return true };
            let waits_for_slot =
                |account| waits || !starts_none && self.account_slots.waits(account);
            let wall = self.books.quotas.wall(account);
            let is_due = wall.is_some_and(|wall| wall.until <= self.now);
            let is_used =
                wall.is_some_and(|wall| wall.has_probe()) || is_due && waits_for_slot(account);
            if !is_used {
                self.out.push(Effect::ProbeOver { account: account.clone(), is_answered });
            }
            is_used
        });
        self.probe_turns.turns = turns;
    }
}
