//! Walls of quotas: runs whose service refuses them until a reset, and the runs of the same account behind them.
//!
//! ```text
//!   holding ──refused until a reset──▶ in line, held back ──the reset──▶ one probe starts ──it works──▶ the others start
//! ```
//!
//! A run that met the wall has another attempt, which is no fault and of which no retry is used up, where it goes on as it was or may
//! be repeated. It holds no slot meanwhile, and none of its time passes.

use std::sync::Arc;
use std::time::Duration;

use offshoot_config::OnWall;
use offshoot_model::{Account, Ending, EventKind, Reason, Timestamp, TokenCount, Usage};
use offshoot_policy::quota::{Gate, Wall};

use super::pace::is_pressure;
use super::retry::chance;
use super::run::{Live, RunIndex};
use super::timer::Due;
use super::{Effect, Machine};

/// The reason why an account is parked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parking {
    /// The service has refused a run.
    Refused,
    /// So much of a quota is left, in millionths, which is less than what is kept.
    Kept(u32),
    /// Another tree has told of a refusal.
    Told,
}

/// True if a run stands in line again where it meets a wall whose reset is known: it goes on where it was, or may be repeated.
pub(super) fn may_wait(live: &Live) -> bool {
    live.account.is_some()
        && live.under.quota.on_wall() != OnWall::Fail
        && (live.resumes || live.may_repeat())
}

impl Machine {
    /// Takes in that an attempt has ended. Where its service refused it until a reset, its account is parked until then. `asked` is
    /// the time after which the service wants to be asked again.
    pub(super) fn meets_wall(
        &mut self,
        run: RunIndex,
        ending: &mut Ending,
        asked: Option<Duration>,
    ) {
        let Reason::Quota { window, until } = &mut ending.reason else { return };
        let now = self.now;
        *until = until.or_else(|| asked.map(|asked| now.plus(asked)));
        let (Some(reset), Some(live)) = (*until, self.runs.live(run)) else { return };
        let Some(account) = live.account.clone() else { return };
        self.park(run, &account, window.as_deref().map(Arc::from), reset, Parking::Refused);
    }

    /// The service of a run says how much is left of a quota, in millionths. Where that is less than what is kept, no run of the account
    /// starts before the reset; what runs goes on. What is left is recorded in steps.
    pub(super) fn sees_quota(
        &mut self,
        run: RunIndex,
        window: Arc<str>,
        left: u32,
        reset: Timestamp,
    ) {
        let Some(live) = self.runs.live(run) else { return };
        let keeps = left < live.under.quota.keep().millionths() && reset > self.now;
        let Some(account) = live.account.clone() else { return };
        let is_news = self.books.quotas.is_news(&account, &window, (left, reset), self.now);
        if is_news {
            let (account, window) = (Account::clone(&account), Arc::clone(&window));
            self.record_of_tree(EventKind::QuotaSeen { account, window, left, until: reset });
        }
        if keeps {
            self.park(run, &account, Some(window), reset, Parking::Kept(left));
        }
    }

    /// A run has met the wall of a quota of this account, or heard of it: none of the account starts before the reset.
    pub(super) fn park(
        &mut self,
        run: RunIndex,
        account: &Account,
        window: Option<Arc<str>>,
        reset: Timestamp,
        by: Parking,
    ) {
        let (now, id) = (self.now, self.id(run));
        let Some(live) = self.runs.live(run).filter(|_| self.is_open()) else { return };
        let moved = (live.under.retries.jitter().as_f64(), chance(id));
        if let Some(until) = self.books.quotas.meets(account, id, (reset, now), moved) {
            let left = match by {
                Parking::Kept(left) => Some(left),
                Parking::Refused | Parking::Told => None,
            };
            self.leave_account_line(account);
            let (of, its) = (account.clone(), window.clone());
            self.record_of_tree(EventKind::Parked { account: of, window: its, until, left });
            self.timers.arm(until, Due::Reconsider);
            // The reset itself: each tree moves its probe by its own part. A wall of which another one has told is known to all.
            if by == Parking::Refused {
                let account = account.clone();
                self.out.push(Effect::TellWall { account, window, until: reset });
            }
        }
    }

    /// Takes in that another tree of the user has met a wall. It is recorded when a run of the account wants to start.
    pub(crate) fn hear_of_wall(
        &mut self,
        account: Account,
        window: Option<Arc<str>>,
        until: Timestamp,
    ) {
        let known = self.told_walls.get(&account).map(|(_, known)| *known);
        if known.is_none_or(|known| known < until) {
            self.leave_account_line(&account);
            self.told_walls.insert(account, (window, until));
        }
    }

    /// A run of this account wants to start: a wall of which another tree has told is one of this tree from here on.
    fn take_told_wall(&mut self, run: RunIndex, account: &Account) {
        let Some((_, until)) = self.told_walls.get(account) else { return };
        let is_over = *until <= self.now;
        // Its own wall counts as long as it stands. Once that is due, the told one may be that of another probe.
        let is_due = |wall: &Wall| wall.until <= self.now && !wall.has_probe();
        if !is_over && self.books.quotas.wall(account).is_some_and(|wall| !is_due(wall)) {
            return;
        }
        let told = self.told_walls.remove(account);
        if let Some((window, until)) = told.filter(|_| !is_over) {
            self.park(run, account, window, until, Parking::Told);
        }
    }

    /// Returns true if a run that met a wall stands in line again, as far as the wall decides about it: the reset is known, the tree
    /// is to wait for it, and the run goes on where it was or may be repeated.
    pub(super) fn waits_for_reset(&self, live: &Live, ending: &Ending) -> bool {
        let is_known = matches!(ending.reason, Reason::Quota { until: Some(_), .. });
        is_known && live.stopping.is_none() && may_wait(live)
    }

