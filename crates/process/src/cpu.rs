//! The CPU time and the memory of a child and of everything that it has started.
//!
//! ```text
//!   leader ── its children, theirs …                     each by its folder in /proc
//!   orphans of its session, or with its mark             children of this process by now
//!   orphans that were reaped meanwhile                   counted when they were
//! ```
//!
//! A process that has ended counts where its parent has waited for it. One whose parent ignores its end counts no more; that
//! is the kernel's doing, and only a control group would tell.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use crate::group::KnownGroup;
use crate::processes::Inner;
use crate::sys::{ProcessFolder, Stat, environment_has};
use crate::{Identity, MARK_VARIABLE};

/// The length of a clock tick in `/proc`: a hundredth of a second, which is part of the kernel's interface on every
/// architecture that this crate is built for.
const TICK: Duration = Duration::from_millis(10);

/// Measures the CPU time and the memory of a child, together with what it has started. Cheap to clone; it does not keep the child.
#[derive(Clone, Debug)]
pub struct CpuClock(Arc<Clocked>);

#[derive(Debug)]
struct Clocked {
    inner: Weak<Inner>,
    leader: Identity,
    /// The element of the mark that is this child's alone.
    mark: String,
    /// True once the clock has been read: most children end unread.
    is_read: AtomicBool,
    /// The time that the child had used when it ended, in ticks.
    last: OnceLock<u64>,
}

impl CpuClock {
    pub(crate) fn new(group: &KnownGroup) -> Self {
        let KnownGroup { inner, identity, mark, .. } = group;
        let (inner, mark) = (Arc::downgrade(inner), mark.clone());
        let (is_read, last) = (AtomicBool::new(false), OnceLock::new());
        Self(Arc::new(Clocked { inner, leader: *identity, mark, is_read, last }))
    }

    /// Returns the time used until now, or until the child's end, to a hundredth of a second. Blocks for some microseconds for
    /// each process.
    pub fn read(&self) -> Duration {
        self.0.is_read.store(true, Ordering::Relaxed);
        let ticks = self.0.last.get().copied().unwrap_or_else(|| self.0.ticks());
        TICK * u32::try_from(ticks).unwrap_or(u32::MAX)
    }

    /// Returns the bytes that it and what it has started have in memory at the moment; what several of them share counts for each.
    /// Blocks for some microseconds for each process.
    pub fn resident(&self) -> u64 {
        let mut pages = 0u64;
        self.0.each(|stat| pages = pages.saturating_add(stat.resident_pages));
        pages.saturating_mul(rustix::param::page_size() as u64)
    }

    /// The leader has ended and is not yet reaped.
    pub(crate) fn ends(&self) {
        if self.0.is_read.load(Ordering::Relaxed) {
            self.0.last.get_or_init(|| self.0.ticks());
        }
    }
}

impl Clocked {
    fn ticks(&self) -> u64 {
        let inner = self.inner.upgrade();
        let mut ticks = inner.map_or(0, |inner| inner.reaped_ticks(self.leader.pid));
        self.each(|stat| ticks = ticks.saturating_add(stat.ticks));
        ticks
    }

    /// Looks at the leader and at each process that it has started.
    fn each(&self, mut found: impl FnMut(&Stat)) {
        let mut open = Vec::new();
        if let Some(inner) = self.inner.upgrade() {
            for orphan in inner.orphans().map(|orphans| orphans.pids).unwrap_or_default() {
                open.extend(look(orphan, |stat| self.is_ours(orphan, stat)));
            }
        }
        let start_time = self.leader.start_time;
        open.extend(look(self.leader.pid, |stat| stat.start_time == start_time));
        while let Some((pid, folder, stat)) = open.pop() {
            found(&stat);
            for child in folder.children().unwrap_or_default() {
                open.extend(look(child, |stat| stat.parent == pid));
            }
        }
    }

    /// True if an orphan was started by this child.
    fn is_ours(&self, orphan: u32, stat: &Stat) -> bool {
        let leader = self.leader.pid;
        stat.parent == std::process::id()
            && (stat.session == leader
                || stat.group == leader
                || environment_has(orphan, MARK_VARIABLE, &self.mark) == Some(true))
    }
}

fn look(pid: u32, is_wanted: impl FnOnce(&Stat) -> bool) -> Option<(u32, ProcessFolder, Stat)> {
    let folder = ProcessFolder::open(pid).ok()?;
    let stat = folder.stat().ok().filter(is_wanted)?;
    Some((pid, folder, stat))
}
