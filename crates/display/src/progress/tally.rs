//! Counting runs.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use offshoot_model::{Admitted, Ending, Event, EventKind, RunId, RunStatus, Timestamp};

use crate::line::why;
use crate::style::Style;
use crate::{name, number};

/// The number of runs that are done, running, queued and failed. A root that only holds pieces is not counted. Remembers only
/// runs that are not over. Shown as `12 of 100 done  4 running  84 queued  1 failed  3.2/s  27.1 s left`.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    expected: Option<u64>,
    live: HashMap<RunId, Live>,
    queued: u64,
    running: u64,
    waiting: u64,
    completed: u64,
    failed: u64,
    first_start: Option<Timestamp>,
    last: Timestamp,
}

#[derive(Clone, Debug)]
struct Live {
    name: String,
    status: RunStatus,
}

/// A run that ended, and not well.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    name: String,
    status: RunStatus,
    why: String,
}

impl Tally {
    /// Nothing counted yet. `expected` is the number of runs, where it is known beforehand.
    pub fn new(expected: Option<u64>) -> Self {
        Self { expected, ..Self::default() }
    }

    /// Takes in one event; gives the failure it tells of.
    pub(super) fn apply(&mut self, event: &Event) -> Option<Failure> {
        self.last = self.last.max(event.at);
        match &event.kind {
            EventKind::Admitted(admitted) => self.admit(event.run, admitted),
            EventKind::Starting => {
                self.move_to(event.run, RunStatus::Starting);
                if self.live.contains_key(&event.run) {
                    self.first_start.get_or_insert(event.at);
                }
            }
            EventKind::Started { .. } | EventKind::Returned => {
                self.move_to(event.run, RunStatus::Running);
            }
            EventKind::Waiting => self.move_to(event.run, RunStatus::Waiting),
            EventKind::Ended(ending) => return self.end(event.run, ending),
            _ => {}
        }
        None
    }

    /// Runs that are over, well or not.
    pub fn ended(&self) -> u64 {
        self.completed + self.failed
    }

    /// Runs that completed.
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// Runs that are over and did not complete.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// As many as were expected, or have been admitted, if that is more.
    pub fn total(&self) -> u64 {
        let admitted = self.ended() + self.live.len() as u64;
        self.expected.unwrap_or(0).max(admitted)
    }

    /// Returns the part of the total that is over, in percent; 0 of nothing.
    pub fn percent(&self) -> u64 {
        (self.ended() * 100).checked_div(self.total()).unwrap_or(0)
    }

    /// From the first start to the last event.
    pub fn elapsed(&self) -> Duration {
        self.first_start.map_or(Duration::ZERO, |first| self.last.since(first))
    }

    fn admit(&mut self, run: RunId, admitted: &Admitted) {
        if admitted.parent.is_none() && admitted.runtime.is_none() {
            return;
        }
        let name = name::name(&admitted.agent, admitted.label.as_deref());
        if self.live.insert(run, Live { name, status: RunStatus::Queued }).is_none() {
            self.queued += 1;
        }
    }

    fn move_to(&mut self, run: RunId, status: RunStatus) {
        let Some(live) = self.live.get_mut(&run) else { return };
        let before = std::mem::replace(&mut live.status, status);
        *self.count(before) -= 1;
        *self.count(status) += 1;
    }

    fn end(&mut self, run: RunId, ending: &Ending) -> Option<Failure> {
        let live = self.live.remove(&run)?;
        *self.count(live.status) -= 1;
        match why(ending) {
            None => {
                self.completed += 1;
                None
            }
            Some(why) => {
                self.failed += 1;
                Some(Failure { name: live.name, status: ending.status(), why })
            }
        }
    }

    fn count(&mut self, status: RunStatus) -> &mut u64 {
        match status {
            RunStatus::Waiting => &mut self.waiting,
            RunStatus::Starting | RunStatus::Running => &mut self.running,
            RunStatus::Idle | RunStatus::Queued => &mut self.queued,
            RunStatus::Completed
            | RunStatus::Failed
            | RunStatus::TimedOut
            | RunStatus::Cancelled
            | RunStatus::Lost
            | RunStatus::ClientGone => unreachable!("a run that is over is not kept as a live one"),
        }
    }

    /// Runs per second, once there is enough to tell.
    fn rate(&self) -> Option<f64> {
        let seconds = self.elapsed().as_secs_f64();
        (self.ended() >= 2 && seconds > 0.0).then(|| self.ended() as f64 / seconds)
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total();
        write!(f, "{} of {} done", number::count(self.completed), number::count(total))?;
        let counts = [
            (self.running, "running"),
            (self.waiting, "waiting"),
            // Runs that are expected and not yet admitted count as queued.
            (total - self.ended() - self.running - self.waiting, "queued"),
            (self.failed, "failed"),
        ];
        for (count, word) in counts {
            if count > 0 {
                write!(f, "  {} {word}", number::count(count))?;
            }
        }
        let Some(rate) = self.rate() else { return Ok(()) };
        match rate {
            100.0.. => write!(f, "  {}/s", number::count(rate as u64))?,
            1.0.. => write!(f, "  {rate:.1}/s")?,
            _ => write!(f, "  {:.1}/min", rate * 60.0)?,
        }
        match total - self.ended() {
            0 => write!(f, "  in {}", number::duration(self.elapsed())),
            left => {
                let left = Duration::try_from_secs_f64(left as f64 / rate).unwrap_or(Duration::MAX);
                write!(f, "  {} left", number::duration(left))
            }
        }
    }
}

impl Failure {
    pub(super) fn text(&self, style: Style) -> String {
        format!("{}  {}  {}", style.status(self.status), self.name, self.why)
    }
}
