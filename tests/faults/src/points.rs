//! Which points are tried, and what came of them.

use std::fmt::Display;

/// The points of one kind of fault.
#[derive(Debug)]
pub struct Points {
    what: String,
    tried: u64,
    survived: u64,
}

/// Whether every point is wanted.
pub fn is_soak() -> bool {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests are told by their caller how thorough to be"
    )]
    std::env::var("OFFSHOOT_SOAK").is_ok_and(|value| value == "1")
}

impl Points {
    /// None yet.
    pub fn of(what: impl Display) -> Self {
        Self { what: what.to_string(), tried: 0, survived: 0 }
    }

    /// Whether this point is tried: all of them when everything is wanted, else about so many of these. The same ones
    /// every time.
    pub fn wants(point: u64, of: u64, sample: u64) -> bool {
        let mixed = point.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31) % of.max(1);
        is_soak() || of <= sample || mixed < sample
    }

    /// One more, which survives unless this panics.
    pub fn try_one(&mut self, survives: impl FnOnce()) {
        self.tried += 1;
        survives();
        self.survived += 1;
    }

    /// How many were tried.
    pub fn tried(&self) -> u64 {
        self.tried
    }

    /// Says what came of them.
    #[expect(clippy::print_stdout, reason = "the counts are what the suite is for")]
    pub fn report(&self) {
        let Self { what, tried, survived } = self;
        println!("faults: {what}: {tried} points tried, {survived} survived");
    }
}
