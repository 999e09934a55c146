//! All that must hold before a change goes in. The same on a laptop and on a server.

use std::time::{Duration, Instant};

use crate::workspace::Workspace;
use crate::{Result, cargo, regenerate, test, tidy};

struct Step {
    name: &'static str,
    run: fn() -> Result,
}

/// Cheap steps first: what fails should fail soon. The tests build everything that follows needs.
const STEPS: &[Step] = &[
    Step { name: "fmt", run: || cargo::run(&["fmt", "--all", "--check"], &[]) },
    Step { name: "tidy", run: || tidy::run(&Workspace::read()?) },
    Step { name: "clippy", run: clippy },
    Step { name: "test", run: test::run },
    Step { name: "doc", run: doc },
    Step { name: "regenerate", run: regenerate::check },
];

/// Runs the steps until one fails, and prints a line for each.
pub(crate) fn run() -> Result {
    let mut done = Vec::new();
    let mut outcome = Ok(());
    for step in STEPS {
        println!("── {}", step.name);
        let started = now();
        let result = (step.run)();
        let word = if result.is_ok() { "ok" } else { "FAILED" };
        done.push(line(word, step.name, started.elapsed()));
        if let Err(error) = result {
            outcome = Err(format!("step `{}`: {error}", step.name).into());
            break;
        }
    }
    println!("──");
    done.iter().for_each(|line| println!("{line}"));
    outcome
}

fn clippy() -> Result {
    let line = ["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"];
    cargo::run(&line, &[])
}

fn doc() -> Result {
    cargo::run(&["doc", "--quiet", "--workspace", "--no-deps"], &[("RUSTDOCFLAGS", "-Dwarnings")])
}

fn line(word: &str, name: &str, took: Duration) -> String {
    format!("{word:<6} {name:<10} {:>7.1} s", took.as_secs_f64())
}

#[expect(clippy::disallowed_methods, reason = "a chore measures its own steps")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_one_line() {
        assert_eq!(line("ok", "fmt", Duration::from_millis(1_240)), "ok     fmt            1.2 s");
        let failed = line("FAILED", "regenerate", Duration::from_secs(120));
        assert_eq!(failed, "FAILED regenerate   120.0 s");
    }
}
