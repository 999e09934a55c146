//! What is held for a run until its next wait or turn: results of its children, and letters.
//!
//! ```text
//!   child ends ──▶ held ──▶ a wait that it satisfies     ──▶ delivered
//!                    │ └──▶ the parent's next turn       ──▶ delivered
//!                    └────▶ the parent ends without it   ──▶ undelivered
//! ```
//!
//! Each result is handed over once, to the session that asked for the child. Asking again repeats the answer and
//! delivers nothing.

use std::sync::Arc;

use offshoot_model::{
    Cleanup, DeliveryId, EventKind, Payload, Refusal, RefusalCode, RunId, SessionKey, Timestamp,
};

use super::run::RunIndex;
use super::wait::{Wait, WaitId};
use super::{Effect, Machine};

/// The mail of one run.
#[derive(Debug, Default)]
pub(super) struct Mail {
    /// Children that have ended and of which it has not heard yet.
    results: Vec<(RunIndex, SessionKey)>,
    /// How many letters were put for it.
    letters: u32,
    /// The wait that stands for its next turn, while it is between two.
    turn: Option<WaitId>,
    /// Whether it was told that no turn follows.
    closed: bool,
}

/// A turn that is over.
#[derive(Debug)]
pub(crate) struct TurnEnd {
    pub(crate) run: RunIndex,
    /// Stands for the wait for the next turn.
    pub(crate) id: WaitId,
    pub(crate) answer: Option<Payload>,
    /// How many letters it had taken.
    pub(crate) letters_taken: u32,
}

/// A letter into a running session.
#[derive(Debug)]
pub(crate) struct Letter {
    pub(crate) to: RunIndex,
    /// Who wrote it: a session above; none for the operator.
    pub(crate) from: Option<RunId>,
    pub(crate) text: Payload,
}

impl Machine {
    /// Whether a run would read a letter.
    ///
    /// # Errors
    ///
    /// Where it is over, about to be, or runs something that reads none.
    pub(crate) fn may_write(&self, to: RunIndex) -> Result<(), Refusal> {
        let id = self.id(to);
        let Some(live) = self.runs[to.get()].live() else {
            return Err(Refusal::invalid("run", format!("the run {id} is over")));
        };
        if !live.takes_turns {
            let message = format!("the run {id} reads no messages: its runtime takes one prompt");
            return Err(Refusal::invalid("run", message));
        }
        if live.stopping.is_some() || live.mail.as_ref().is_some_and(|mail| mail.closed) {
            return Err(Refusal::new(
                RefusalCode::CallerEnded,
                format!("the run {id} is about to end"),
            ));
        }
        Ok(())
    }

    /// Puts a letter that [`Machine::may_write`] allowed. A run between two turns begins the next one for it.
    pub(super) fn letter(&mut self, now: Timestamp, letter: Letter, out: &mut Vec<Effect>) {
        let Letter { to, from, text } = letter;
        let Some(live) = self.runs[to.get()].live_mut() else { return };
        let mail = live.mail.get_or_insert_default();
        mail.letters += 1;
        let turn = mail.turn;
        self.record(now, to, EventKind::Letter { from, text }, out);
        out.push(Effect::Hand { run: to });
        if let Some(turn) = turn {
            self.satisfy(now, turn, out);
        }
    }

    /// A turn is over. Where nothing is held for the run, no child is pending and no letter is on its way, none follows.
    pub(super) fn turn_ended(&mut self, now: Timestamp, end: TurnEnd, out: &mut Vec<Effect>) {
        let TurnEnd { run, id, answer, letters_taken } = end;
        let children = self.children_to_hear_of(run);
        let Some(live) = self.runs[run.get()].live_mut() else {
            return out.push(Effect::NoTurn { wait: id });
        };
        live.clock.sign(now);
        let mail = live.mail.get_or_insert_default();
        let has_letters = mail.letters > letters_taken;
        if live.stopping.is_some() || (children.is_empty() && !has_letters) {
            mail.closed = true;
            return out.push(Effect::NoTurn { wait: id });
        }
        mail.turn = Some(id);
        self.record(now, run, EventKind::TurnEnded { answer }, out);
        self.open_wait(now, id, Wait::for_all(run, children), out);
        if has_letters {
            self.satisfy(now, id, out);
        }
    }

