//! Writes so many lines to standard error, at so many a second or, with 0, as fast as they go.

#![expect(clippy::disallowed_methods, reason = "it keeps to a rate by the real clock")]

use std::io::Write;
use std::time::{Duration, Instant};

/// Lines that are written at once.
const AT_ONCE: u32 = 100;

fn main() {
    let number = |place: usize| {
        let word = std::env::args().nth(place).expect("a number of lines, and one a second");
        word.parse::<u32>().expect("a number")
    };
    let (lines, rate) = (number(1), number(2));
    let begun = Instant::now();
    let mut stderr = std::io::stderr();
    let mut block = String::new();
    for line in 0..lines {
        block += &format!("{line} of {lines}, as programs say how it goes\n");
        if line % AT_ONCE == AT_ONCE - 1 || line + 1 == lines {
            stderr.write_all(block.as_bytes()).expect("the lines are read");
            block.clear();
            if rate > 0 {
                let due = begun + Duration::from_secs(1) * (line + 1) / rate;
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
            }
        }
    }
}
