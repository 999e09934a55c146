//! `oolong-pairs`: makes contexts, runs the benchmark, and is the agent that labels.

mod agent;
mod arguments;
mod table;

use std::error::Error;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser as _;
use offshoot_host::Environment;
use offshoot_oolong_pairs::{Corpus, Profiles, QUESTIONS, Recipe, Report, Trial, TrialError};

use arguments::{Arguments, Command, GenerateArguments, RunArguments};

type Result<T = ()> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> ExitCode {
    match dispatch(Arguments::parse().command) {
        Ok(code) => code,
        Err(error) => {
            let mut causes = vec![error.to_string()];
            let mut cause = error.source();
            while let Some(error) = cause {
                causes.push(error.to_string());
                cause = error.source();
            }
            say(&format!("oolong-pairs: {}", causes.join(": ")));
            ExitCode::FAILURE
        }
    }
}

fn dispatch(command: Command) -> Result<ExitCode> {
    match command {
        Command::Generate(arguments) => generate(&arguments).map(|()| ExitCode::SUCCESS),
        Command::Run(arguments) => run(&arguments),
        Command::Prove(arguments) => {
            table::prove(&arguments.sizes, arguments.seed, &environment(arguments.offshoot)?)
        }
        Command::Table(arguments) => {
            table::faults(&arguments, &environment(arguments.offshoot.clone())?)
                .map(|()| ExitCode::SUCCESS)
        }
        Command::Label(arguments) => agent::run(&arguments),
    }
}

/// Writes context, labels and questions with the pairs that are right.
fn generate(arguments: &GenerateArguments) -> Result {
    let GenerateArguments { tokens, seed, users, folder } = arguments;
    let corpus = Corpus::generate(&Recipe { tokens: tokens.0, seed: *seed, users: *users });
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("context.txt"), corpus.text())?;
    let labelled = corpus.labelled();
    let labels: String = labelled.iter().map(|labelled| format!("{labelled}\n")).collect();
    std::fs::write(folder.join("labels.txt"), labels)?;
    let profiles: Profiles = labelled.into_iter().collect();
    let mut questions = std::fs::File::create(folder.join("questions.jsonl"))?;
    for question in &QUESTIONS {
        let line = serde_json::json!({
            "task": question.number,
            "question": question.to_string(),
            "pairs": profiles.pairs(question),
        });
        writeln!(questions, "{line}")?;
    }
    print(&format!("{} entries in {}", corpus.entries.len(), folder.join("context.txt").display()));
    Ok(())
}

fn run(arguments: &RunArguments) -> Result<ExitCode> {
    let trial = arguments.trial()?;
    let environment = environment(arguments.offshoot.clone())?;
    let temporary;
    let folder = match &arguments.folder {
        Some(folder) => folder,
        None => {
            temporary = tempfile::tempdir()?;
            temporary.path()
        }
    };
    let told = |piece: &str| {
        if arguments.verbose {
            say(&format!("{piece} is over"));
        }
    };
    let report = make(&trial, folder, &environment, told)?;
    if arguments.json {
        print(&serde_json::to_string(&report)?);
    } else {
        print(&table::scores(&report));
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes a trial in a tokio runtime of its own.
fn make(
    trial: &Trial,
    folder: &Path,
    environment: &Environment,
    told: impl FnMut(&str),
) -> std::result::Result<Report, TrialError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(trial.make(folder, environment.clone(), told))
}

fn environment(offshoot: Option<PathBuf>) -> Result<Environment> {
    Ok(match offshoot {
        Some(offshoot) => Environment::of(std::env::vars_os().collect(), offshoot.canonicalize()?),
        None => Environment::of_process()?,
    })
}

#[expect(clippy::print_stdout, reason = "the output of the program")]
fn print(text: &str) {
    println!("{text}");
}

#[expect(clippy::print_stderr, reason = "what the program has to say besides its output")]
fn say(text: &str) {
    eprintln!("{text}");
}
