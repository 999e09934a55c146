//! Chores of the workspace: what a person would otherwise have to remember.
//!
//! ```text
//!  ci ──▶ fmt · clippy · test · doc test · doc ──▶ cargo
//!     ├─▶ tidy          rules of the project that no compiler knows
//!     └─▶ regenerate    what is made from the code is still what the code makes
//! ```

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a chore prints for the developer")]

mod bench;
mod cargo;
mod ci;
mod make_log;
mod mutants;
mod package;
mod regenerate;
mod soak;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use workspace::Workspace;

/// An error that stops a chore is shown and ends it; nothing here handles one error unlike another.
type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

const USAGE: &str = "\
Chores of the workspace.

Usage: cargo xtask <CHORE>

  ci                      all that must hold before a change goes in; stops at the first failure
  test                    all tests, doc tests too
  tidy                    the rules of the project that no compiler knows
  regenerate [--check]    write what is made from the code, or compare it
  bench [ARGUMENTS]       offshoot beside its peers, in release
  soak [POINTS] [--faults N] [--write]
                          kills supervisors at so many random moments (500) and resumes their trees, then tries
                          every fault below the record and the command, or N of each kind; prints the counts as they
                          stand in docs/durability.md, or writes them there
  mutants [policy|meter|machine] [ARGUMENTS]
                          changes what decides, one place at a time, and names each change that no test notices and
                          xtask/survivors.txt does not explain; arguments go to `cargo mutants`. Takes hours
  package [ARGUMENTS]     the archives of all published crates, each unpacked and built; arguments go to `cargo package`
  make-log --bytes SIZE [--seed N] FILE
                          a log of exactly that size (512k, 64m, 1g), the same for the same seed
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["ci"] => ci::run(),
        ["test"] => test::run(),
        ["tidy"] => Workspace::read().and_then(|workspace| tidy::run(&workspace)),
        ["regenerate"] => regenerate::write(),
        ["regenerate", "--check"] => regenerate::check(),
        ["bench", rest @ ..] => bench::run(rest),
        ["soak", rest @ ..] => soak::run(rest),
        ["mutants", rest @ ..] => mutants::run(rest),
        ["package", rest @ ..] => package::run(rest),
        ["make-log", rest @ ..] => make_log::run(rest),
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            Ok(())
        }
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
