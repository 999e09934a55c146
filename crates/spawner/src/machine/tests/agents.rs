//! Acts of the agents of a world.

use std::collections::BTreeSet;
use std::time::Duration;

use offshoot_model::{Account, CancelledBy, Reason};
use offshoot_runtime::WaitMode;

use super::super::{Reach, RunIndex, WaitId};
use super::world::World;

/// A fault that may be gone the next time.
pub(super) const OVERLOADED: Reason =
    Reason::RuntimeError { message: String::new(), retryable: true };

#[derive(Clone, Copy, Debug)]
pub(super) enum Behaviour {
    /// Nothing: the test says what happens.
    Quiet,
    /// Each spawns one child and waits for it, to this depth.
    Chain(u32),
    /// Random acts, by the seed.
    Random,
}

/// State of a run that was started, as the world knows it.
#[derive(Debug, Default)]
pub(super) struct Actor {
    pub(super) waits: BTreeSet<WaitId>,
    /// True if the run goes on as soon as one of its waits is answered, and gives up the others.
    pub(super) takes_any: bool,
    pub(super) spawned: u32,
    /// Letters that were handed to it, each of which it takes at once.
    pub(super) letters: u32,
    /// True if the run was told that no turn follows, so that it can only end.
    pub(super) over: bool,
    /// Tokens, as it reports them.
    pub(super) used: u64,
}

impl World {
    /// Lets things happen until nothing is alive; fails when nothing can happen any more before that.
    pub(super) fn run_to_the_end(&mut self) {
        if let Behaviour::Chain(_) = self.behaviour {
            self.spawn_piece();
        }
        let mut steps = 0_u32;
        while self.machine.live() > 0 {
            steps += 1;
            assert!(steps < 200_000, "the tree does not come to an end");
            if !self.something_happens() {
                let timer = self.machine.next_timer();
                let at = timer.expect("a run lives, none runs and no timer is set: locked up");
                self.jump(at);
            }
        }
        self.assert_ended();
    }

    /// One thing happens, or time passes.
    pub(super) fn live_a_little(&mut self) {
        if self.machine.live() > 0
            && !self.something_happens()
            && let Some(at) = self.machine.next_timer()
        {
            self.jump(at);
        }
    }

    fn something_happens(&mut self) -> bool {
        let can_act = |run: &RunIndex| self.actors[run].waits.is_empty() || self.is_stopping(*run);
        let awake: Vec<RunIndex> = self.actors.keys().copied().filter(can_act).collect();
        if self.pieces_left > 0 && (awake.is_empty() || self.seed.one_in(4)) {
            self.more_pieces();
            return true;
        }
        if self.seed.one_in(3) && self.ask_again() {
            return true;
        }
        let all_asked = self.pieces_left == 0 && self.again.is_empty();
        if self.machine.live() == 1 && all_asked && self.is_open() {
            self.close();
            return true;
        }
        // Rarely there is a run in line whose parent is over: then a crash is made likely.
        let rarity = if self.queued_orphans() > 0 { 6 } else { 60 };
        if matches!(self.behaviour, Behaviour::Random) && self.seed.one_in(rarity) {
            let dead = Duration::from_millis(self.seed.below(100_000));
            self.die(dead);
            return true;
        }
        if (awake.is_empty() || self.seed.one_in(3)) && (self.claim() || self.ask_again()) {
            return true;
        }
        let impatient = matches!(self.behaviour, Behaviour::Random) && self.seed.one_in(8);
        if (impatient || awake.is_empty()) && self.disturb() {
            return true;
        }
        if (awake.is_empty() || self.seed.one_in(4)) && self.a_turn_comes() {
            return true;
        }
        if (awake.is_empty() || self.seed.one_in(4))
            && let Some(measure) = self.open_look.take()
        {
            self.looks_at_memory(measure);
            return true;
        }
        let happens = awake.is_empty() || self.seed.one_in(6);
        if happens && self.host_changes(awake.is_empty()) {
            return true;
        }
        if awake.is_empty() {
            return self.gives_more();
        }
        let run = self.seed.pick(&awake);
        match self.behaviour {
            Behaviour::Quiet => self.finish(run),
            Behaviour::Chain(depth) => self.act_in_a_chain(run, depth),
            Behaviour::Random => self.act_at_random(run),
        }
        true
    }

    /// Nothing else happens: the operator gives more budget to a run that waits for it.
    fn gives_more(&mut self) -> bool {
        let Some(&run) = self.machine.at_cap.first() else { return false };
        let more = 1 + self.seed.below(500);
        self.raise(run, more).is_ok()
    }

    /// Pieces come one by one or many at once, at the beginning and later.
    fn more_pieces(&mut self) {
        let many = 1 + self.seed.below(self.pieces_left);
        self.pieces_left -= many;
        match self.seed.one_in(2) {
            true => self.fan_out(many),
            false => {
                self.pieces_left += many - 1;
                self.try_spawn_piece();
            }
        }
    }

    /// True if a run was started to see whether others of its account may follow.
    fn is_probe(&self, run: RunIndex) -> bool {
        let account = self.machine.runs.live(run).and_then(|live| live.account.as_deref());
        account.is_some_and(|account| self.machine.books.quotas.is_probe(account, self.id(run)))
    }

    /// Sometimes a caller that waits loses patience. Where no run is awake, only the clock can help else.
    fn disturb(&mut self) -> bool {
        let waits = self.actors.values().flat_map(|actor| actor.waits.iter().copied());
        let open: Vec<WaitId> = waits.collect();
        let happens = !open.is_empty() && self.seed.one_in(3);
        if happens {
            let wait = self.seed.pick(&open);
            self.give_up(wait);
        }
        happens
    }

