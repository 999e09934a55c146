//! Memory of the computer: a run starts where enough of it would stay available, and else waits.
//!
//! ```text
//!   available ── reserved for live runs that have not grown yet ── reserved for the run itself  <  kept  ──▶  it waits
//! ```
//!
//! What a run will take is not known when it starts. So its figure is reserved for it until its processes have grown to that: at
//! first the figure of its runtime, later what nineteen of twenty runs of its agent have taken. Whether a run may start although
//! memory is short, because none runs, is for the owner of the tree to say.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use offshoot_config::Fraction;
use offshoot_model::{AgentId, MemoryShortage, RunId, Timestamp};

/// The memory of the computer at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostMemory {
    /// All of it, in bytes.
    pub total: u64,
    /// The part that new programs can take without others being moved out, in bytes.
    pub available: u64,
    /// The part of the last ten seconds in which some program stood still for want of memory, in hundredths of a percent. None
    /// where the system does not tell.
    pub stalled: Option<u32>,
}

/// The answer to a run that wants to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// There is enough.
    Open,
    /// Not known: the memory of the computer is to be read, and where it says so that of the live runs as well.
    Look {
        /// True if the processes of the live runs are to be measured.
        measure: bool,
    },
    /// Not before a run has ended, or the memory was read again.
    Short(MemoryShortage),
}

/// The memory that is reserved in one tree.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// The part that stays available; none where runs start whatever is left.
    keep: Option<Fraction>,
    live: HashMap<RunId, Reserved>,
    /// The sum of what live runs have not taken yet, in bytes. Kept, because each start asks for it.
    to_come: u128,
    /// The most that earlier runs of an agent had when they were measured.
    peaks: BTreeMap<AgentId, VecDeque<u64>>,
    reading: Option<Reading>,
}

/// A run that has processes.
#[derive(Clone, Debug)]
struct Reserved {
    agent: AgentId,
    figure: u64,
    /// The memory of its processes when they were measured last.
    resident: u64,
    peak: u64,
    /// True while the run waits for others, and grows no more.
    rests: bool,
}

#[derive(Clone, Copy, Debug)]
struct Reading {
    memory: HostMemory,
    at: Timestamp,
    /// True if the live runs were measured with it.
    measured: bool,
    /// True if a run has ended since: where there was enough, there is no less now, and else the memory is read again.
    is_before_end: bool,
    /// The run waits that asked last: nothing changes that before a run ends or the memory is read again.
    short: Option<MemoryShortage>,
}

/// The time for which a reading holds: runs that start meanwhile are reserved for.
const FRESH: Duration = Duration::from_millis(100);

/// The time after which a run that waits is to ask again: nothing tells that programs outside of the tree have given memory back.
pub const ASK_AGAIN: Duration = Duration::from_secs(2);

/// The most of the last ten seconds in which programs may have stood still for want of memory, in hundredths of a percent: a fifth.
const MOST_STALLED: u32 = 2_000;

/// The number of runs of an agent from which on their own figure holds.
const FEW: usize = 3;

/// The number of runs of an agent of which the figure is kept.
const MANY: usize = 64;

impl Memory {
    /// Keeps this part of the memory available from here on.
    pub fn keep(&mut self, part: Fraction) {
        self.keep = Some(part).filter(|part| part.millionths() > 0);
    }

    /// Returns true if a start may have to wait.
    pub fn is_kept(&self) -> bool {
        self.keep.is_some()
    }

    /// Returns the answer to a run of this agent that wants to start. `figure` is that of its runtime.
    pub fn gate(&mut self, agent: &AgentId, figure: u64, now: Timestamp) -> Gate {
        let Some(keep) = self.keep else { return Gate::Open };
        let wanted = self.figure(agent).unwrap_or(figure);
        let Some(reading) = &self.reading else { return Gate::Look { measure: false } };
        if let Some(shortage) = reading.short {
            return Gate::Short(shortage);
        }
        if now.since(reading.at) > FRESH {
            return Gate::Look { measure: false };
        }
        let HostMemory { total, available, stalled } = reading.memory;
        let reserved = u64::try_from(self.to_come).unwrap_or(u64::MAX);
        let shortage = MemoryShortage {
            available,
            reserved: reserved.saturating_add(wanted),
            kept: keep.of(total),
            stalled: stalled.filter(|stalled| *stalled > MOST_STALLED),
        };
        if !shortage.is_short() {
            return Gate::Open;
        }
        if reading.is_before_end {
            return Gate::Look { measure: false };
        }
        // What stands still does so however little the runs have grown.
        if !reading.measured && shortage.stalled.is_none() && reserved > 0 {
            return Gate::Look { measure: true };
        }
        if let Some(reading) = &mut self.reading {
            reading.short = Some(shortage);
        }
        Gate::Short(shortage)
    }

