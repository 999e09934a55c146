//! Invariants after every step, counted from the effects alone.

mod budget;
mod priming;
mod requests;
mod time;
mod walls;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use offshoot_model::{
    Account, Admitted, Cleanup, Event, EventKind, Need, OnNeedFailed, Origin, Reason, RetryOn,
    RootId, RunId, RunStatus, Timestamp,
};

use super::super::{Effect, Machine, RunIndex, WaitId};
use super::limits::{Limits, Own};
use priming::Primings;
use time::Stretch;
use walls::Walls;

/// The books that the test keeps beside the machine.
pub(super) struct Ledger {
    pub(super) root: RootId,
    limits: Limits,
    seq: u64,
    admitted: HashMap<RunId, Admitted>,
    ended: BTreeMap<RunId, RunStatus>,
    holding: BTreeSet<RunId>,
    /// Tokens that each run and everything below it has used.
    spent: HashMap<RunId, u64>,
    /// Runs in line that do not start before a budget is raised.
    at_cap: HashSet<RunId>,
    /// Runs whose service has not answered since it refused a call.
    backs_off: HashSet<RunId>,
    reported: HashMap<RunId, u64>,
    stopping: BTreeSet<RunId>,
    /// The runs whose results were handed over, each with whether its result arrived as far as is known.
    handed_over: BTreeMap<RunId, bool>,
    /// The runs that ever had a slot.
    started: BTreeSet<RunId>,
    /// The time for which each run has held a slot, and since when it holds one.
    held: HashMap<RunId, Stretch>,
    /// The time for which a supervisor held the tree.
    alive: Stretch,
    last_at: Timestamp,
    /// True as long as the clock was not set back.
    pub(super) clock_is_true: bool,
    /// The age of the tree at the end of the time that it was given when it was reopened.
    deadline: Option<Duration>,
    /// Runs that a new supervisor has not taken up again.
    interrupted: BTreeSet<RunId>,
    /// Runs that were admitted, or are to begin again, and have not started since.
    in_line: BTreeSet<RunId>,
    /// Tokens that a piece holds of the pool.
    drawn: HashMap<RunId, i64>,
    /// Tokens that the operator has added to a budget, or to one below it.
    added: HashMap<RunId, u64>,
    /// The number of further attempts of each run after a fault.
    retried: HashMap<RunId, u32>,
    /// The runs that have just gone over to another runtime, and whose next attempt stands not in line yet.
    falling: BTreeSet<RunId>,
    spawns: u32,
    /// All of the record.
    pub(super) events: Vec<Event>,
    pub(super) deepest: u32,
    /// The most that held a slot when one started.
    pub(super) most_holding: usize,
    /// The most that held one at any moment, those in debt included.
    pub(super) most_at_once: usize,
    /// The age of the tree when each run had its first child.
    first_child: HashMap<RunId, Duration>,
    /// The usage that each run had reported when its runtime panicked, in tokens.
    panicked: HashMap<RunId, u64>,
    /// The accounts of which a quota is used up.
    walls: Walls,
    /// The runs for whose first answer others wait.
    primings: Primings,
    /// True while runs wait for memory.
    memory_short: bool,
    short_pools: BTreeSet<RunId>,
    /// True while runs wait for a slot of the host.
    host_full: bool,
    /// The accounts that are bounded while this supervisor holds the tree.
    bounded: BTreeSet<Account>,
    /// The accounts of which runs wait for a slot.
    full_accounts: BTreeSet<Account>,
    /// The requests to models that are not over: the run of each, and the tokens that are held for it.
    requests: BTreeMap<u64, (RunId, u64)>,
    /// Numbers of events by their kind.
    pub(super) seen: BTreeMap<&'static str, u32>,
}

