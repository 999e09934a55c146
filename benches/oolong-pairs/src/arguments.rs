//! The command line.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand};
use offshoot_oolong_pairs::{Agents, Faults, Recipe, Trial};

use crate::Result;

/// OOLONG-Pairs, by context decomposition with offshoot.
#[derive(Debug, Parser)]
#[command(name = "oolong-pairs", version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a context, its labels and the questions with their answers
    Generate(GenerateArguments),
    /// Run one trial, and print F1 of each task and what it took
    Run(RunArguments),
    /// Show that a perfect labeller reaches F1 = 1 at each size, twice identically; exit code 1 if not
    Prove(ProveArguments),
    /// Print the table of what errors, refusals and kills do
    Table(TableArguments),
    /// Label the entries on standard input: the agent of the benchmark
    Label(LabelArguments),
}

#[derive(Debug, Args)]
pub(crate) struct GenerateArguments {
    /// The length of context and question, such as 32k
    #[arg(long, default_value = "8k")]
    pub(crate) tokens: Tokens,
    /// The seed
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Users by entries [default: drawn from 0.05 to 0.3]
    #[arg(long)]
    pub(crate) users: Option<f64>,
    /// The folder of the files
    pub(crate) folder: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// The length of context and question, such as 32k
    #[arg(long, default_value = "8k")]
    tokens: Tokens,
    /// The seed of context and faults
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Users by entries [default: drawn from 0.05 to 0.3]
    #[arg(long)]
    users: Option<f64>,
    /// The size of a piece in bytes; 0 gives the whole context to one agent
    #[arg(long, default_value_t = 8192)]
    piece: u64,
    /// Levels of agents below the root; above 1 an agent hands its piece on in parts
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=9))]
    levels: u32,
    /// Label by a chat endpoint on loopback in place of processes
    #[arg(long, conflicts_with = "levels")]
    chat: bool,
    /// Label by this runtime, as --config has it
    #[arg(long, requires = "config", conflicts_with_all = ["chat", "levels"])]
    runtime: Option<String>,
    /// A configuration with the settings of the runtime
    #[arg(long)]
    config: Option<PathBuf>,
    /// The share of the lines with a wrong label
    #[arg(long, default_value_t = 0.0)]
    label_errors: f64,
    /// The share of the calls that are answered with a refusal
    #[arg(long, default_value_t = 0.0)]
    refusals: f64,
    /// The share of the calls that die
    #[arg(long, default_value_t = 0.0)]
    kills: f64,
    /// Agents at once
    #[arg(long, default_value_t = 4)]
    at_once: u32,
    /// Further attempts of a run that died
    #[arg(long, default_value_t = 0)]
    retries: u32,
    /// A piece without a whole answer is asked for at most so many times
    #[arg(long, default_value_t = 1)]
    rounds: u32,
    /// Keeps context and record; a trial that was interrupted in it goes on
    #[arg(long)]
    pub(crate) folder: Option<PathBuf>,
    /// The `offshoot` command [default: that in PATH]
    #[arg(long)]
    pub(crate) offshoot: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Tell of each piece that is over
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ProveArguments {
    /// The sizes
    #[arg(long, value_delimiter = ',', default_value = "8k,32k,256k")]
    pub(crate) sizes: Vec<Tokens>,
    /// The seed
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// The `offshoot` command [default: that in PATH]
    #[arg(long)]
    pub(crate) offshoot: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct TableArguments {
    /// The length of context and question
    #[arg(long, default_value = "32k")]
    pub(crate) tokens: Tokens,
    /// The seed
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// The `offshoot` command [default: that in PATH]
    #[arg(long)]
    pub(crate) offshoot: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct LabelArguments {
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    #[arg(long, default_value_t = 0.0)]
    pub(crate) label_errors: f64,
    #[arg(long, default_value_t = 0.0)]
    pub(crate) refusals: f64,
    #[arg(long, default_value_t = 0.0)]
    pub(crate) kills: f64,
    /// A folder in which calls are counted
    #[arg(long)]
    pub(crate) asks: PathBuf,
    #[arg(long, default_value_t = 1)]
    pub(crate) levels: u32,
    /// The command by which a part is handed on; agents have it in their environment
    #[arg(long, env = "OFFSHOOT", default_value = "offshoot")]
    pub(crate) offshoot: PathBuf,
}

/// A number of tokens: `8000`, `8k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tokens(pub(crate) u64);

impl FromStr for Tokens {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (number, factor) = match text.strip_suffix(['k', 'K']) {
            Some(number) => (number, 1000),
            None => (text, 1),
        };
        let tokens = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
        let tokens = tokens.filter(|tokens| (100..=10_000_000).contains(tokens));
        tokens.map(Self).ok_or_else(|| "give a number from 100 to 10000k, such as 32k".to_owned())
    }
}

impl RunArguments {
    pub(crate) fn trial(&self) -> Result<Trial> {
        let &Self { tokens, seed, users, piece, levels, label_errors, refusals, kills, .. } = self;
        let agents = match (&self.runtime, &self.config) {
            (Some(runtime), Some(config)) => {
                let text = std::fs::read_to_string(config)
                    .map_err(|error| format!("{}: {error}", config.display()))?;
                Agents::Configured { runtime: runtime.clone(), config: (config.clone(), text) }
            }
            _ if self.chat => Agents::Chat,
            _ => Agents::Programs { program: std::env::current_exe()?, levels },
        };
        Ok(Trial {
            recipe: Recipe { tokens: tokens.0, seed, users },
            piece: NonZeroU64::new(piece),
            agents,
            faults: Faults { seed, label_errors, refusals, kills },
            at_once: self.at_once,
            retries: self.retries,
            rounds: self.rounds,
        })
    }
}
