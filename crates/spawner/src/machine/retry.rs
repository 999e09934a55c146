//! Another attempt after a fault of the runtime: an overloaded model, a service that did not answer.
//!
//! ```text
//!   holding ──fault, attempts left──▶ queued, in no line ──the wait is over──▶ in line ──▶ holding
//! ```
//!
//! The wall of a quota is no fault, see `wall.rs`: the next attempt waits for the account. A budget that is used up is none either, see
//! `metered.rs`: the next attempt waits for the operator.
//!
//! For caps, for the breaker and for those that wait for it, it stays one run. Another run may have its slot
//! meanwhile; what it has used counts.

use std::time::Duration;

use offshoot_config::Fraction;
use offshoot_model::{Cost, Ending, EventKind, Reason, RunId, Usage};
use offshoot_policy::budget::Unit;

use super::run::{AttemptUse, RunIndex, SlotState};
use super::timer::Due;
use super::{Effect, Machine};

impl Machine {
    /// Gives a run whose attempt has ended another one, where it may have one.
    pub(super) fn retry(
        &mut self,
        run: RunIndex,
        ending: &Ending,
        asked: Option<Duration>,
    ) -> bool {
        let Some((after, other)) = self.mendable(run, ending) else { return false };
        let live = self.runs.live(run).expect("the run ended within the step that looked at it");
        let (usage, cost) = live.in_all(ending.usage, ending.cost);
        // Nothing is no report: were its supervisor killed in the next attempt, the use of that attempt would be unknown.
        if (usage, cost) != (Usage::default(), Cost::NONE) {
            self.charge(run, usage, cost);
        }
        self.let_clock_rest(run);
        let entry = &mut self.runs[run];
        let id = entry.id;
        let live = entry.live_mut().expect("the run ended within the step that looked at it");
        // Its usage may have reached its budget.
        let is_stopped = live.stopping.as_deref().is_some_and(|reason| *reason != after);
        let waits_for_budget = matches!(after, Reason::Budget { .. });
        let is_used_up = || Unit::ALL.iter().any(|&unit| self.books.ledger.is_used_up(id, unit));
        if is_stopped || !waits_for_budget && is_used_up() {
            return false;
        }
        let phase = std::mem::replace(&mut live.phase, SlotState::Queued);
        let SlotState::Holding { lease, .. } = phase else { unreachable!("the run was alive") };
        let Ending { usage, cost, .. } = *ending;
        live.earlier.push(AttemptUse { attempt: Some(live.attempt), usage, cost });
        live.told = None;
        let (attempt, continues) = (live.attempt + 1, live.resumes && other.is_none());
        // One that met the wall of a quota waits for its account, and one at its cap for more budget; another runtime is asked at once.
        let wait = match after {
            _ if other.is_some() => Some(Duration::ZERO),
            Reason::Quota { .. } | Reason::Budget { .. } => None,
            _ => {
                let first = Duration::from_secs(live.under.retries.backoff_seconds());
                let wait = backoff(first, live.faults + 1, live.under.retries.jitter(), id);
                // A service that refused may have said when to come again. A part is added, so that not all come at that moment.
                let asked = asked.map(|asked| backoff_by(asked, live.under.retries.jitter(), id));
                Some(asked.map_or(wait, |asked| asked.max(wait)))
            }
        };
        self.let_go(run, lease);
        self.queued += 1;
        if let Some(place) = other {
            self.fall_back(run, place);
        }
        let after = Some(Box::new(after));
        let wait_ms = wait.map(|wait| wait.as_millis().try_into().unwrap_or(u64::MAX));
        let changes = ending.changes.clone();
        self.record(run, EventKind::Resumed { attempt, continues, after, wait_ms, changes });
        self.out.push(Effect::Again { run, continues });
        match wait.filter(|wait| !wait.is_zero()) {
            Some(wait) => self.timers.arm(self.now.plus(wait), Due::Again(run)),
            None => self.take_place(run),
        }
        true
    }

    /// An attempt follows, after a fault or after an interruption. One that begins anew
    /// forgets what the last one had asked for and was told; one that goes on is told again what may not have reached it.
    pub(super) fn another_attempt(
        &mut self,
        run: RunIndex,
        attempt: u32,
        continues: bool,
        is_fault: bool,
    ) {
        let entry = &mut self.runs[run];
        let children = u32::try_from(entry.children.len()).expect("fewer than runs");
        let Some(live) = entry.live_mut() else { return };
        live.attempt = attempt;
        live.requests = None;
        if let Some(backoff) = &mut live.backoff {
            backoff.is_open = false;
        }
        live.faults += u32::from(is_fault);
        live.mail = live.mail.take().and_then(|mail| mail.another_attempt(continues));
        match continues {
            true => self.tell_again(run),
            false => live.earlier_children = children,
        }
    }