impl Ledger {
    pub(super) fn new(root: RootId, limits: Limits) -> Self {
        Self {
            root,
            limits,
            seq: 0,
            admitted: HashMap::new(),
            ended: BTreeMap::new(),
            holding: BTreeSet::new(),
            spent: HashMap::new(),
            at_cap: HashSet::new(),
            backs_off: HashSet::new(),
            reported: HashMap::new(),
            stopping: BTreeSet::new(),
            handed_over: BTreeMap::new(),
            started: BTreeSet::new(),
            held: HashMap::new(),
            alive: Stretch::default(),
            last_at: Timestamp::EPOCH,
            clock_is_true: true,
            deadline: None,
            interrupted: BTreeSet::new(),
            in_line: BTreeSet::new(),
            drawn: HashMap::new(),
            added: HashMap::new(),
            retried: HashMap::new(),
            falling: BTreeSet::new(),
            spawns: 0,
            events: Vec::new(),
            deepest: 0,
            most_holding: 0,
            most_at_once: 0,
            first_child: HashMap::new(),
            panicked: HashMap::new(),
            walls: Walls::default(),
            primings: Primings::default(),
            memory_short: false,
            short_pools: BTreeSet::new(),
            host_full: false,
            bounded: BTreeSet::new(),
            full_accounts: BTreeSet::new(),
            requests: BTreeMap::new(),
            seen: BTreeMap::new(),
        }
    }

    pub(super) fn note(&mut self, effect: &Effect, machine: &Machine) {
        match effect {
            Effect::Record(event) => {
                assert_eq!(event.root, self.root, "one_tree_one_supervisor");
                assert_eq!(event.seq, self.seq + 1, "kept events are numbered without gaps");
                self.seq = event.seq;
                self.count_time(event);
                self.recorded(event.run, event.at, &event.kind);
                self.last_at = event.at;
                self.events.push(Event::clone(event));
            }
            Effect::Start { run, .. } => {
                let id = machine.id(*run);
                assert!(
                    self.holding.contains(&id),
                    "what starts holds a slot, and that is on record"
                );
                assert!(self.admitted.contains_key(&id), "what starts was admitted");
                assert!(!self.stopping.contains(&id), "what was asked to stop does not start");
            }
            Effect::Ended { envelope, .. } => {
                let id = envelope.run_id;
                assert_eq!(self.ended.get(&id), Some(&envelope.status), "recorded before told");
            }
            Effect::Remove { run } => {
                let about = &self.admitted[run];
                assert_eq!(about.cleanup, Cleanup::Delete, "nothing goes that was to stay");
                let is_followed = about.origin == Origin::Piece && self.ended.contains_key(run);
                assert!(
                    is_followed || self.handed_over.contains_key(run),
                    "handed over, then removed"
                );
                *self.seen.entry("removed").or_default() += 1;
            }
            Effect::AskForProbe { account, .. } => self.asks_for_turn(account),
            Effect::ProbeOver { account, is_answered } => {
                self.gives_turn_back(account, *is_answered)
            }
            Effect::TellWall { .. }
            | Effect::TellPressure { .. }
            | Effect::Show(_)
            | Effect::Again { .. }
            | Effect::FallBack { .. }
            | Effect::Stop { .. }
            | Effect::Reply { .. }
            | Effect::NoTurn { .. }
            | Effect::Recorded { .. }
            | Effect::AnswerRequest { .. }
            | Effect::LookAtMemory { .. }
            | Effect::ClaimSlots(..)
            | Effect::Resolve { .. } => {}
        }
    }

