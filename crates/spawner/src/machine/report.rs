//! Reports of running agents: kept, as long as they come no faster than a record should grow.

use std::sync::Arc;
use std::time::Duration;

use offshoot_model::{EventKind, Timestamp};

use super::run::RunIndex;
use super::{Effect, Machine};

/// A run may report this often for as long as it likes.
const EVERY: Duration = Duration::from_secs(1);

/// The number of reports beyond that rate that may come at once.
const AT_ONCE: u32 = 100;

/// The number of reports of one run that may still be kept. Stands for a bucket of [`AT_ONCE`] that fills by one in each
/// [`EVERY`], by the moment at which it is full again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Allowance {
    full_at: Timestamp,
}

impl Allowance {
    /// True if one more report may be kept at this moment; counts it then.
    pub(super) fn take(&mut self, now: Timestamp) -> bool {
        let full_at = self.full_at.max(now).plus(EVERY);
        let has_room = full_at.since(now) <= EVERY * AT_ONCE;
        if has_room {
            self.full_at = full_at;
        }
        has_room
    }
}

impl Machine {
    /// A run says how it goes. A run that is over says nothing.
    pub(super) fn reported(
        &mut self,
        now: Timestamp,
        run: RunIndex,
        text: Arc<str>,
        out: &mut Vec<Effect>,
    ) {
        self.wake(now, run, out);
        let Some(live) = self.runs[run.get()].live_mut() else { return };
        live.clock.sign(now);
        if live.reports.take(now) {
            self.record(now, run, EventKind::Reported { text }, out);
        } else {
            let event = self.event(now, run, EventKind::Progress { text });
            out.push(Effect::Show(Box::new(event)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_report_is_always_kept_and_a_loop_is_not() {
        let at = |seconds: u64| Timestamp::from_micros(seconds * 1_000_000);
        let mut steady = Allowance::default();
        assert!((1000..2000).all(|second| steady.take(at(second))));
        let mut loops = Allowance::default();
        let kept =
            |loops: &mut Allowance, second| (0..1000).filter(|_| loops.take(at(second))).count();
        assert_eq!(kept(&mut loops, 1000), 100);
        assert_eq!(kept(&mut loops, 1000), 0);
        assert_eq!(kept(&mut loops, 1007), 7);
        assert_eq!(kept(&mut loops, 900), 0, "a clock that was set back gives none");
        assert_eq!(kept(&mut loops, 9000), 100);
    }
}
