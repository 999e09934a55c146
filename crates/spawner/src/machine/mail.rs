//! Mail of a run: results of its children, and letters, held until its next wait or turn.
//!
//! ```text
//!   child ends ──▶ held ──▶ a wait that it satisfies     ──▶ delivered
//!                    │ └──▶ the parent's next turn       ──▶ delivered
//!                    └────▶ the parent ends without it   ──▶ undelivered
//! ```
//!
//! Each result is handed over once, to the session that asked for the child. Asking again repeats the answer and
//! delivers nothing. A result is handed over again, and says so, where nothing shows that it arrived: the answer of a
//! wait that its caller never took, and what a run was told right before its supervisor died.

use std::collections::BTreeMap;
use std::sync::Arc;

use offshoot_model::{
    Cleanup, DeliveryId, EventKind, Payload, Refusal, RefusalCode, RunId, SessionKey,
};

use super::metered::Requests;
use super::run::RunIndex;
use super::wait::{Wait, WaitId};
use super::{Effect, Machine};

/// The mail of one run.
#[derive(Debug, Default)]
pub(super) struct Mail {
    /// Results of its children that it has not been told, by the child.
    pub(super) results: BTreeMap<RunIndex, PendingResult>,
    /// Results that it was told, while nothing shows that they arrived.
    told: Vec<SentResult>,
    /// The number of letters that were put for this attempt of the run.
    pub(super) letters: u32,
    /// The number of them that the attempt had taken when its last turn ended.
    taken: u32,
    /// The number of letters that earlier attempts had taken.
    taken_before: u32,
    /// The wait that stands for its next turn, while it is between two.
    turn: Option<WaitId>,
    /// True if the run was told that no turn follows.
    closed: bool,
}

/// A result that is held for the parent of its run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PendingResult {
    delivery: DeliveryId,
    /// True if the result was on its way before.
    pub(super) again: bool,
    /// True if the last turn that should have brought the result could not read it. It comes with the next turn or wait,
    /// and is no reason for a turn: it may never be readable again. A new supervisor does not know of this, and tries once
    /// more.
    unreadable: bool,
}

impl PendingResult {
    fn again(delivery: DeliveryId) -> Self {
        Self { delivery, again: true, unreadable: false }
    }
}

/// A result on its way.
#[derive(Debug)]
struct SentResult {
    child: RunIndex,
    delivery: DeliveryId,
    way: Way,
    /// The last request to a model that its parent had reserved by then. The answer to that or an earlier one proves nothing.
    after: u64,
}

/// The way on which a result is brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Recorded, and not on any way yet, or on that of a supervisor that has died.
    None,
    /// The answer of this wait, until its caller has it.
    Wait(WaitId),
    /// The turn that this wait stood for. The run's next act acknowledges it.
    Turn(WaitId),
}

impl Way {
    fn is_of(self, wait: WaitId) -> bool {
        self == Self::Wait(wait) || self == Self::Turn(wait)
    }
}

impl Mail {
    /// Returns the results that are held and of which the record does not say yet that they were not delivered.
    pub(super) fn held(&self) -> Vec<(RunIndex, DeliveryId)> {
        let first = self.results.iter().filter(|(_, held)| !held.again);
        first.map(|(&child, held)| (child, held.delivery.clone())).collect()
    }

    /// A turn has ended in which the attempt had taken so many letters; earlier versions did not record how many.
    pub(super) fn turn_recorded(&mut self, taken: Option<u32>) {
        self.taken = taken.map_or(self.letters, |taken| taken.min(self.letters));
    }

    /// Puts letters again for another attempt: those that the last one had not taken, or all for one that begins anew.
    pub(super) fn another_attempt(mut self: Box<Self>, continues: bool) -> Option<Box<Self>> {
        let (unread, read) = (self.letters - self.taken, self.taken_before + self.taken);
        if continues {
            (self.letters, self.taken, self.taken_before) = (unread, 0, read);
            return Some(self);
        }
        let letters = unread + read;
        (letters > 0).then(|| Box::new(Self { letters, ..Self::default() }))
    }