    fn recorded(&mut self, run: RunId, at: Timestamp, kind: &EventKind) {
        let is_over = self.ended.contains_key(&run);
        let is_delivery =
            matches!(kind, EventKind::Delivered { .. } | EventKind::Undelivered { .. });
        let is_any_time = matches!(
            kind,
            EventKind::Reopened | EventKind::RootReopened(_) | EventKind::Removal { .. }
        );
        assert!(is_any_time || is_over == is_delivery, "what is over is delivered, no more");
        *self.seen.entry(kind.name()).or_default() += 1;
        self.count_at_once(run, kind);
        if matches!(kind, EventKind::Resumed { .. } | EventKind::Ended(_)) {
            self.backs_off.remove(&run);
        }
        match kind {
            EventKind::BacksOff { .. } => drop(self.backs_off.insert(run)),
            EventKind::Answered => {
                assert!(
                    self.backs_off.remove(&run),
                    "told once, of a run whose service refused a call"
                );
            }
            EventKind::BudgetRaised { tokens, .. } => {
                self.at_cap.clear();
                let mut at = Some(run);
                while let Some(run) = at {
                    *self.added.entry(run).or_default() += tokens;
                    at = self.admitted[&run].parent;
                }
            }
            EventKind::BudgetDrawn { tokens, .. } if *tokens > 0 => self.draw(run, *tokens),
            EventKind::Admitted(admitted) => {
                let depth = admitted.depth;
                assert!(depth <= self.limits.max_depth, "no run is deeper than the limit");
                self.deepest = self.deepest.max(depth);
                self.spawns += u32::from(admitted.origin == Origin::Agent);
                assert!(
                    self.spawns <= self.limits.max_spawns,
                    "agents spawn no more than the limit"
                );
                if let Some(parent) = admitted.parent {
                    let age = self.alive.until(at);
                    self.first_child.entry(parent).or_insert(age);
                }
                if let Some(instead) = admitted.instead {
                    assert_eq!(self.admitted[&instead].place, admitted.place, "in its place");
                    let before = self.ended.get(&instead);
                    assert!(before.is_some_and(|it| !it.is_success()), "no answer is made twice");
                    *self.seen.entry("runs again").or_default() += 1;
                }
                self.in_line.insert(run);
                let before = self.admitted.insert(run, (**admitted).clone());
                assert!(before.is_none(), "a run is admitted once");
            }
            EventKind::Parked { account, until, left, .. } => {
                self.park(account, (at, *until), left.is_some());
            }
            EventKind::Unparked { account } => self.unpark(account, at),
            EventKind::Paced { account, most } => self.pace(account, *most),
            EventKind::Priming { run: first, .. } => self.priming(*first, at),
            EventKind::Primed { run: first } => self.primed(*first, at),
            EventKind::MemoryShort(shortage) => {
                assert!(!self.holding.is_empty(), "one run may always run");
                assert!(shortage.is_short(), "it is short by its numbers");
                assert!(self.limits.memory_percent > 0, "memory is to be kept");
                assert!(!std::mem::replace(&mut self.memory_short, true), "told once");
            }
            EventKind::MemoryEnough => {
                assert!(std::mem::take(&mut self.memory_short), "what is over was told before");
            }
            EventKind::PoolShort { run: parent } => {
                let is_pooled = |run: &RunId| {
                    let admitted = &self.admitted[run];
                    admitted.parent == Some(*parent) && !admitted.grant.pooled.is_none()
                };
                assert!(self.in_line.iter().any(is_pooled), "one of its pieces stands in line");
                assert!(self.short_pools.insert(*parent), "told once");
            }
            EventKind::PoolEnough { run: parent } => {
                assert!(self.short_pools.remove(parent), "what is over was told before");
            }
            EventKind::HostFull => {
                assert!(self.limits.host_slots > 0, "the host bounds something");
                assert!(!std::mem::replace(&mut self.host_full, true), "told once");
            }
            EventKind::HostFree => {
                assert!(std::mem::take(&mut self.host_full), "what is over was told before");
            }
            EventKind::AccountBound { account, max_concurrent } => {
                assert_eq!(*max_concurrent, self.limits.account_slots, "as it is configured");
                assert!(self.bounded.insert(account.clone()), "told once by each supervisor");
            }
            EventKind::AccountFull { account } => {
                assert!(self.bounded.contains(account), "it is bounded");
                assert!(self.full_accounts.insert(account.clone()), "told once");
            }
            EventKind::AccountFree { account } => {
                assert!(self.full_accounts.remove(account), "what is over was told before");
            }
            EventKind::Starting => {
                self.assert_needs_are_over(run);
                self.assert_no_wall(run, at);
                self.assert_prompt_is_answered(run);
                self.assert_account_slot(run);
                assert!(!self.at_cap.contains(&run), "it waits for more budget");
                self.started.insert(run);
                self.in_line.remove(&run);
                let pooled = self.admitted[&run].grant.pooled.tokens;
                assert!(!pooled || self.granted(run) > Some(0), "it has its part as it starts");
                self.interrupted.remove(&run);
                let cap = self.limits.max_concurrent as usize;
                assert!(self.holding.len() < cap, "no run starts at the cap");
                let depth = self.admitted[&run].depth;
                let here =
                    self.holding.iter().filter(|id| self.admitted[id].depth == depth).count();
                let level_cap = self.limits.per_level.map_or(usize::MAX, |cap| cap as usize);
                assert!(here < level_cap, "no run starts on a full level");
                self.assert_caps_above(run);
                assert!(self.holding.insert(run), "a run starts once");
                self.most_holding = self.most_holding.max(self.holding.len());
            }
            EventKind::Waiting => assert!(self.holding.remove(&run), "only a holder lends"),
            EventKind::Returned => {
                assert!(self.holding.insert(run), "only what was lent comes back");
                let in_debt = self.holding.len() > self.limits.max_concurrent as usize;
                *self.seen.entry("in debt").or_default() += u32::from(in_debt);
            }
            EventKind::Stopping { .. } => {
                self.stopping.insert(run);
            }
            EventKind::Reopened => {
                self.holding.clear();
                self.bounded.clear();
                self.short_pools.clear();
                self.walls.clear_probes();
                self.primings.clear();
                // A part of the pool may be on record where the start is not.
                self.in_line.clone().into_iter().for_each(|run| self.return_to_pool(run));
                let lives = |run: &&RunId| !self.ended.contains_key(run);
                self.interrupted = self.admitted.keys().filter(lives).copied().collect();
            }
            EventKind::RootReopened(reopened) => {
                assert_eq!(run, self.root.run(), "ended runs stay ended, but for the root");
                assert!(self.ended.remove(&run).is_some(), "what is reopened was over");
                self.stopping.remove(&run);
                let time = reopened.deadline_seconds.map(Duration::from_secs);
                self.deadline = time.map(|time| self.alive.until(at) + time).or(self.deadline);
            }
            EventKind::Resumed { after: None, .. } => {
                self.falling.remove(&run);
                self.return_to_pool(run);
                self.in_line.insert(run);
                self.interrupted.remove(&run);
            }
            EventKind::FellBack { runtime, .. } => {
                self.primings.leave_out(run);
                self.fall_back(run, runtime);
            }
            EventKind::Resumed { after: Some(after), .. }
                if matches!(**after, Reason::Quota { .. }) =>
            {
                self.return_to_pool(run);
                self.in_line.insert(run);
                assert!(self.holding.remove(&run), "only what ran meets a wall");
                assert!(!self.stopping.contains(&run), "what is to stop has no further attempt");
                if !self.falling.remove(&run) {
                    self.stands_at_wall(run);
                }
            }
            EventKind::Resumed { after: Some(after), continues, .. }
                if matches!(**after, Reason::Budget { .. }) =>
            {
                assert!(self.limits.pauses_at_cap && *continues, "it goes on where it was");
                self.walls.over(run);
                self.return_to_pool(run);
                self.in_line.insert(run);
                self.at_cap.insert(run);
                assert!(self.holding.remove(&run), "only what ran has asked for too much");
                assert!(!self.stopping.contains(&run), "what is to stop has no further attempt");
                *self.seen.entry("waits at its cap").or_default() += 1;
            }
            EventKind::Resumed { after: Some(fault), .. } => {
                self.walls.over(run);
                let on: RetryOn = self.limits.retry_on.parse().expect("these are endings");
                let is_chosen = on.includes(fault);
                assert!(is_chosen || fault.is_retryable(), "nothing else is tried again");
                *self.seen.entry("tried again by choice").or_default() += u32::from(is_chosen);
                self.return_to_pool(run);
                self.in_line.insert(run);
                assert!(self.holding.remove(&run), "only what ran is tried again");
                let is_late = matches!(**fault, Reason::Timeout { .. } | Reason::Idle { .. });
                assert_eq!(self.stopping.remove(&run), is_late, "only for its own time");
                let is_falling = self.falling.remove(&run);
                let tried = self.retried.entry(run).or_default();
                *tried += u32::from(!is_falling);
                assert!(*tried <= self.limits.retries, "no more often than the limit");
                *self.seen.entry("retried").or_default() += 1;
            }
            EventKind::Delivered { redelivered, .. } => self.deliver(run, *redelivered),
            EventKind::Undelivered { .. } => self.give_up(run),
            EventKind::Used { usage, .. } => self.spend(run, usage),
            EventKind::RequestReserved { request, tokens, .. } => {
                self.reserve_request(run, *request, *tokens);
            }
            EventKind::RequestHeld { for_others: true, .. } => self.return_unused(run),
            EventKind::RequestSettled { request, ending, usage, .. } => {
                self.settle_request(run, *request, *ending, usage);
            }
            EventKind::Ended(ending) => {
                self.assert_panic_is_counted(run, ending);
                self.ends_at_wall(run, ending);
                self.assert_no_request_is_open(run);
                self.spend(run, &ending.usage);
                if !ending.usage.total().is_settled() {
                    self.spend_all(run);
                }
                self.holding.remove(&run);
                assert!(ending.status().is_terminal());
                if let Reason::NeedFailed { need } = &ending.reason {
                    assert!(!self.started.contains(&run), "what is skipped has not started");
                    let is_it = |it: &&Need| *it.name == **need;
                    let need = self.admitted[&run].needs.iter().find(is_it).expect("it needs it");
                    let found = need.run.map(|run| self.ended[&run].is_success());
                    assert_ne!(found, Some(true), "skipped for a run that completed");
                    *self.seen.entry("skipped").or_default() += 1;
                }
                *self.seen.entry(ending.status().into()).or_default() += 1;
                self.in_line.remove(&run);
                self.ended.insert(run, ending.status());
            }
            _ => {}
        }
    }

