//! Spending: what runs report is charged up the tree, and whoever reaches its limit is stopped.

use offshoot_model::{CancelledBy, Cost, Ending, EventKind, Reason, Timestamp, Usage};
use offshoot_policy::budget::{Mark, Notice};

use super::run::RunIndex;
use super::{Effect, Machine, Reach};

impl Machine {
    /// A run reports what it has used so far.
    pub(super) fn charge(
        &mut self,
        now: Timestamp,
        run: RunIndex,
        usage: Usage,
        cost: Cost,
        out: &mut Vec<Effect>,
    ) {
        self.record(now, run, EventKind::Used { usage, cost }, out);
        let notices = self.books.ledger.charge(self.id(run), &usage, &cost);
        self.heed(now, &notices, out);
    }

    /// Closes the account of a run that is over; answers whom that has brought to a limit. What it used beyond its
    /// reservation stands in the record before its end.
    pub(super) fn settle(
        &mut self,
        now: Timestamp,
        run: RunIndex,
        ending: &Ending,
        out: &mut Vec<Effect>,
    ) -> Vec<Notice> {
        let settlement = self.books.ledger.settle(self.id(run), ending);
        let (tokens, micro_usd) = (settlement.overrun_tokens, settlement.overrun_usd.as_micros());
        if tokens > 0 || micro_usd > 0 {
            self.record(now, run, EventKind::Overrun { tokens, micro_usd }, out);
        }
        settlement.notices
    }

    /// Tells who is near its limit, and stops who has reached it together with what is below.
    pub(super) fn heed(&mut self, now: Timestamp, notices: &[Notice], out: &mut Vec<Effect>) {
        for notice in notices {
            let Some(run) = self.find(notice.run) else { continue };
            if self.runs[run.get()].live().is_none() {
                continue;
            }
            match notice.mark {
                Mark::Near => self.record(now, run, EventKind::BudgetNotice, out),
                Mark::Limit => {
                    self.cancel(now, run, Reach::Below, CancelledBy::Budget, out);
                    let unit = notice.unit.as_str().to_owned();
                    self.stop(now, run, Reason::Budget { unit }, out);
                }
            }
        }
    }
}
