//! The runner: cuts the context, has each piece labelled by an agent of one tree, and asks again for pieces without a whole answer.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use offshoot_config::Config;
use offshoot_host::{Environment, Host, HostError, Tree};
use offshoot_merge::{OnFailure, Strategy};
use offshoot_model::{Event, EventKind, MicroUsd, RootId, SpawnRequest, TokenCount};
use offshoot_spawner::{Clock as _, FanOut, Piece, RootSpec, RunSpec, SpawnerError, SystemClock};
use offshoot_split::{Split, cut};
use offshoot_store::{DataFolder, Store as _, StoreError};

use crate::{Entry, Labelled};

/// The instruction that each agent gets with its piece.
pub const TASK: &str = "Each line of your input is an entry: a date, the id of a user, and an instance, which is a question. Label \
    what each instance asks for: D description and abstract concept, E entity, H human being, N numeric value, L location, A \
    abbreviation. Answer with one line for each entry, in their order, and with nothing else: the id of the user, the date as \
    YYYY-MM-DD and the letter of the label, such as `76153 2023-02-02 H`.";

/// The tree to run, and the way to run it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The file with the context.
    pub context: PathBuf,
    /// The size of a piece in bytes, cut at the ends of lines; the whole context is one piece where absent.
    pub piece: Option<NonZeroU64>,
    /// Runtime and command of the agents.
    pub run_spec: RunSpec,
    /// The limits of the tree, and the settings of the runtimes.
    pub config: Config,
    /// The variables, and the `offshoot` command.
    pub environment: Environment,
    /// The data folder. An interrupted tree in it goes on.
    pub folder: PathBuf,
    /// A piece is asked for at most so many times.
    pub rounds: u32,
}

/// The result of a tree.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Harvest {
    /// The labels of all pieces, in the order of the context.
    #[serde(skip)]
    pub labelled: Vec<Labelled>,
    /// The tree, for `offshoot show` and `offshoot audit`.
    #[serde(skip)]
    pub root: RootId,
    /// Pieces of the context.
    pub pieces: usize,
    /// Pieces without a whole answer after all rounds.
    pub missing: usize,
    /// Starts of agents, repeated ones and those below a piece among them.
    pub calls: u64,
    /// Runs that did not complete, by the code of the reason.
    pub failures: BTreeMap<String, u64>,
    /// Tokens read and written.
    pub tokens: u64,
    /// True if there were more tokens, or more was spent, than is known.
    pub at_least: bool,
    /// The cost.
    pub usd: MicroUsd,
    /// From the opening of the tree to its end.
    pub milliseconds: u64,
}