    fn act_in_a_chain(&mut self, run: RunIndex, depth: u32) {
        let actor = self.actors.entry(run).or_default();
        actor.spawned += 1;
        if actor.spawned > 1 || self.machine.runs[run].depth() >= depth {
            return self.finish(run);
        }
        self.child_of(run);
        self.wait(run);
    }

    fn act_at_random(&mut self, run: RunIndex) {
        let millis = self.seed.below(2_000);
        self.advance(millis);
        let Some(actor) = self.actors.get(&run) else { return };
        if !actor.waits.is_empty() {
            // Only what was asked to stop does anything while it waits.
            return self.finish_because(run, Reason::Signal { signal: 15 });
        }
        if actor.over {
            return self.finish(run);
        }
        // Rarely a piece is refused, because a budget is used up: then an early answer is made likely.
        if self.has_refused_pieces() && self.seed.one_in(3) {
            return self.answer_early();
        }
        if self.is_probe(run) && self.seed.one_in(3) {
            let wait = Duration::from_millis(self.seed.below(20_000));
            return self.meet_wall(run, self.now.plus(wait));
        }
        let rarity = if self.has_waiting_requests() { 2 } else { 4 };
        if self.limits.metered && self.seed.one_in(rarity) && self.request_goes_on() {
            return;
        }
        if self.limits.metered && self.seed.one_in(3) {
            return self.ask_models(run);
        }
        // No dice: those of the trees that have failed once stay as they were.
        if (self.now.as_micros() / 1_000).is_multiple_of(8) {
            self.hear_of_pressure(Account::clone(&self.facts.account));
        }
        if (self.now.as_micros() / 1_000).is_multiple_of(9) && !self.is_stopping(run) {
            self.back_off(run);
        }
        match self.seed.below(32) {
            0..=5 => self.spawn_some(run),
            6..=11 => self.wait_somehow(run),
            12 if self.seed.one_in(2) => self.report(run),
            12 if self.seed.one_in(2) => self.use_tool(run),
            12 => self.progress(run),
            13 if self.seed.one_in(4) => {
                let all: Vec<RunIndex> = self.actors.keys().copied().collect();
                let victim = self.seed.pick(&all);
                let reach = self.seed.pick(&[Reach::Subtree, Reach::Only, Reach::Below]);
                self.cancel(victim, reach, CancelledBy::Operator);
            }
            14 if self.seed.one_in(30) => self.stop_all(false),
            14 if self.seed.one_in(30) => self.answer_early(),
            14 if self.seed.one_in(3) => {
                let account = Account::clone(&self.facts.account);
                let millis = self.seed.below(30_000);
                self.hear_of_wall(account, self.now.plus(Duration::from_millis(millis)));
            }
            15 if self.seed.one_in(10) => {
                self.pause(true);
                self.spawn_some(run);
                self.finish(run);
                self.pause(false);
            }
            16 => self.finish_because(run, Reason::ExitCode { code: 7 }),
            17 => {
                self.finish_because(run, Reason::CannotStart { message: "no such file".into() });
            }
            18..=19 => {
                let more = self.seed.below(300);
                self.use_tokens(run, more);
            }
            // It hangs until it is stopped.
            20 if !self.is_stopping(run) && self.machine.next_timer().is_some() => {}
            // It says nothing for a while, and does not wait either.
            21 | 25..=26 => self.advance(31_000),
            22 => {
                let all: Vec<RunIndex> = self.actors.keys().copied().collect();
                let reader = self.seed.pick(&all);
                let _ = self.write(reader);
            }
            23..=24 => {
                self.end_turn(run);
            }
            29 => {
                let (cpu, wait) = (self.seed.below(2_000), self.seed.below(20_000));
                self.works(run, cpu, wait);
            }
            27 => {
                self.finish_because(run, OVERLOADED);
                if self.seed.one_in(2) {
                    self.speaks_late();
                }
            }
            30 => self.speaks_late(),
            31 => {
                // A reset that is over, too: services tell such ones.
                let wait = Duration::from_millis(self.seed.below(60_000));
                let until = match self.seed.one_in(8) {
                    true => self.now,
                    false => self.now.plus(wait),
                };
                self.meet_wall(run, until);
                if self.seed.one_in(4) {
                    *self.ledger.seen.entry("died at a wall").or_default() += 1;
                    let dead = Duration::from_millis(self.seed.below(70_000));
                    self.die(dead);
                }
            }
            28 => self.panic(run),
            _ => self.finish(run),
        }
    }

    /// One wait or several at once, for all or for some, with patience or without.
    fn wait_somehow(&mut self, run: RunIndex) {
        let children = self.machine.runs[run].children.clone();
        let takes_any = self.seed.one_in(2);
        self.actors.get_mut(&run).expect("it acts").takes_any = takes_any;
        for _ in 0..self.seed.pick(&[1, 1, 2, 3]) {
            let mode = self.seed.pick(&[WaitMode::All, WaitMode::Any]);
            let runs = match self.seed.one_in(2) || children.is_empty() {
                true => Vec::new(),
                false => {
                    let child = self.seed.pick(&children);
                    vec![self.id(child)]
                }
            };
            let patience = Duration::from_millis(self.seed.below(20_000));
            let until = self.seed.one_in(3).then(|| self.now.plus(patience));
            self.wait_for(run, runs, mode, until);
        }
    }
}
