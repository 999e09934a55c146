//! Maps of many pieces, in the middle of their work.

use std::time::Duration;

use offshoot_model::{
    BudgetGrant, Cost, Ending, Event, EventKind, MicroUsd, Payload, Reason, RunId, TokenCount,
    Usage,
};

use super::script::Script;
use super::{COMPLETED, run};

/// The pieces that run at the same time.
const SLOTS: u32 = 4;

/// A map of so many pieces below [`run(0)`](run): three quarters are over, of which each fiftieth failed, four run, the others wait for
/// a slot.
pub fn many(pieces: u32) -> Vec<Event> {
    let mut script = Script::default();
    map(&mut script, "count words", pieces);
    debug_assert!(script.events.first().is_some_and(|first| first.run == run(0)));
    script.events
}

/// Two such maps of forty pieces, the second begun after the first was paused.
pub fn two_maps() -> Vec<Event> {
    let mut script = Script::default();
    let first = map(&mut script, "count words", 40);
    script.say(first, EventKind::Paused);
    map(&mut script, "translate the handbook", 40);
    script.events
}

fn map(script: &mut Script, label: &str, pieces: u32) -> RunId {
    script.budget = BudgetGrant { tokens: None, usd: Some(MicroUsd::from_micros(5_000_000)) };
    let root = script.root("main", label, None);
    script.budget = BudgetGrant::default();
    let runs: Vec<_> =
        (1..=pieces).map(|n| script.piece(root, &format!("part-{n:03}.txt"))).collect();
    let over = (pieces * 3 / 4) as usize;
    let count = TokenCount::Known;
    let usage = Usage { input: count(1_200), output: count(85), ..Usage::default() };
    let cost = Cost::known(MicroUsd::from_micros(3_000_000 / u64::from(pieces.max(1))));
    for (number, piece) in (1..).zip(&runs[..over]) {
        script.after(20).start(*piece);
        let ending = match number % 50 {
            0 => Ending {
                diagnostics: Some(format!("reading\nFileNotFoundError: part-{number:03}.txt")),
                ..Ending::of(Reason::ExitCode { code: 1 })
            },
            _ => Ending { output: Some(Payload::text("words: 12")), ..Ending::of(COMPLETED) },
        };
        script.after(400).end(*piece, Ending { usage, cost, ..ending });
    }
    for piece in runs[over..].iter().take(SLOTS as usize) {
        script.after(30).start(*piece);
    }
    if let Some(piece) = runs.get(over) {
        script.say(*piece, EventKind::Reported { text: "half of it is read".into() });
    }
    script.after(Duration::from_secs(95).as_millis() as u64);
    root
}
