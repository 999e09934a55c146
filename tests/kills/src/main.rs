//! `cargo xtask soak`: many kills, and how many were survived.

#![expect(clippy::print_stdout, reason = "a chore prints for the developer")]

use std::fs::OpenOptions;
use std::io::Write;
use std::process::ExitCode;

use offshoot_kills::{RUNS, Survived, kill, undisturbed};

/// As the specification asks.
const POINTS: u64 = 500;

/// A file to which the counts are added, as the other faults do.
const COUNTS: &str = "OFFSHOOT_FAULT_COUNTS";

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
    write_down(&format!("{what}\t{points}\t{}\n", points - failed));
    // Moments that all fall outside the life of a tree prove nothing.
    if failed == 0 && resumed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[expect(clippy::disallowed_methods, reason = "a chore is told by its caller where its counts go")]
fn write_down(line: &str) {
    let Ok(path) = std::env::var(COUNTS) else { return };
    let file = OpenOptions::new().append(true).create(true).open(path);
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    written.expect("the counts can be written down");
}
