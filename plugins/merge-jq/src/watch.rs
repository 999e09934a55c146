//! The watch that keeps a program within its bounds: it looks before each call that the program makes.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// The reason for which a program was ended before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Halted {
    /// The answer is not wanted any more.
    #[error("the program was stopped")]
    Stopped,
    /// The program took too long.
    #[error("the program did not end within {} s", .0.as_secs())]
    TooLong(Duration),
    /// The calls stand in each other too deep.
    #[error("the program calls itself too deep")]
    TooDeep,
}

/// The bounds of one run of a program. It stays on the thread that runs the program.
#[derive(Debug)]
pub(crate) struct Watch {
    stop: Arc<AtomicBool>,
    began: Instant,
    limit: Duration,
    /// The place at which the thread's stack began, and how much of it may be used.
    stack: (usize, usize),
    looks: Cell<u32>,
    halted: Cell<Option<Halted>>,
}

/// Looks at the clock are this many calls apart: one costs as much as some calls.
const LOOKS_PER_CLOCK: u32 = 256;

impl Watch {
    /// Begins to watch: made by the thread that will run the program, before it does.
    pub(crate) fn new(stop: Arc<AtomicBool>, limit: Duration, stack_bytes: usize) -> Self {
        let stack = (here(), stack_bytes);
        let looks = Cell::new(0);
        Self { stop, began: Instant::now(), limit, stack, looks, halted: Cell::new(None) }
    }

    /// The reason for which the program must end now, if there is one.
    pub(crate) fn look(&self) -> Option<Halted> {
        if self.halted.get().is_none() {
            self.halted.set(self.judge());
        }
        self.halted.get()
    }

    fn judge(&self) -> Option<Halted> {
        let looks = self.looks.get();
        self.looks.set(looks.wrapping_add(1));
        let (begin, bytes) = self.stack;
        if self.stop.load(Ordering::Relaxed) {
            Some(Halted::Stopped)
        } else if begin.abs_diff(here()) > bytes {
            Some(Halted::TooDeep)
        } else if looks.is_multiple_of(LOOKS_PER_CLOCK) && self.began.elapsed() > self.limit {
            Some(Halted::TooLong(self.limit))
        } else {
            None
        }
    }
}

/// About where on its stack this thread is.
#[inline(never)]
fn here() -> usize {
    let mark = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&mark)).addr()
}