    /// The wait before an attempt is over.
    pub(super) fn again(&mut self, run: RunIndex) {
        if self.is_in_line(run) {
            self.take_place(run);
        }
    }

    /// Returns the reason for which a run has another attempt, and the runtime to which it goes over for that, if it does; none where it has
    /// no other attempt.
    ///
    /// One that was written to has none, because a letter may be lost with its attempt. One that has asked for children has
    /// one only where its runtime goes on where it was: an attempt that begins anew would know nothing of them.
    fn mendable(&self, run: RunIndex, ending: &Ending) -> Option<(Reason, Option<usize>)> {
        let entry = &self.runs[run];
        let live = entry.live()?;
        // Its own time was over; whatever its program made of that.
        let reason = match live.stopping.as_deref() {
            Some(reason) if !ending.status().is_success() => reason,
            _ => &ending.reason,
        };
        let is_chosen = live.under.retry_on().includes(reason);
        let by_count = (is_chosen || reason.is_retryable() && live.stopping.is_none())
            && live.faults < live.under.retries_count(live.resumes);
        let may_begin_again = matches!(live.phase, SlotState::Holding { .. })
            && !live.is_last_attempt
            && !self.closing;
        if !may_begin_again {
            return None;
        }
        let other = if by_count { None } else { self.falls_back(run, ending) };
        if other.is_some() {
            return Some((reason.clone(), other));
        }
        let waits = self.waits_for_reset(live, ending) || self.waits_for_budget(live, ending);
        let may = (by_count || waits)
            && (live.resumes || entry.children.len() == live.earlier_children as usize)
            && live.mail.as_ref().is_none_or(|mail| live.resumes && mail.is_undisturbed())
            && live.waits.is_empty();
        may.then(|| (reason.clone(), None))
    }
}

/// The longest wait between two attempts, unless the service asks for a longer one.
const LONGEST: Duration = Duration::from_secs(3600);

/// A service may ask for a wait until the next day, and for no longer one.
const LONGEST_ASKED: Duration = Duration::from_secs(24 * 3600);

/// Returns the wait before the attempt after so many faults. It doubles each time, and is moved by a part of it so that
/// runs that failed together do not come back together. The run's id, which is random already, says by how much.
fn backoff(first: Duration, faults: u32, jitter: Fraction, run: RunId) -> Duration {
    let doubled = 1_u32.checked_shl(faults - 1).unwrap_or(u32::MAX);
    let wait = first.saturating_mul(doubled).min(LONGEST);
    wait.mul_f64(1.0 + jitter.as_f64() * (2.0 * chance(run) - 1.0))
}

/// A wait that was asked for, and up to a part of it longer.
fn backoff_by(asked: Duration, jitter: Fraction, run: RunId) -> Duration {
    asked.min(LONGEST_ASKED).mul_f64(1.0 + jitter.as_f64() * chance(run))
}

/// A number from 0 to 1, another one for each run.
pub(super) fn chance(run: RunId) -> f64 {
    let [.., a, b] = *run.as_bytes();
    f64::from(u16::from_be_bytes([a, b])) / f64::from(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_and_are_moved_within_their_share() {
        let jitter = |share| Fraction::from_millionths(share).expect("at most one");
        let run = |byte: u8| RunId::from_bytes([byte; 16]);
        let second = Duration::from_secs(1);
        for (faults, seconds) in [(1, 1), (2, 2), (5, 16)] {
            let expected = Duration::from_secs(seconds);
            assert_eq!(backoff(second, faults, jitter(0), run(9)), expected);
            assert_eq!(backoff(second, faults, jitter(200_000), run(0)), expected.mul_f64(0.8));
            assert_eq!(backoff(second, faults, jitter(200_000), run(255)), expected.mul_f64(1.2));
        }
        let middle = backoff(second, 1, jitter(200_000), run(128));
        assert!(middle.abs_diff(second) < Duration::from_millis(1), "{middle:?}");
        assert_eq!(backoff(second, 40, jitter(0), run(9)), LONGEST);
        assert_eq!(backoff(Duration::MAX, 2, jitter(0), run(9)), LONGEST);
        assert_eq!(backoff(Duration::ZERO, 7, jitter(1_000_000), run(255)), Duration::ZERO);
        let hour = Duration::from_secs(3600);
        assert_eq!(backoff_by(hour, jitter(200_000), run(0)), hour, "never earlier than asked for");
        assert_eq!(backoff_by(hour, jitter(200_000), run(255)), hour.mul_f64(1.2));
        assert_eq!(backoff_by(Duration::MAX, jitter(0), run(0)), 24 * hour, "no longer than a day");
    }
}