    /// Returns true if the last run that asked waits, and nothing has changed since.
    pub fn is_short(&self) -> bool {
        self.reading.is_some_and(|reading| reading.short.is_some())
    }

    /// Takes in the memory of the computer, and that of the processes of live runs where they were measured.
    pub fn read(&mut self, memory: HostMemory, runs: Option<&[(RunId, u64)]>, now: Timestamp) {
        for (run, resident) in runs.unwrap_or_default() {
            self.change(*run, |live| {
                (live.resident, live.peak) = (*resident, live.peak.max(*resident));
            });
        }
        let measured = runs.is_some();
        // Runs are measured on another thread, and one may have ended meanwhile.
        let is_before_end = measured && self.reading.is_some_and(|before| before.is_before_end);
        self.reading = Some(Reading { memory, at: now, measured, is_before_end, short: None });
    }

    /// Forgets the last reading: a run that waits asks again.
    pub fn forget_reading(&mut self) {
        self.reading = None;
    }

    /// Reserves what a run will take, which starts. `figure` is that of its runtime.
    pub fn started(&mut self, run: RunId, agent: &AgentId, figure: u64) {
        if self.keep.is_some() {
            let figure = self.figure(agent).unwrap_or(figure);
            let agent = agent.clone();
            let new = Reserved { agent, figure, resident: 0, peak: 0, rests: false };
            self.to_come += u128::from(new.to_come());
            if let Some(before) = self.live.insert(run, new) {
                self.to_come -= u128::from(before.to_come());
            }
        }
    }

    /// Takes in that a run waits for others, or goes on. While it waits nothing is reserved for it beside what it has.
    pub fn rests(&mut self, run: RunId, rests: bool) {
        let is_live = self.change(run, |live| {
            live.rests = rests;
            if !rests {
                // Its processes may have ended meanwhile: what they have is measured again where memory is scarce.
                live.resident = 0;
            }
        });
        if is_live && rests {
            // There may be enough now.
            self.reading = self.reading.filter(|reading| reading.short.is_none());
        } else if is_live {
            self.reading.iter_mut().for_each(|reading| reading.measured = false);
        }
    }

    /// Changes what is known of a live run. Returns true if it is one.
    fn change(&mut self, run: RunId, change: impl FnOnce(&mut Reserved)) -> bool {
        let Some(live) = self.live.get_mut(&run) else { return false };
        self.to_come -= u128::from(live.to_come());
        change(live);
        self.to_come += u128::from(live.to_come());
        true
    }

    /// Takes in that a run has no processes any more.
    pub fn ended(&mut self, run: RunId) {
        let Some(live) = self.live.remove(&run) else { return };
        self.to_come -= u128::from(live.to_come());
        let Reserved { agent, peak, .. } = live;
        self.reading = self.reading.filter(|reading| reading.short.is_none());
        // Not read at once: that costs as much as a small run.
        self.reading.iter_mut().for_each(|reading| reading.is_before_end = true);
        if peak > 0 {
            let peaks = self.peaks.entry(agent).or_default();
            if peaks.len() == MANY {
                peaks.pop_front();
            }
            peaks.push_back(peak);
        }
    }

    /// Returns what nineteen of twenty earlier runs of an agent have taken; none where too few were measured.
    fn figure(&self, agent: &AgentId) -> Option<u64> {
        let peaks = self.peaks.get(agent).filter(|peaks| peaks.len() >= FEW)?;
        let mut sorted: Vec<u64> = peaks.iter().copied().collect();
        sorted.sort_unstable();
        let rank = (sorted.len() * 19).div_ceil(20);
        sorted.get(rank - 1).copied()
    }
}

impl Reserved {
    /// Returns what the run has not taken yet.
    fn to_come(&self) -> u64 {
        if self.rests { 0 } else { self.figure.saturating_sub(self.resident) }
    }
}

#[cfg(test)]
mod tests;