    /// A child has ended: its result is held for its parent, or reaches nobody.
    pub(super) fn hold_result(
        &mut self,
        now: Timestamp,
        child: RunIndex,
        key: SessionKey,
        out: &mut Vec<Effect>,
    ) {
        let entry = &self.runs[child.get()];
        let (id, parent) = (entry.id, entry.parent);
        match parent.and_then(|parent| self.runs[parent.get()].live_mut()) {
            Some(parent) => parent.mail.get_or_insert_default().results.push((child, key)),
            None => self.undelivered(now, child, &key, id, out),
        }
    }

    /// As [`Machine::hold_result`], for an end that stands in the record.
    pub(super) fn remember_result(&mut self, child: RunIndex, key: SessionKey) {
        let parent = self.runs[child.get()].parent;
        if let Some(parent) = parent.and_then(|parent| self.runs[parent.get()].live_mut()) {
            parent.mail.get_or_insert_default().results.push((child, key));
        }
    }

    /// The record says what came of this result.
    pub(super) fn forget_result(&mut self, child: RunIndex) {
        let parent = self.runs[child.get()].parent;
        let parent = parent.and_then(|parent| self.runs[parent.get()].live_mut());
        if let Some(mail) = parent.and_then(|parent| parent.mail.as_mut()) {
            mail.results.retain(|(run, _)| *run != child);
        }
    }

    /// A run is over, and what was held for it reaches nobody.
    pub(super) fn return_mail(
        &mut self,
        now: Timestamp,
        mail: Option<Box<Mail>>,
        out: &mut Vec<Effect>,
    ) {
        for (child, key) in mail.map(|mail| mail.results).unwrap_or_default() {
            let id = self.id(child);
            self.undelivered(now, child, &key, id, out);
        }
    }

    /// A wait of this run is being answered with these runs: what of it was held is delivered by that.
    pub(super) fn deliver(
        &mut self,
        now: Timestamp,
        wait: WaitId,
        to: RunIndex,
        ended: &[RunIndex],
        out: &mut Vec<Effect>,
    ) {
        let live = self.runs[to.get()].live_mut();
        let Some(mail) = live.and_then(|live| live.mail.as_mut()) else { return };
        if mail.turn == Some(wait) {
            mail.turn = None;
        }
        if mail.results.is_empty() {
            return;
        }
        let (delivered, held) =
            std::mem::take(&mut mail.results).into_iter().partition(|(run, _)| ended.contains(run));
        mail.results = held;
        let delivered: Vec<(RunIndex, SessionKey)> = delivered;
        for (child, key) in delivered {
            let delivery = DeliveryId::new(&key, self.id(child));
            let kind = EventKind::Delivered { delivery, redelivered: false };
            self.record(now, child, kind, out);
            self.clean_up(child, out);
        }
    }

    /// Children that live, and those whose results are held, in the order in which they were admitted.
    pub(super) fn children_to_hear_of(&self, run: RunIndex) -> Vec<RunIndex> {
        let entry = &self.runs[run.get()];
        let held = entry.live().and_then(|live| live.mail.as_ref()).map(|mail| &mail.results[..]);
        let is_held =
            |child: RunIndex| held.unwrap_or_default().iter().any(|(run, _)| *run == child);
        let lives = |child: RunIndex| self.runs[child.get()].live().is_some();
        self.own_children(run)
            .iter()
            .copied()
            .filter(|&child| lives(child) || is_held(child))
            .collect()
    }

    fn undelivered(
        &mut self,
        now: Timestamp,
        child: RunIndex,
        key: &SessionKey,
        id: RunId,
        out: &mut Vec<Effect>,
    ) {
        let delivery = DeliveryId::new(key, id);
        self.record(now, child, EventKind::Undelivered { delivery }, out);
        self.clean_up(child, out);
    }

    /// The result of a run was handed over, or nobody will ask for it: what else it leaves may go, where that was wished.
    /// It alone: what is below it has a wish of its own.
    pub(super) fn clean_up(&self, run: RunIndex, out: &mut Vec<Effect>) {
        let entry = &self.runs[run.get()];
        if entry.cleanup == Cleanup::Delete {
            out.push(Effect::Remove { run: entry.id });
        }
    }

    /// What came of that. Nothing else of the record would say that a folder stayed, or that it went at a later attempt.
    pub(super) fn removed(
        &mut self,
        now: Timestamp,
        run: RunId,
        error: Option<Arc<str>>,
        out: &mut Vec<Effect>,
    ) {
        let Some(run) = self.find(run) else { return };
        let before = std::mem::replace(&mut self.runs[run.get()].not_removed, error.is_some());
        if before || error.is_some() {
            self.record(now, run, EventKind::Removal { error }, out);
        }
    }
}