/// A run that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The context cannot be read.
    #[error("the context cannot be read")]
    Context(#[source] io::Error),
    /// The context cannot be cut.
    #[error("the context cannot be cut")]
    Cut(#[source] offshoot_split::SplitError),
    /// A line of the context is no entry.
    #[error("the context has a line that is no entry")]
    Line(#[source] crate::ParseLineError),
    /// The host cannot be started, or a tree not be opened.
    #[error("no tree can be opened")]
    Host(#[from] HostError),
    /// The tree broke.
    #[error("the tree broke")]
    Tree(#[from] SpawnerError),
    /// The record cannot be read.
    #[error("the record cannot be read")]
    Store(#[from] StoreError),
    /// The merged answer cannot be read.
    #[error("the merged answer cannot be read")]
    Answer(#[source] io::Error),
}

/// One part of the context, and what a whole answer to it names.
struct Part {
    piece: Piece,
    key: Arc<str>,
    /// User and day of each entry, in order.
    entries: Vec<(u32, jiff::civil::Date)>,
    labelled: Option<Vec<Labelled>>,
}

/// Runs a plan to its end. `told` hears each piece that is over. Must be called inside a tokio runtime.
///
/// # Errors
///
/// See [`RunError`]. Pieces that fail are no errors: they are missing.
pub async fn run(plan: &Plan, mut told: impl FnMut(&str)) -> Result<Harvest, RunError> {
    let mut parts = parts(plan)?;
    let folder = DataFolder::open(&plan.folder)?;
    let builder = Host::builder(plan.config.clone(), plan.environment.clone()).folder(folder);
    let host = builder.ready_for(plan.run_spec.clone()).start().await?;
    let begun = SystemClock.now();
    let tree = open(&host, plan).await?;
    let root = tree.root();
    let mut last = None;
    for _ in 0..plan.rounds {
        let open: Vec<usize> =
            (0..parts.len()).filter(|&place| parts[place].labelled.is_none()).collect();
        if open.is_empty() {
            break;
        }
        let pieces = open.iter().map(|&place| parts[place].piece.clone());
        let order = FanOut::new(pieces).merge(Strategy::Structured).on_failure(OnFailure::Skip);
        let mut fan = tree.fan_out(order).await?;
        while let Some(outcome) = fan.next().await? {
            told(&outcome.key);
        }
        let answer = fan.answer().await?;
        let mut merged = Vec::new();
        host.values(&answer).write(&answer.answer, &mut merged).map_err(RunError::Answer)?;
        let merged: HashMap<String, String> =
            serde_json::from_slice(&merged).map_err(|error| RunError::Answer(error.into()))?;
        for part in &mut parts {
            let answered = merged.get(&*part.key).and_then(|text| part.whole(text));
            part.labelled = part.labelled.take().or(answered);
        }
        last = Some(answer);
    }
    if let Some(answer) = &last {
        tree.conclude(answer).await?;
    }
    let milliseconds = SystemClock.now().since(begun).as_millis() as u64;
    let pieces = parts.len();
    let missing = parts.iter().filter(|part| part.labelled.is_none()).count();
    let labelled = parts.into_iter().filter_map(|part| part.labelled).flatten().collect();
    let harvest = Harvest {
        labelled,
        root,
        pieces,
        missing,
        calls: 0,
        failures: BTreeMap::new(),
        tokens: 0,
        at_least: false,
        usd: MicroUsd::default(),
        milliseconds,
    };
    harvest.counted(&host)
}

/// The tree that is interrupted in the data folder, else a new one.
async fn open(host: &Host, plan: &Plan) -> Result<Tree, RunError> {
    let spec = RootSpec { run_spec: plan.run_spec.clone(), ..RootSpec::new("label the entries") };
    let interrupted = host.store().roots()?.into_iter().rev().find(|root| !root.ended);
    Ok(match interrupted {
        Some(summary) => host.abandoned(summary.root).await?.resume(spec).await?,
        None => host.open(spec).await?,
    })
}

fn parts(plan: &Plan) -> Result<Vec<Part>, RunError> {
    let context = plan.context.canonicalize().map_err(RunError::Context)?;
    let split = plan.piece.map_or(Split::Files, Split::WholeLines);
    let bytes = std::fs::read(&context).map_err(RunError::Context)?;
    let mut parts = Vec::new();
    for piece in cut([&context], split).map_err(RunError::Cut)? {
        let piece = piece.map_err(RunError::Cut)?;
        let from = piece.range.offset as usize;
        let text = bytes.get(from..from + piece.range.length as usize);
        let text = text.map(String::from_utf8_lossy).unwrap_or_default();
        let entry = |line: &str| line.parse::<Entry>().map(|entry| (entry.user, entry.date));
        let entries = text.lines().map(entry).collect::<Result<_, _>>().map_err(RunError::Line)?;
        let request = SpawnRequest {
            task: TASK.into(),
            label: Some(Arc::clone(&piece.label)),
            ..SpawnRequest::default()
        };
        let key = Arc::clone(&piece.label);
        let piece = Piece { input: Some(piece.range), key: Some(piece.label), ..request.into() };
        parts.push(Part { piece, key, entries, labelled: None });
    }
    Ok(parts)
}

impl Part {
    /// Reads an answer; none if it does not label each entry of the piece once, in order.
    fn whole(&self, answer: &str) -> Option<Vec<Labelled>> {
        let labelled: Vec<Labelled> =
            answer.lines().filter_map(|line| line.trim().parse().ok()).collect();
        let named = labelled.iter().map(|labelled| (labelled.user, labelled.date));
        named.eq(self.entries.iter().copied()).then_some(labelled)
    }
}

impl Harvest {
    /// Counts calls, tokens and money as the record has them.
    fn counted(mut self, host: &Host) -> Result<Self, RunError> {
        for event in host.store().events(self.root, 0) {
            let Event { run, kind, .. } = event?;
            match kind {
                EventKind::Started { .. } if run != self.root.run() => self.calls += 1,
                EventKind::Ended(ending) if run != self.root.run() => {
                    if !ending.status().is_success() {
                        *self.failures.entry(ending.reason.code().to_owned()).or_default() += 1;
                    }
                    let (usage, cost) = (ending.usage, ending.cost);
                    for count in [usage.input, usage.output, usage.cache_read, usage.cache_write] {
                        self.tokens += count.lower_bound();
                        self.at_least |= !matches!(count, TokenCount::Known(_));
                    }
                    self.usd = self.usd + cost.known_usd + cost.estimated_usd;
                    self.at_least |= cost.unknown_runs > 0;
                }
                _ => {}
            }
        }
        Ok(self)
    }
}

/// Returns the command line of the labeller as a program: this one, with its own word for it.
pub fn labeller(program: &Path, faults: &crate::Faults, asks: &Path, levels: u32) -> Vec<String> {
    let words = [
        program.display().to_string(),
        "label".to_owned(),
        format!("--seed={}", faults.seed),
        format!("--label-errors={}", faults.label_errors),
        format!("--refusals={}", faults.refusals),
        format!("--kills={}", faults.kills),
        format!("--asks={}", asks.display()),
        format!("--levels={levels}"),
    ];
    words.into()
}
