//! offshoot beside its peers, in one run and in turns.
//!
//! ```text
//!   rows ──▶ comparison ──▶ outcome ──▶ the terminal, JSON
//!             each side, one after the other, round by round
//! ```
//!
//! Promise: a number stands beside the number of a peer that was taken a moment before or after it on the same machine.
//! What is compared is the ratio of the two within one round; its median and its spread over the rounds are shown.
//! A peer that is not installed is named as missing and not made up.
#![expect(
    clippy::disallowed_methods,
    reason = "the clock, processes and tasks of peers are what this is about"
)]
#![expect(clippy::print_stdout, reason = "what was measured is what this is run for")]
#![expect(clippy::print_stderr, reason = "how it goes stands beside what was measured")]

mod alone;
mod arguments;
mod comparison;
mod engine;
mod inserts;
mod log;
mod outcome;
mod plugins;
mod programs;
mod rows;
mod setting;

use std::error::Error;
use std::process::ExitCode;

use arguments::{Arguments, Mode};
use outcome::Report;
use setting::Setting;

/// An error that stops a measurement is shown and ends it.
type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // Before anything else: a keeper must be alone in its process.
    if arguments.first().map(String::as_str) == Some(engine::KEEPER) {
        offshoot_process::run_keeper();
    }
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// True if all that was asked for could be measured.
fn run(arguments: &[String]) -> Result<bool> {
    let arguments = match Mode::parse(arguments)? {
        Mode::Help => {
            print!("{}", arguments::USAGE);
            return Ok(true);
        }
        Mode::List => {
            for row in rows::ALL {
                println!("{:<14}{}", row.name, row.what);
            }
            return Ok(true);
        }
        Mode::Alone(order) => return alone::run(&order).map(|()| true),
        Mode::Measure(arguments) => arguments,
    };
    let Arguments { quick, only, folder, json } = arguments;
    let setting = Setting::new(quick, folder.as_deref())?;
    let mut report = Report::of_this_machine(quick);
    let mut complete = true;
    let wanted = |name: &str| only.is_empty() || only.iter().any(|only| only == name);
    for row in rows::ALL.iter().filter(|row| wanted(row.name)) {
        eprintln!("measuring {}: {}", row.name, row.what);
        match (row.measure)(&setting) {
            Ok(outcome) => {
                println!("{}", outcome.text(row));
                report.add(row, outcome);
            }
            // The other rows took minutes, and say what they say without this one.
            Err(error) => {
                eprintln!("error: {}: {error}", row.name);
                complete = false;
            }
        }
    }
    let json = json.unwrap_or_else(|| setting.target().join("bench.json"));
    report.write(&json)?;
    println!("{}", report.summary());
    eprintln!("wrote {}", json.display());
    Ok(complete)
}