    /// Checks that everything a run needs is over when the run starts, and completed unless it may be missing.
    fn assert_needs_are_over(&mut self, run: RunId) {
        let Admitted { needs, on_need_failed, .. } = &self.admitted[&run];
        for need in needs {
            let found =
                need.run.map(|run| self.ended.get(&run).expect("it is not over").is_success());
            let is_there = found == Some(true);
            assert!(is_there || *on_need_failed == OnNeedFailed::Run, "started without an answer");
            let what = if is_there { "needed" } else { "ran without" };
            *self.seen.entry(what).or_default() += 1;
        }
    }

    /// Returns the limits that the agent of a run sets for the runs below it.
    fn own(&self, run: RunId) -> Own {
        self.limits.own(self.admitted[&run].agent.as_str())
    }

    /// The runs above one, but for the root.
    fn above(&self, run: RunId) -> impl Iterator<Item = RunId> {
        let parent = |run: &RunId| self.admitted[run].parent;
        std::iter::successors(parent(&run), parent).filter(|run| *run != self.root.run())
    }

    /// Nothing starts below an agent that says that too much runs there.
    fn assert_caps_above(&self, run: RunId) {
        let depth = self.admitted[&run].depth;
        for above in self.above(run) {
            let own = self.own(above);
            let below = self.holding.iter().filter(|id| self.above(**id).any(|id| id == above));
            let cap = |cap: Option<u32>| cap.map_or(usize::MAX, |cap| cap as usize);
            assert!(below.clone().count() < cap(own.max_concurrent), "no start at a cap above");
            let here = below.filter(|id| self.admitted[*id].depth == depth);
            assert!(here.count() < cap(own.per_level), "no start on a level full for a run above");
        }
    }

