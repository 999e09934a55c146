//! Bounds of a program that the kernel holds to, and which of them ended it. The decision is pure.
//!
//! ```text
//!   memory_bytes ──▶ address space of each process     a process that wants more is refused, and ends as it likes
//!   open_files   ──▶ descriptors of each process       a further file is not opened
//!   cpu_seconds  ──▶ CPU time of each process          SIGXCPU, and a second later SIGKILL
//! ```

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::Exit;
use crate::sys::ProcessId;

/// Bounds of each process of a program. They are inherited: no process of it can raise them. 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of address space.
    pub memory_bytes: u64,
    /// Descriptors that are open at once.
    pub open_files: u64,
    /// Seconds of CPU time.
    pub cpu_seconds: u64,
}

/// A bound that ended a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// The kernel killed it because memory was short.
    Memory,
    /// The CPU time of one of its processes was used up.
    Cpu,
}

/// The number that is added to our own order in which the kernel kills where memory is short: what we start goes before us.
const SOONER: i32 = 300;

/// The last number of that order.
const SOONEST: i32 = 1000;

/// The signal of a process whose CPU time is used up, and the one that cannot be ignored.
const XCPU: i32 = 24;
const KILL: i32 = 9;

/// The number of processes that the kernel has killed for want of memory, as it was known when a program was started.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KillsBefore(Option<u64>);

/// The facts about an end by which a bound is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    pub(crate) exit: Exit,
    /// True if we have stopped it.
    pub(crate) stopped: bool,
    /// The CPU time of all of its processes.
    pub(crate) cpu: Duration,
    /// True if the kernel has killed some process for want of memory while it ran.
    pub(crate) memory_kills: bool,
}

impl Limits {
    /// Sets them for a process that has just been started, and for what it has started since.
    pub(crate) fn set(self, process: ProcessId, below: impl Fn() -> Vec<u32>) {
        if self == Self::default() {
            return;
        }
        process.limit(self);
        // What was started before inherits nothing; what it starts from here on does.
        for pid in below().into_iter().filter_map(ProcessId::new) {
            pid.limit(self);
        }
    }

    /// Returns the bound that ended a program; none where it ended by itself, or by us.
    pub(crate) fn reached(self, end: &End) -> Option<Reached> {
        // A shell says so of the program that it ran last.
        let by = |signal: i32| match end.exit {
            Exit::Signal(number) => number == signal,
            Exit::Code(code) => code == 128 + signal,
            Exit::Lost => false,
        };
        let cpu = self.cpu_seconds;
        let is_out_of_time = cpu > 0 && end.cpu >= Duration::from_secs(cpu);
        match () {
            () if end.stopped => None,
            () if cpu > 0 && by(XCPU) => Some(Reached::Cpu),
            () if by(KILL) && is_out_of_time => Some(Reached::Cpu),
            () if by(KILL) && end.memory_kills => Some(Reached::Memory),
            () => None,
        }
    }
}

/// Lets the kernel kill a process, and what it starts, before us where memory is short.
pub(crate) fn goes_before_us(process: ProcessId) {
    static ORDER: OnceLock<String> = OnceLock::new();
    let order = ORDER.get_or_init(|| {
        let own = std::fs::read_to_string("/proc/self/oom_score_adj").unwrap_or_default();
        let own: i32 = own.trim().parse().unwrap_or(0);
        own.saturating_add(SOONER).min(SOONEST).to_string()
    });
    // Where it is not allowed, the kernel chooses by size alone.
    let _ = std::fs::write(format!("/proc/{}/oom_score_adj", process.get()), order);
}

impl KillsBefore {
    /// The number now, or at most a second ago: programs are started in bursts, and the file takes some ten microseconds.
    pub(crate) fn now() -> Self {
        static LAST: Mutex<Option<(Instant, Option<u64>)>> = Mutex::new(None);
        #[expect(clippy::disallowed_methods, reason = "the age of a number that is kept")]
        let now = Instant::now();
        let mut last = LAST.lock();
        let is_old = |(at, _): (Instant, _)| now.duration_since(at) >= Duration::from_secs(1);
        if last.is_none_or(is_old) {
            *last = Some((now, memory_kills()));
        }
        Self(last.and_then(|(_, kills)| kills))
    }

    /// True if the kernel has killed some process for want of memory since.
    pub(crate) fn has_grown(self) -> bool {
        self.0.zip(memory_kills()).is_some_and(|(before, now)| now > before)
    }
}

/// Returns the number of processes that the kernel has killed for want of memory since it was started.
fn memory_kills() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/vmstat").ok()?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_that_ended_a_program_is_told_by_evidence() {
        let check = |exit, cpu_seconds, cpu, memory_kills, stopped, expected| {
            let limits = Limits { cpu_seconds, ..Limits::default() };
            let end = End { exit, stopped, cpu: Duration::from_millis(cpu), memory_kills };
            assert_eq!(limits.reached(&end), expected, "{end:?} {cpu_seconds}");
        };
        let (cpu, memory) = (Some(Reached::Cpu), Some(Reached::Memory));
        check(Exit::Signal(24), 1, 900, false, false, cpu);
        check(Exit::Code(152), 1, 900, false, false, cpu);
        check(Exit::Signal(24), 0, 900, false, false, None);
        // It has caught the first signal.
        check(Exit::Signal(9), 1, 1_900, false, false, cpu);
        check(Exit::Code(137), 1, 1_000, false, false, cpu);
        check(Exit::Signal(9), 1, 999, false, false, None);
        check(Exit::Signal(9), 0, 5_000, true, false, memory);
        check(Exit::Code(137), 0, 0, true, false, memory);
        check(Exit::Signal(9), 9, 5_000, true, false, memory);
        check(Exit::Signal(9), 1, 5_000, true, false, cpu);
        check(Exit::Signal(9), 1, 5_000, true, true, None);
        check(Exit::Signal(11), 1, 5_000, true, false, None);
        check(Exit::Code(1), 1, 5_000, true, false, None);
        check(Exit::Lost, 1, 5_000, true, false, None);
    }
}
