//! Which points are tried, and what came of them.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

use offshoot_test_support::soak;

/// The points of one kind of fault.
#[derive(Debug)]
pub struct Points {
    what: String,
    tried: u64,
    survived: u64,
    /// How it went on, and how often.
    fates: BTreeMap<String, u64>,
}

/// How many points of each kind are tried: `all`, or a number. The tests' own sample where it is not set.
const WANTED: &str = "OFFSHOOT_FAULTS";

/// Where the even spread of a sample begins. Another number tries other points.
const SEED: u64 = 17;

impl Points {
    /// None yet.
    pub fn of(what: impl Display) -> Self {
        Self { what: what.to_string(), tried: 0, survived: 0, fates: BTreeMap::new() }
    }

    /// Whether this point is tried: all of them when everything is wanted, else about so many of these, evenly spread.
    /// The same ones every time.
    pub fn wants(point: u64, of: u64, sample: u64) -> bool {
        let wanted = variable(WANTED);
        let wanted = match wanted.as_deref() {
            Some("all") => of,
            Some(number) => number.parse().expect("`all`, or a number of points"),
            None => sample,
        };
        of <= wanted || (point * wanted + SEED) % of < wanted
    }

    /// One more, which survives unless this panics.
    pub fn try_one(&mut self, survives: impl FnOnce()) {
        self.tried += 1;
        // What is counted as lost is told by its panic, and the others are tried all the same.
        self.survived += u64::from(catch_unwind(AssertUnwindSafe(survives)).is_ok());
    }

    /// Remembers how it went on.
    pub fn went_on(&mut self, fate: impl Display) {
        *self.fates.entry(fate.to_string()).or_default() += 1;
    }

    /// How many were tried.
    pub fn tried(&self) -> u64 {
        self.tried
    }

    /// Says what came of them, and goes on only where all survived.
    ///
    /// # Panics
    ///
    /// Where one of them did not.
    pub fn report(&self) {
        self.tell();
        self.check();
    }

    /// Panics where one of them did not survive.
    pub fn check(&self) {
        assert_eq!(self.tried, self.survived, "{}", self.what);
    }

    /// Says what came of them.
    pub fn tell(&self) {
        let Self { what, tried, survived, fates } = self;
        let fates: Vec<String> =
            fates.iter().map(|(fate, many)| format!("{many} {fate}")).collect();
        let fates =
            if fates.is_empty() { String::new() } else { format!(" ({})", fates.join(", ")) };
        #[expect(clippy::print_stdout, reason = "the counts are what the suite is for")]
        {
            println!("faults: {what}: {tried} points tried, {survived} survived{fates}");
        }
        soak::write_down(what, *tried, *survived);
    }
}

fn variable(name: &str) -> Option<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests are told by their caller how thorough to be"
    )]
    std::env::var(name).ok()
}