    /// A result goes to the session that asked for it while that lives; again only as a repetition.
    fn deliver(&mut self, run: RunId, again: bool) {
        assert!(self.listens(run), "told while the parent listens");
        let before = self.handed_over.insert(run, true);
        assert_eq!(before.is_some(), again, "no result is handed over twice as if it were new");
        *self.seen.entry("redelivered").or_default() += u32::from(again);
    }

    /// A result was not delivered: its parent is over or begins anew, or did not take the answer that the result was in.
    fn give_up(&mut self, run: RunId) {
        let before = self.handed_over.insert(run, false);
        assert_eq!(before, self.listens(run).then_some(true), "given up where no parent listens");
        *self.seen.entry("not taken").or_default() += u32::from(before.is_some());
    }

    fn listens(&self, run: RunId) -> bool {
        assert!(self.announces(run), "pieces are followed by their owner");
        let parent = self.admitted[&run].parent.expect("a root has no parent to tell");
        !self.ended.contains_key(&parent) && !self.interrupted.contains(&parent)
    }

    /// True if an agent asked for the run.
    fn announces(&self, run: RunId) -> bool {
        let admitted = &self.admitted[&run];
        admitted.origin == Origin::Agent && admitted.parent != Some(self.root.run())
    }

    fn count_at_once(&mut self, run: RunId, kind: &EventKind) {
        if let EventKind::Starting | EventKind::Returned = kind {
            let with_it = self.holding.len() + usize::from(!self.holding.contains(&run));
            self.most_at_once = self.most_at_once.max(with_it);
        }
    }

