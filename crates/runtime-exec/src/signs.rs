//! Signs of life: a program says nothing of itself, but what it prints shows that it is at work.

use std::time::Duration;

use offshoot_process::{Lines, Tap};
use offshoot_runtime::{RunHost, SaidStream, Secrets};
use tokio::time::Instant;

/// At most one line in this time: people read no faster. A program that is done within it tells none, and so costs none.
/// A sign of life, which is not shown to people, is given with every block.
const EVERY: Duration = Duration::from_secs(1);

/// Of a longer line only the beginning is told.
const LINE_BYTES: usize = 200;

/// Decides which lines are told.
#[derive(Debug)]
struct Rate {
    last: Instant,
}

impl Rate {
    /// True if a line is to be told now.
    fn is_due(&mut self, now: Instant) -> bool {
        let due = now.duration_since(self.last) >= EVERY;
        if due {
            self.last = now;
        }
        due
    }
}

/// Keeps what is answered, and tells how much.
pub(crate) fn of_answer(host: RunHost, mut said: SaidStream) -> Tap {
    let mut rate = Rate { last: Instant::now() };
    let mut total = 0;
    Box::new(move |block| {
        said.feed(block);
        host.sign();
        total += block.len() as u64;
        if rate.is_due(Instant::now()) {
            host.progress(format!("{total} bytes of output"));
        }
    })
}

/// Keeps what is said beside the answer, and tells the last line.
pub(crate) fn of_remarks(host: RunHost, secrets: Secrets, mut said: SaidStream) -> Tap {
    let mut rate = Rate { last: Instant::now() };
    let mut lines = Lines::new(LINE_BYTES);
    Box::new(move |block| {
        said.feed(block);
        host.sign();
        let due = rate.is_due(Instant::now());
        let mut last = Vec::new();
        lines.feed(block, |line| {
            if due && !line.trim_ascii().is_empty() {
                line.clone_into(&mut last);
            }
        });
        if due {
            // Without a whole line, a program that paints its progress over one.
            let line = if last.is_empty() { lines.rest() } else { &last };
            host.progress(secrets.strike_out(&String::from_utf8_lossy(line.trim_ascii())));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_line_at_a_time() {
        let start = Instant::now();
        let mut rate = Rate { last: start };
        let mut check = |millis, expected| {
            assert_eq!(rate.is_due(start + Duration::from_millis(millis)), expected, "{millis}");
        };
        check(0, false);
        check(999, false);
        check(1000, true);
        check(1001, false);
        check(1999, false);
        check(5000, true);
        check(5999, false);
    }
}
