//! Reports as text, and the trials that make a table.

use std::fmt::Write as _;
use std::process::ExitCode;

use offshoot_host::Environment;
use offshoot_oolong_pairs::{Agents, Faults, Report, Trial};

use crate::arguments::{TableArguments, Tokens};
use crate::{Result, make, print, say};

/// Returns the scores of a report, and what it took.
pub(crate) fn scores(report: &Report) -> String {
    let mut text = "task  pairs  answered  right     F1\n".to_owned();
    for score in &report.scores {
        let apart = if score.is_empty() { "  (no pair is right)" } else { "" };
        let (task, f1) = (score.task, score.f1());
        let (expected, answered, hits) = (score.expected, score.answered, score.hits);
        writeln!(text, "{task:>4} {expected:>6} {answered:>9} {hits:>6} {f1:>6.3}{apart}")
            .expect("a string takes text");
    }
    let harvest = &report.harvest;
    let failures: Vec<String> =
        harvest.failures.iter().map(|(code, count)| format!("{count} {code}")).collect();
    let failures = if failures.is_empty() { "none".to_owned() } else { failures.join(", ") };
    writeln!(text, "mean  {}", f1(report)).expect("a string takes text");
    writeln!(text, "pieces {}, without a whole answer {}", harvest.pieces, harvest.missing)
        .expect("a string takes text");
    write!(text, "calls {}, failures {failures}; {}", harvest.calls, took(report))
        .expect("a string takes text");
    text
}

fn f1(report: &Report) -> String {
    report.f1.map_or_else(|| "–".to_owned(), |f1| format!("{f1:.3}"))
}

fn took(report: &Report) -> String {
    let harvest = &report.harvest;
    let bound = if harvest.at_least { "≥ " } else { "" };
    let seconds = harvest.milliseconds as f64 / 1000.0;
    format!("{bound}{} tokens, {bound}${}, {seconds:.2} s", harvest.tokens, harvest.usd)
}

/// Proves that a perfect labeller reaches F1 = 1 at each size, twice identically, by processes and by a chat endpoint.
pub(crate) fn prove(sizes: &[Tokens], seed: u64, environment: &Environment) -> Result<ExitCode> {
    print("| tokens | agents | pieces | calls | tasks with pairs | F1 | again | time |");
    print("|---:|---|---:|---:|---:|---:|---|---:|");
    let program = std::env::current_exe()?;
    let mut all = true;
    for &Tokens(tokens) in sizes {
        for (name, agents) in [
            ("processes", Agents::Programs { program: program.clone(), levels: 1 }),
            ("processes, 2 levels", Agents::Programs { program: program.clone(), levels: 2 }),
            ("chat endpoint", Agents::Chat),
        ] {
            let trial = Trial { agents, ..Trial::perfect(tokens, seed, program.clone()) };
            let once = tried(&trial, environment)?;
            let again = tried(&trial, environment)?;
            let same = once.answers == again.answers && once.scores == again.scores;
            all &= same && once.is_perfect() && again.is_perfect();
            let harvest = &once.harvest;
            let filled = once.scores.len() - once.empty.len();
            print(&format!(
                "| {tokens} | {name} | {} | {} | {filled} | {} | {} | {:.2} s |",
                harvest.pieces,
                harvest.calls,
                f1(&once),
                if same { "identical" } else { "differs" },
                harvest.milliseconds as f64 / 1000.0,
            ));
        }
    }
    if !all {
        say("a perfect labeller did not reach F1 = 1 twice identically");
    }
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints what errors, refusals and kills do to F1, calls, tokens, dollars and time.
pub(crate) fn faults(arguments: &TableArguments, environment: &Environment) -> Result {
    let (program, seed) = (std::env::current_exe()?, arguments.seed);
    print(
        "| agents | labels wrong | refused | killed | attempts | rounds | F1 | lost pieces | calls | tokens | dollars | time |",
    );
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    // Shares of lines and calls, attempts of a run, rounds.
    let rows = [
        (0.0, 0.0, 0.0, 1, 1),
        (0.01, 0.0, 0.0, 1, 1),
        (0.05, 0.0, 0.0, 1, 1),
        (0.2, 0.0, 0.0, 1, 1),
        (0.0, 0.2, 0.0, 1, 1),
        (0.0, 0.2, 0.0, 1, 5),
        (0.0, 0.0, 0.2, 1, 1),
        (0.0, 0.0, 0.2, 4, 1),
        (0.0, 0.0, 0.2, 1, 5),
        (0.01, 0.1, 0.1, 4, 5),
    ];
    let kinds = [
        ("chat endpoint", Agents::Chat),
        ("processes", Agents::Programs { program: program.clone(), levels: 1 }),
    ];
    for (name, agents) in kinds {
        for (label_errors, refusals, kills, attempts, rounds) in rows {
            let perfect = Trial::perfect(arguments.tokens.0, seed, program.clone());
            let trial = Trial {
                agents: agents.clone(),
                faults: Faults { seed, label_errors, refusals, kills },
                retries: attempts - 1,
                rounds,
                ..perfect
            };
            let report = tried(&trial, environment)?;
            let harvest = &report.harvest;
            let bound = if harvest.at_least { "≥ " } else { "" };
            let percent = |share: f64| format!("{:.0} %", share * 100.0);
            print(&format!(
                "| {name} | {} | {} | {} | {attempts} | {rounds} | {} | {} of {} | {} | {bound}{} | {bound}{} | {:.2} s |",
                percent(label_errors),
                percent(refusals),
                percent(kills),
                f1(&report),
                harvest.missing,
                harvest.pieces,
                harvest.calls,
                harvest.tokens,
                harvest.usd,
                harvest.milliseconds as f64 / 1000.0,
            ));
        }
    }
    Ok(())
}

fn tried(trial: &Trial, environment: &Environment) -> Result<Report> {
    let folder = tempfile::tempdir()?;
    Ok(make(trial, folder.path(), environment, |_| {})?)
}