    pub(super) fn assert_step(
        &mut self,
        machine: &Machine,
        open_waits: &BTreeMap<WaitId, RunIndex>,
        now: Timestamp,
    ) {
        if self.clock_is_true {
            self.assert_timeouts(now);
        }
        assert_eq!(self.holding.len(), machine.active() as usize, "no slot leaked");
        assert_eq!(
            self.admitted.len() - self.ended.len(),
            machine.live(),
            "live is what is not over"
        );
        for &caller in open_waits.values() {
            let holds = self.holding.contains(&machine.id(caller));
            assert!(!holds, "a_waiting_parent_lends_its_slot");
        }
        for &run in self.holding.iter().filter(|run| !self.stopping.contains(run)) {
            let is_late = self.clock_is_true && self.is_out_of_time(run, now);
            assert!(!is_late, "it runs although the time of what is below one above it is over");
        }
        let in_parts = machine.slots.full().filter(|&part| machine.queue.has_new(part)).count();
        let held_up = machine.slots.any_free() && in_parts > 0;
        *self.seen.entry("held up below one").or_default() += u32::from(held_up);
        *self.seen.entry("held back").or_default() += u32::from(!machine.held_back.is_empty());
        self.assert_budgets(machine);
    }

    pub(super) fn assert_ended(&self) {
        assert_eq!(self.admitted.len(), self.ended.len(), "every run ends in exactly one state");
        let announced = self.admitted.keys().filter(|run| self.announces(**run)).count();
        assert_eq!(self.handed_over.len(), announced, "no result is lost");
    }

    pub(super) fn holding(&self, machine: &Machine) -> BTreeSet<RunIndex> {
        self.holding.iter().filter_map(|&id| machine.find(id)).collect()
    }

    pub(super) fn status(&self, run: RunId) -> Option<RunStatus> {
        self.ended.get(&run).copied()
    }

    /// Returns whether the result of a run was told to the session that asked for it; none where that is not decided yet.
    pub(super) fn told(&self, run: RunId) -> Option<bool> {
        self.handed_over.get(&run).copied()
    }

    pub(super) fn admitted(&self, run: RunId) -> &Admitted {
        &self.admitted[&run]
    }

    pub(super) fn count(&self, status: RunStatus) -> usize {
        self.ended.values().filter(|&&ended| ended == status).count()
    }
}
