//! `cargo xtask soak`: many kills, and how many were survived.

#![expect(clippy::print_stdout, reason = "a chore prints for the developer")]

use std::process::ExitCode;

use offshoot_kills::{
    ISOLATED_RUNS, Kept, RUNS, Survived, Victim, kill, kill_isolated, undisturbed,
    undisturbed_isolated,
};
use offshoot_test_support::soak;

/// As the specification asks.
const POINTS: u64 = 500;

fn main() -> ExitCode {
    let points = std::env::args().nth(1).and_then(|many| many.parse().ok()).unwrap_or(POINTS);
    let within = match undisturbed() {
        Ok(within) => within,
        Err(error) => {
            println!("an undisturbed tree: {error}");
            return ExitCode::FAILURE;
        }
    };
    println!("an undisturbed tree takes {} ms here", within.as_millis());
    let (mut before, mut resumed, mut after, mut failed) = (0_u64, 0_u64, 0_u64, 0_u64);
    for seed in 0..points {
        match kill(seed, within) {
            Ok(Survived::BeforeItBegan) => before += 1,
            Ok(Survived::Resumed { .. }) => resumed += 1,
            Ok(Survived::AfterItEnded) => after += 1,
            Err(error) => {
                failed += 1;
                println!("seed {seed}: {error}");
            }
        }
    }
    println!(
        "{points} points tried: {resumed} resumed, {before} before anything was on record, {after} after the end, {failed} failed"
    );
    let what = format!(
        "the supervisor of {RUNS} runs is killed at a random moment ({resumed} in the life of the tree, {before} before anything was on record, {after} after its end), then audited and resumed"
    );
    soak::write_down(&what, points, points - failed);
    let isolated = isolated(points);
    // Moments that all fall outside the life of a tree prove nothing.
    if failed == 0 && resumed > 0 && isolated { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Kills agents and supervisors of runs in folders of their own. True if nothing was lost.
fn isolated(points: u64) -> bool {
    let within = match undisturbed_isolated() {
        Ok(within) => within,
        Err(error) => {
            println!("an undisturbed tree of folders: {error}");
            return false;
        }
    };
    println!("an undisturbed tree of {ISOLATED_RUNS} folders takes {} ms here", within.as_millis());
    let mut sound = true;
    for (victim, what) in [
        (Victim::Agent, "an agent is"),
        (Victim::Supervisor, "the supervisor, and by half of the seeds the next one too, is"),
        (Victim::Both, "an agent and at once the supervisor are"),
    ] {
        let (mut tried, mut failed, mut all) = (0_u64, 0_u64, Kept::default());
        for seed in (0..points).filter(|seed| Victim::of(*seed) == victim) {
            tried += 1;
            match kill_isolated(seed, within) {
                Ok(kept) => {
                    all.kills += kept.kills;
                    all.lines += kept.lines;
                    all.cut_off += kept.cut_off;
                }
                Err(error) => {
                    failed += 1;
                    println!("seed {seed}: {error}");
                }
            }
        }
        let what = format!(
            "{what} killed while {ISOLATED_RUNS} runs work in folders of their own ({} kills, {} attempts cut off with changes): {} lines of theirs on record, no folder left",
            all.kills, all.cut_off, all.lines
        );
        println!("{what}: {tried} tried, {failed} failed");
        soak::write_down(&what, tried, tried - failed);
        sound &= failed == 0 && (all.kills > 0 || tried < 3);
    }
    sound
}
