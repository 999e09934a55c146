//! One trial: a context of a recipe, labelled by agents that do wrong as often as asked for, and scored.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use offshoot_config::{Config, ConfigErrors, Loader, Source, SourceKind};
use offshoot_host::Environment;
use offshoot_spawner::RunSpec;
use serde::Serialize;

use crate::{
    Corpus, Faults, Harvest, Plan, Profiles, QUESTIONS, Recipe, RunError, Score, configuration,
    endpoint, labeller, mean, run, scores,
};

/// The agents that label.
#[derive(Clone, Debug, PartialEq)]
pub enum Agents {
    /// The program of these benchmarks, a process for each piece. Above one level a process hands its piece on in parts, by `offshoot map`.
    Programs {
        /// The program.
        program: PathBuf,
        /// Levels of agents below the root.
        levels: u32,
    },
    /// A chat endpoint on loopback.
    Chat,
    /// A runtime of a configuration, with what its models cost.
    Configured {
        /// The name of the runtime.
        runtime: String,
        /// Path and text of the configuration.
        config: (PathBuf, String),
    },
}

/// The setting that is tried.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The context.
    pub recipe: Recipe,
    /// The size of a piece in bytes; the whole context is one piece where absent.
    pub piece: Option<NonZeroU64>,
    /// The agents.
    pub agents: Agents,
    /// The rates at which agents of our own do wrong.
    pub faults: Faults,
    /// Agents at once.
    pub at_once: u32,
    /// Further attempts of a run that was killed.
    pub retries: u32,
    /// A piece is asked for at most so many times.
    pub rounds: u32,
}

/// The numbers of a trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The mean F1 of the tasks that have an answer.
    pub f1: Option<f64>,
    /// The tasks that have none; in these no pair, too, was answered where F1 is 1.
    pub empty: Vec<u8>,
    /// The score of each task.
    pub scores: Vec<Score>,
    /// The hash of all answers: equal for two trials that answered the same.
    pub answers: String,
    /// The usage of the tree.
    #[serde(flatten)]
    pub harvest: Harvest,
}

/// A trial that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// A file cannot be written, or no socket be bound.
    #[error("the trial cannot be prepared")]
    Io(#[from] std::io::Error),
    /// The configuration cannot be used.
    #[error("the configuration cannot be used")]
    Config(#[from] ConfigErrors),
    /// The run failed.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl Trial {
    /// A trial with a perfect labeller: a process for each piece of 8 KiB, four at once.
    pub fn perfect(tokens: u64, seed: u64, program: PathBuf) -> Self {
        Self {
            recipe: Recipe { tokens, seed, users: None },
            piece: NonZeroU64::new(8 * 1024),
            agents: Agents::Programs { program, levels: 1 },
            faults: Faults { seed, ..Faults::default() },
            at_once: 4,
            retries: 0,
            rounds: 1,
        }
    }

    /// Makes the trial in a folder, which keeps context and record. `told` hears each piece that is over.
    ///
    /// # Errors
    ///
    /// See [`TrialError`].
    pub async fn make(
        &self,
        folder: &Path,
        environment: Environment,
        told: impl FnMut(&str),
    ) -> Result<Report, TrialError> {
        let corpus = Corpus::generate(&self.recipe);
        let (context, asks) = (folder.join("context.txt"), folder.join("asks"));
        std::fs::create_dir_all(&asks)?;
        std::fs::write(&context, corpus.text())?;
        let folder = folder.canonicalize()?;
        let mut loader = self.limits();
        let mut api = None;
        let run_spec = match &self.agents {
            Agents::Programs { program, levels } => {
                RunSpec::command(&folder, labeller(program, &self.faults, &asks, *levels))
            }
            Agents::Chat => {
                let api = api.insert(endpoint(self.faults)?);
                let text = configuration(api);
                loader = loader.file(Source::new(SourceKind::File, "endpoint.toml", text));
                RunSpec { runtime: Some("openai".into()), ..RunSpec::in_folder(&folder) }
            }
            Agents::Configured { runtime, config: (path, text) } => {
                loader = loader.file(Source::new(SourceKind::File, path, text));
                RunSpec { runtime: Some(runtime.as_str().into()), ..RunSpec::in_folder(&folder) }
            }
        };
        let config: Config = loader.load()?;
        let (piece, rounds) = (self.piece, self.rounds);
        let data = folder.join("data");
        let plan = Plan { context, piece, run_spec, config, environment, folder: data, rounds };
        let harvest = run(&plan, told).await?;
        Ok(Report::of(&corpus, harvest))
    }

    fn limits(&self) -> Loader {
        let key = |name: &str| format!("agents.defaults.subagents.{name}");
        let loader = Loader::new()
            .set(key("maxConcurrent"), self.at_once)
            .set(key("allowRecursiveSpawn"), true)
            .set(key("maxDepth"), 10)
            // Faults are injected here, and come in a row by chance: an agent is not broken for that.
            .set(key("breaker.failures"), 0)
            .set(key("maxSpawns"), 1_000_000);
        match self.retries {
            0 => loader,
            retries => {
                let loader =
                    loader.set(key("retries.count"), retries).set(key("retries.backoffSeconds"), 0);
                match self.agents {
                    Agents::Programs { .. } => loader.set(key("retries.on"), "signal"),
                    _ => loader,
                }
            }
        }
    }
}

impl Report {
    fn of(corpus: &Corpus, harvest: Harvest) -> Self {
        let truth: Profiles = corpus.labelled().into_iter().collect();
        let answered: Profiles = harvest.labelled.iter().copied().collect();
        let scores = scores(&truth, &answered);
        let mut hash = blake3::Hasher::new();
        for question in &QUESTIONS {
            hash.update(&[question.number]);
            for (low, high) in answered.pairs(question) {
                hash.update(&low.to_le_bytes()).update(&high.to_le_bytes());
            }
        }
        let empty =
            scores.iter().filter(|score| score.is_empty()).map(|score| score.task).collect();
        let answers = hash.finalize().to_hex().to_string();
        Self { f1: mean(&scores), empty, scores, answers, harvest }
    }

    /// True if each task that has an answer was answered with exactly that.
    pub fn is_perfect(&self) -> bool {
        let exact = |score: &Score| score.hits == score.expected && score.answered == score.hits;
        self.f1.is_some() && self.scores.iter().all(exact)
    }
}