    /// Returns true if a run that stands in line may not start because of a quota of its account. It is held back until the reset or
    /// until the probe has told, or fails at once where it is not to wait.
    pub(super) fn waits_at_wall(&mut self, run: RunIndex) -> bool {
        if self.books.quotas.is_empty() && self.told_walls.is_empty() {
            return false;
        }
        let Some(account) = self.account_of(run) else { return false };
        self.take_told_wall(run, &account);
        // The operator has logged in to another account.
        for other in self.books.quotas.replaced_by(&account) {
            self.unpark(other);
        }
        let entry = &self.runs[run];
        let fails = entry.live().is_some_and(|live| live.under.quota.on_wall() == OnWall::Fail);
        match self.books.quotas.gate(&account, entry.id, self.now) {
            Gate::Open => return false,
            Gate::Probe if !self.waits_for_probe_turn(&account) => return false,
            Gate::Probe => {}
            Gate::Parked { until } if fails => {
                let wall = self.books.quotas.wall(&account);
                let window = wall.and_then(|wall| wall.window.as_deref().map(str::to_owned));
                let reason = Reason::Quota { window, until: Some(until) };
                self.finished(run, Ending::of(reason));
                return true;
            }
            // Its new account may be parked too: as far as this tree knows, it is not.
            Gate::Parked { .. } if self.falls_back_in_line(run) => return self.waits_at_wall(run),
            Gate::Parked { until } => self.timers.arm(until, Due::Reconsider),
            Gate::Probing { .. } => {}
        }
        self.held_back.push(run);
        self.look_at_park_limit();
        true
    }

    /// The attempt of a run has done something that only a service that answers lets it do: where it is a probe, the others follow.
    pub(super) fn shows_success(&mut self, run: RunIndex) {
        self.is_answered_again(run);
        self.is_answered(run);
        self.has_read_prompt(run);
        self.proves_its_account(run);
    }

    fn proves_its_account(&mut self, run: RunIndex) {
        if self.books.quotas.is_empty() {
            return;
        }
        let Some(account) = self.account_of(run) else { return };
        if self.books.quotas.is_probe(&account, self.id(run)) && self.is_open() {
            self.probe_is_answered(&account);
            self.unpark(Account::clone(&account));
            self.goes_on_slowly(&account);
        }
    }

    /// An attempt is over. Its runtime works where the end is one of the agent's own, or something was used.
    pub(super) fn ended_well(&mut self, run: RunIndex, ending: &Ending) {
        let is_own = matches!(
            ending.reason,
            Reason::Completed { .. }
                | Reason::ExitCode { .. }
                | Reason::TurnLimit
                | Reason::OutputLimit { .. }
                | Reason::SchemaMismatch { .. }
        );
        let met_wall = matches!(ending.reason, Reason::Quota { .. });
        if is_own || !met_wall && is_something(&ending.usage) {
            self.proves_its_account(run);
            if !is_pressure(&ending.reason) {
                self.is_answered(run);
                self.has_read_prompt(run);
            }
        }
    }

    /// The probe of an account, if it was this run, has ended or stands in line again.
    pub(super) fn probe_is_over(&mut self, run: RunIndex) {
        if let Some(account) = self.account_of(run) {
            self.walls_changed |= self.books.quotas.over(&account, self.id(run));
            self.books.paces.over(&account, self.id(run));
        }
    }

    /// Runs of an account may start again, or the next one may probe.
    pub(super) fn reconsider_walls(&mut self) {
        if std::mem::take(&mut self.walls_changed) {
            self.reconsider();
        }
    }

    /// Lets deadlines count nothing before a reset, where those of the tree do not count the time until then.
    pub(super) fn rest_at_walls(&mut self) {
        if self.runs.root().is_some_and(|root| !root.terms.quota.deadline_counts_parked()) {
            let until = self.books.quotas.until().unwrap_or(Timestamp::EPOCH);
            self.deadlines.age.rest(self.now, until);
        }
    }

    /// A tree that has waited for a reset for too long is stopped. Where nothing waits, it has not.
    pub(super) fn park_limit(&mut self) {
        let waits = |run: &RunIndex| {
            let account = self.account_of(*run);
            account.is_some_and(|account| self.books.quotas.wall(&account).is_some())
        };
        if !self.held_back.iter().any(waits) {
            return;
        }
        match self.park_ends() {
            Some((at, seconds)) if at <= self.now => {
                self.stop_for(&Reason::ParkLimit { seconds });
            }
            _ => self.look_at_park_limit(),
        }
    }

    /// Sets the time at which the tree will have waited for too long.
    pub(super) fn look_at_park_limit(&mut self) {
        if let Some((at, _)) = self.park_ends() {
            self.timers.arm(at, Due::Park);
        }
    }

    /// Returns the moment at which the tree has waited for as long as it may, and how long that is.
    fn park_ends(&self) -> Option<(Timestamp, u64)> {
        let seconds = self.runs.root()?.terms.max_park_seconds()?;
        let since = self.books.quotas.since()?;
        Some((since.plus(Duration::from_secs(seconds)), seconds))
    }

    /// Runs of an account start again.
    pub(super) fn unpark(&mut self, account: Account) {
        self.record(RunIndex::ROOT, EventKind::Unparked { account });
    }
}

/// True if something was used for sure.
pub(super) fn is_something(usage: &Usage) -> bool {
    match usage.total() {
        TokenCount::Known(tokens) | TokenCount::AtLeast(tokens) => tokens > 0,
        TokenCount::Estimated(_) | TokenCount::Unknown => false,
    }
}