    /// True if the mail holds nothing but results of children, which wait for the next turn of this or any later attempt.
    pub(super) fn is_undisturbed(&self) -> bool {
        self.letters == 0 && self.turn.is_none() && !self.closed
    }

    /// True if nothing was ever written or told to the run.
    pub(super) fn is_empty(&self) -> bool {
        self.is_undisturbed()
            && self.taken_before == 0
            && self.results.is_empty()
            && self.told.is_empty()
    }
}

/// A turn that is over.
#[derive(Debug)]
pub(crate) struct TurnEnd {
    pub(crate) run: RunIndex,
    /// Stands for the wait for the next turn.
    pub(crate) id: WaitId,
    pub(crate) answer: Option<Payload>,
    /// The number of letters that the run had taken.
    pub(crate) letters_taken: u32,
    /// True if another turn follows although nothing is held for the run: its answer has not the form that was asked for.
    pub(crate) again: bool,
}

/// A letter into a running session.
#[derive(Debug)]
pub(crate) struct Letter {
    pub(crate) to: RunIndex,
    /// The session above that wrote the letter; none for the operator.
    pub(crate) from: Option<RunId>,
    pub(crate) text: Payload,
}

impl Machine {
    /// Checks that a run would read a letter.
    ///
    /// # Errors
    ///
    /// Fails if it is over, about to be, or runs something that reads none.
    pub(crate) fn may_write(&self, to: RunIndex) -> Result<(), Refusal> {
        let id = self.id(to);
        let Some(live) = self.runs.live(to) else {
            return Err(Refusal::invalid("run", format!("the run {id} is over"))
                .with_hint("a run that is over reads nothing more: ask for a new one"));
        };
        if !live.takes_turns {
            let message = format!("the run {id} reads no messages: its runtime takes one prompt");
            return Err(Refusal::invalid("run", message).with_hint(
                "say it in the task of a new run; models behind Claude Code and chat endpoints read messages",
            ));
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
    pub(super) fn letter(&mut self, letter: Letter) {
        let Letter { to, from, text } = letter;
        let Some(live) = self.runs.live(to) else { return };
        let turn = live.mail.as_ref().and_then(|mail| mail.turn);
        self.record(to, EventKind::Letter { from, text });
        self.out.push(Effect::Recorded { at: self.now });
        if let Some(turn) = turn {
            self.satisfy(turn);
        }
    }

    /// A turn is over. Where nothing is held for the run, no child is pending and no letter is on its way, none follows, unless the
    /// run is to answer again.
    pub(super) fn turn_ended(&mut self, end: TurnEnd) {
        let TurnEnd { run, id, answer, letters_taken, again } = end;
        let children = self.children_to_hear_of(run);
        if self.runs.running(run).is_none() {
            return self.out.push(Effect::NoTurn { wait: id });
        }
        self.shows_success(run);
        let live = self.runs.live_mut(run).expect("what runs is live");
        live.clock.sign(self.now);
        let mail = live.mail.get_or_insert_default();
        let has_letters = mail.letters > letters_taken;
        let is_news = |child: &RunIndex| mail.results.get(child).is_none_or(|it| !it.unreadable);
        let has_news = has_letters || children.iter().any(is_news);
        if live.stopping.is_some() || !has_news && !again {
            mail.closed = true;
            return self.out.push(Effect::NoTurn { wait: id });
        }
        mail.turn = Some(id);
        let letters_taken = Some(letters_taken);
        self.record(run, EventKind::TurnEnded { answer, letters_taken });
        self.open_wait(id, Wait::for_all(run, children));
        if has_letters {
            self.satisfy(id);
        }
    }

    /// Holds the result of a child that has ended for its parent; answers whether that is there.
    pub(super) fn remember_result(&mut self, child: RunIndex, key: &SessionKey) -> bool {
        let delivery = DeliveryId::new(key, self.id(child));
        let Some(mail) = self.mail_of_parent(child) else { return false };
        mail.results.insert(child, PendingResult { delivery, again: false, unreadable: false });
        true
    }

    fn mail_of_parent(&mut self, child: RunIndex) -> Option<&mut Mail> {
        let parent = self.runs[child].parent?;
        let parent = self.runs.live_mut(parent)?;
        Some(parent.mail.get_or_insert_default())
    }

    fn mail_mut(&mut self, run: RunIndex) -> Option<&mut Mail> {
        self.runs.live_mut(run)?.mail.as_deref_mut()
    }

    /// A result was handed over: to a wait, or to a turn.
    pub(super) fn handed_over(&mut self, child: RunIndex) {
        let parent = self.runs[child].parent;
        let live = parent.and_then(|parent| self.runs.live(parent));
        let after = live.and_then(|live| live.requests.as_deref()).map_or(0, Requests::last);
        let Some(mail) = self.mail_of_parent(child) else { return };
        if let Some(PendingResult { delivery, .. }) = mail.results.remove(&child) {
            mail.told.push(SentResult { child, delivery, way: Way::None, after });
        }
    }

    /// A result was not delivered: its parent is over or begins anew, or the caller of a wait did not
    /// take the answer that the result was in.
    pub(super) fn was_undelivered(&mut self, child: RunIndex, delivery: &DeliveryId) {
        let Some(mail) = self.mail_of_parent(child) else { return };
        if mail.results.remove(&child).is_none() {
            mail.told.retain(|told| told.child != child);
            mail.results.insert(child, PendingResult::again(delivery.clone()));
        }
    }

    /// Takes an act of a run on the record as proof that it has what its last turn brought.
    pub(super) fn acknowledge(&mut self, run: RunIndex, kind: &EventKind) {
        let acts = match kind {
            EventKind::Admitted(_) => self.runs[run].parent,
            EventKind::Refused { .. }
            | EventKind::Used { .. }
            | EventKind::TurnEnded { .. }
            | EventKind::Kept { .. }
            | EventKind::ObservationOpened { .. }
            | EventKind::ObservationClosed { .. }
            | EventKind::Reported { .. } => Some(run),
            EventKind::RequestSettled { ending, request, .. } if ending.is_answered() => {
                if let Some(mail) = self.mail_mut(run) {
                    let is_open = |told: &SentResult| told.after >= *request;
                    mail.told.retain(|told| matches!(told.way, Way::Wait(_)) || is_open(told));
                }
                None
            }
            // The others are done to it, not by it; and a run whose slot comes back hears after that.
            _ => None,
        };
        if let Some(run) = acts {
            self.has_heard(run);
        }
    }

    /// A run has what its last turn brought.
    pub(super) fn has_heard(&mut self, run: RunIndex) {
        if let Some(mail) = self.mail_mut(run) {
            mail.told.retain(|told| matches!(told.way, Way::Wait(_)));
        }
    }

    /// A run goes on after its supervisor died: what nothing shows to have arrived is told again.
    pub(super) fn tell_again(&mut self, run: RunIndex) {
        let Some(mail) = self.mail_mut(run) else { return };
        for SentResult { child, delivery, .. } in std::mem::take(&mut mail.told) {
            mail.results.insert(child, PendingResult::again(delivery));
        }
    }

    /// The caller of this wait has the answer.
    pub(super) fn wait_taken(&mut self, id: WaitId) {
        if let Some(mail) = self.delivery_over(id).and_then(|run| self.mail_mut(run)) {
            mail.told.retain(|told| told.way != Way::Wait(id));
        }
    }

    /// The caller of this wait had gone when the answer came, or did not take it in time: the run's next wait or turn brings what was in it.
    pub(super) fn not_taken(&mut self, run: RunIndex, id: WaitId) {
        let Some(mail) = self.mail_mut(run) else { return };
        let told = mail.told.iter().filter(|told| told.way.is_of(id));
        let told: Vec<_> = told.map(|told| (told.child, told.delivery.clone())).collect();
        for (child, delivery) in told {
            self.record(child, EventKind::Undelivered { delivery });
        }
    }

    /// A turn did not bring the results of these children. One that the run has answered to meanwhile named them, and they
    /// can be asked for.
    pub(super) fn not_brought(&mut self, run: RunIndex, children: &[RunId]) {
        for child in children {
            let child = self.find(*child);
            let (Some(child), Some(mail)) = (child, self.mail_mut(run)) else { continue };
            let is_it =
                |told: &&SentResult| told.child == child && !matches!(told.way, Way::Wait(_));
            let Some(told) = mail.told.iter().find(is_it) else { continue };
            let delivery = told.delivery.clone();
            self.record(child, EventKind::Undelivered { delivery });
            let held = self.mail_mut(run).and_then(|mail| mail.results.get_mut(&child));
            held.expect("a result that was not delivered is not held").unreadable = true;
        }
    }

    /// Records that what was held for a run is not delivered: the run is over, or begins anew.
    pub(super) fn return_mail(&mut self, held: Option<Vec<(RunIndex, DeliveryId)>>) {
        for (child, delivery) in held.into_iter().flatten() {
            self.undelivered(child, delivery);
        }
    }

    /// A wait of this run is being answered with these runs: what of it was held is delivered by that. Answers which of them
    /// were on their way before.
    pub(super) fn deliver(&mut self, wait: WaitId, to: RunIndex, ended: &[RunIndex]) -> Vec<RunId> {
        let is_turn = self.turn_is_over(to, wait);
        let (mut repeated, mut is_told) = (Vec::new(), false);
        for &child in ended {
            let held = self.mail_mut(to).and_then(|mail| mail.results.get(&child));
            let Some(PendingResult { delivery, again, .. }) = held.cloned() else { continue };
            is_told = true;
            self.record(child, EventKind::Delivered { delivery, redelivered: again });
            let told = self.mail_mut(to).and_then(|mail| mail.told.last_mut());
            let way = if is_turn { Way::Turn(wait) } else { Way::Wait(wait) };
            told.expect("a result that was delivered was not told").way = way;
            match again {
                true => repeated.push(self.id(child)),
                false => self.clean_up(child),
            }
        }
        if is_told {
            self.delivery_begins(wait, to);
        }
        repeated
    }

    /// True if this wait stood for the next turn of this run, which it does no longer.
    pub(super) fn turn_is_over(&mut self, run: RunIndex, wait: WaitId) -> bool {
        let mail = self.mail_mut(run);
        mail.is_some_and(|mail| mail.turn.take_if(|turn| *turn == wait).is_some())
    }

    /// Children that live, and those whose results are held, in the order in which they were admitted. Those of which the run
    /// has heard are not looked at: one that asks for children again and again has many of them.
    pub(super) fn children_to_hear_of(&self, run: RunIndex) -> Vec<RunIndex> {
        let Some(live) = self.runs.live(run) else { return Vec::new() };
        let Some(&first) = self.own_children(run).first() else { return Vec::new() };
        let held = live.mail.iter().flat_map(|mail| mail.results.range(first..));
        let held = held.map(|(&child, _)| child);
        let mut children: Vec<RunIndex> =
            live.live_children.range(first..).copied().chain(held).collect();
        children.sort_unstable();
        children
    }

    pub(super) fn undelivered(&mut self, child: RunIndex, delivery: DeliveryId) {
        self.record(child, EventKind::Undelivered { delivery });
        self.clean_up(child);
    }

    /// The result of a run was handed over, or will not be asked for: what else it leaves may go, where that was wished.
    /// It alone: what is below it has a wish of its own.
    pub(super) fn clean_up(&mut self, run: RunIndex) {
        let entry = &self.runs[run];
        if entry.cleanup == Cleanup::Delete {
            self.out.push(Effect::Remove { run: entry.id });
        }
    }

    /// Records that the folder of a run could not be removed, or was removed at a later attempt.
    pub(super) fn removed(&mut self, run: RunId, error: Option<Arc<str>>) {
        let Some(run) = self.find(run) else { return };
        if self.runs[run].not_removed || error.is_some() {
            self.record(run, EventKind::Removal { error });
        }
    }
}
