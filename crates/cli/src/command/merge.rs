//! `offshoot merge`.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use offshoot_door::{Client, Merge, MergeOrder, Merged, RunName, Tree};
use offshoot_host::Merging;
use offshoot_merge::{Answer, Asked, Asking, LineError, Lines, OnFailure, Values};
use offshoot_model::Ending;
use offshoot_spawner::{Gathering, StoredValues};
use offshoot_store::{FoundRun, MemoryStore, Store};

use super::context::print_whole;
use super::nested::only_of_the_tree;
use crate::arguments::words::{ON_FAILURE, one_of};
use crate::arguments::{LimitArguments, PluginPathArguments, WorkArguments, strategies};
use crate::code::{FailureCode, NoteCode};
use crate::door::inside;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::{self, Record};
use crate::work::engine::{Engine, block_on};
use crate::work::interrupt::Interrupts;
use crate::work::outcomes::Outcomes;
use crate::work::pieces::{self, AnswerRules, PieceRun, merging};
use crate::work::plan::{EarlierResult, Plan};
use crate::work::{earlier, preflight};
use crate::{load, plugins};

/// Make one answer of many results
///
/// Results are JSON lines, each `{"key": …, "value": …}`, or stored results of runs. Inside an agent these are runs below
/// it, and the answer is kept as a value of its own, by the name that --json tells. A merge that asks an agent or a program opens a
/// tree of its own outside of agents, which `resume` goes on with; it takes the stored results of runs. `patch` is a merge of
/// `offshoot fanout` and `offshoot map` alone.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  printf '%s\\n' '{\"key\":\"a\",\"value\":2}' '{\"key\":\"b\",\"value\":3}' | offshoot merge --strategy sum
  offshoot merge --strategy structured results.jsonl
  offshoot merge --strategy sum --children 0198c7
  offshoot merge --strategy summarize-with=writer --children 0198c7 --budget-usd 2
  offshoot merge --strategy 'command:sort -u' --children last
    \"$OFFSHOOT\" wait >/dev/null; \"$OFFSHOOT\" merge --strategy sum")]
pub(crate) struct MergeArguments {
    #[arg(help = strategies("How", "or a plugin's merge", ""))]
    #[arg(long, value_name = "STRATEGY", default_value = "concatenate")]
    pub(crate) strategy: String,

    /// A file of results; - is standard input [default: standard input; inside an agent, all its children that have ended]
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// The stored result of RUN instead: a run id, its unique beginning, a session key, a label, `last`, `main` or `@N`; may be given more than once
    #[arg(long, value_name = "RUN", conflicts_with = "file")]
    pub(crate) result: Vec<String>,

    /// Inside an agent: what a run that did not complete means [default: fail]
    #[arg(long, value_name = "POLICY", value_parser = one_of(ON_FAILURE))]
    pub(crate) on_failure: Option<OnFailure>,

    /// The stored results of everything that completed directly below RUN instead
    #[arg(long, value_name = "RUN", conflicts_with_all = ["file", "result"])]
    pub(crate) children: Option<String>,

    #[command(flatten)]
    pub(crate) plugins: PluginPathArguments,

    #[command(flatten)]
    pub(crate) limits: LimitArguments,
}

/// The name of standard input among files.
const STDIN: &str = "-";

/// Merges results that are given, or that are stored.
pub(crate) fn run(arguments: &MergeArguments, cx: &Invocation) -> Result<Exit, Failure> {
    if arguments.file.is_none()
        && let Some(exit) =
            inside(cx, async |supervisor| of_the_tree(&supervisor, arguments, cx).await)?
    {
        return Ok(exit);
    }
    if arguments.on_failure.is_some() {
        return Err(Failure::input(
            FailureCode::OnlyInsideAgents,
            "--on-failure is for the runs of an agent, inside of it",
        )
        .hint("leave it out: `merge` outside of agents merges the results that there are"));
    }
    let merging = merging(&arguments.strategy)?;
    if let Some(asking) = merging.asking() {
        return asked(asking, arguments, cx);
    }
    only_with_runs(&arguments.limits, &format!("`{merging}` runs nothing"))?;
    let run = arguments.children.as_ref().or(arguments.result.first());
    let record = run.map(|run| Record::open_for(cx, run)).transpose()?;
    let store: Arc<dyn Store> = match &record {
        Some(record) => Arc::clone(record.store()),
        None => Arc::new(MemoryStore::new()),
    };
    let values = StoredValues::new(store);
    let answer = block_on(async {
        let gathering = begin(merging, arguments, values.clone(), cx).await?;
        match &record {
            None => lines(arguments.file.as_deref().unwrap_or(Path::new(STDIN)), gathering).await,
            Some(record) => {
                let earlier = earlier_results(record, arguments, cx)?;
                of_runs(record, &earlier, gathering).await
            }
        }
    })?;
    print(&answer, &values, cx)?;
    if let Some(warning) = answer.warning() {
        cx.output.warning(NoteCode::TieInVote, warning);
    }
    Ok(Exit::Done)
}

/// Begins a merge outside of any tree: by a strategy of ours, or by a plugin.
async fn begin(
    merging: Merging,
    arguments: &MergeArguments,
    values: StoredValues,
    cx: &Invocation,
) -> Result<Gathering, Failure> {
    if let Merging::Strategy(strategy) = merging {
        return Ok(Gathering::by_strategy(strategy, OnFailure::Fail, values));
    }
    if merging == Merging::Patch {
        let message = "`patch` is a merge of runs with folders of their own, and needs a tree";
        return Err(Failure::input(FailureCode::MergeNeedsTree, message)
            .hint("offshoot fanout --isolation worktree --merge patch"));
    }
    let config = load::config(cx, &LimitArguments::default())?;
    let plugins = plugins::plugins(&arguments.plugins.plugin_path, &config, cx)?;
    let external = merging.load(|name| plugins.merge(name))?;
    let external = external.expect("a merge that is no strategy is a plugin's");
    let begun = Gathering::outside(&external, OnFailure::Fail, values).await;
    begun.map_err(|fault| Failure::of(Exit::BadInput, &fault))
}

/// Returns the answer to so many results.
async fn finish(mut gathering: Gathering, count: u32) -> Result<Answer, Failure> {
    let verdict = gathering.conclude(count).await;
    verdict.map_err(|error| Failure::of(Exit::BadInput, &error).maybe_hint(error.hint()))?;
    Ok(gathering.into_answer())
}

/// Merges results of runs below the agent that asks.
async fn of_the_tree(
    supervisor: &Client,
    arguments: &MergeArguments,
    cx: &Invocation,
) -> Result<Exit, Failure> {
    only_of_the_tree(&arguments.plugins)?;
    only_with_runs(&arguments.limits, "an agent has those of its tree")?;
    let mut runs: Vec<RunName> = arguments.result.iter().cloned().map(RunName).collect();
    if let Some(parent) = &arguments.children {
        // The answer of a child that is deleted is still there.
        let asked = Tree { run: Some(RunName(parent.clone())), all: true };
        let roots = supervisor.call(asked).await?.roots;
        let children = roots.iter().flat_map(|root| &root.children);
        runs.extend(children.filter(|run| run.status.is_terminal()).map(|run| run.run_id.into()));
        if runs.is_empty() {
            return Err(Failure::input(
                FailureCode::NothingBelow,
                format_args!("nothing below {parent} has ended"),
            )
            .hint("`offshoot wait` waits for what runs below this session"));
        }
    }
    let order = MergeOrder {
        strategy: arguments.strategy.clone(),
        on_failure: arguments.on_failure.map(|choice| choice.to_string()),
        separator: None,
    };
    let merged = supervisor.call(Merge { order, runs, results: Vec::new() }).await?;
    print_merged(supervisor, merged, cx).await
}

/// Prints a merged answer as it is; what stands in its way is exit 1.
pub(super) async fn print_merged(
    supervisor: &Client,
    merged: Merged,
    cx: &Invocation,
) -> Result<Exit, Failure> {
    if cx.output.wants_json() {
        cx.output.json(&merged)?;
    } else {
        print_text(supervisor, &merged, cx).await?;
    }
    match merged.error {
        Some(error) => {
            cx.output.note(NoteCode::MergeFailed, error);
            Ok(Exit::AgentFailed)
        }
        None => Ok(Exit::Done),
    }
}

/// Prints what there is of a merged answer, text as it is.
pub(super) async fn print_text(
    supervisor: &Client,
    merged: &Merged,
    cx: &Invocation,
) -> Result<(), Failure> {
    let text = merged.data.as_ref().and_then(|data| serde_json::from_str(data.as_str()).ok());
    match (text, &merged.name, &merged.data) {
        (Some::<String>(text), _, _) => cx.output.line(text),
        (None, Some(name), _) => print_whole(supervisor, name.clone(), "\n", cx).await,
        (None, None, Some(data)) => cx.output.line(data.as_str()),
        (None, None, None) => Ok(()),
    }
}

/// Prints an answer and a newline.
pub(crate) fn print(answer: &Answer, values: &dyn Values, cx: &Invocation) -> Result<(), Failure> {
    cx.output.stream(|out| {
        answer.write_to(out, values)?;
        out.write_all(b"\n")
    })
}

/// `merge FILE`: merges the results of a file, line by line.
async fn lines(file: &Path, mut gathering: Gathering) -> Result<Answer, Failure> {
    let is_stdin = file == Path::new(STDIN);
    let name = if is_stdin { "standard input".into() } else { file.to_string_lossy() };
    let input: Box<dyn Read> = match is_stdin {
        true => Box::new(std::io::stdin()),
        false => Box::new(File::open(file).map_err(Failure::reading(file))?),
    };
    let mut count = 0;
    for line in Lines::new(BufReader::new(input)) {
        let line = line.map_err(|error| match &error {
            LineError::Read { source, .. } => {
                Failure::file(FailureCode::CannotRead, "read", file, source)
            }
            LineError::Invalid { .. } => {
                Failure::input(FailureCode::BadResultLine, format_args!("{name}, {error}"))
                    .hint("a line is an object with a `key` and a `value`")
            }
        })?;
        gathering.push(count, line.key, Ok(line.value)).await;
        count += 1;
        if gathering.has_failed() {
            break;
        }
    }
    finish(gathering, count).await
}

/// `merge --result` and `merge --children`: merges the answers of these runs.
async fn of_runs(
    record: &Record,
    earlier: &[EarlierResult],
    mut gathering: Gathering,
) -> Result<Answer, Failure> {
    let mut count = 0;
    for EarlierResult { key, root, run } in earlier {
        let value = earlier::result(&**record.store(), *root, *run)?;
        gathering.push(count, Arc::clone(key), Ok(value)).await;
        count += 1;
    }
    finish(gathering, count).await
}

/// Returns the runs whose results are merged, with the names of the results.
fn earlier_results(
    record: &Record,
    arguments: &MergeArguments,
    cx: &Invocation,
) -> Result<Vec<EarlierResult>, Failure> {
    if let Some(parent) = &arguments.children {
        return below(record, parent, cx);
    }
    let named = |text: &String| {
        let FoundRun { root, run, .. } = record.find(text)?;
        Ok(EarlierResult { key: run.to_string().into(), root, run })
    };
    arguments.result.iter().map(named).collect()
}

/// Returns the runs that completed below this one. Those that did not are counted and reported.
fn below(record: &Record, text: &str, cx: &Invocation) -> Result<Vec<EarlierResult>, Failure> {
    let found = record.find(text)?;
    let tree = record.tree(found.root)?;
    let node = tree.get(found.run).ok_or_else(|| record::no_record(found.run))?;
    let (mut earlier, mut others) = (Vec::new(), 0);
    for child in tree.last_children(node) {
        let (root, run) = (found.root, child.run);
        let admitted = record.store().admitted(root, run)?;
        if admitted.is_some_and(|admitted| admitted.merges().is_some()) {
            // What a merge has made of the others.
            continue;
        }
        let ending = record.ending(root, run)?;
        match ending {
            Some(Ending { output: Some(_), .. }) if child.status.is_success() => {
                let place = earlier.len() + others + 1;
                let key = child.label.clone().unwrap_or_else(|| place.to_string().into());
                earlier.push(EarlierResult { key, root, run });
            }
            _ => others += 1,
        }
    }
    if earlier.is_empty() {
        let message = match others {
            0 => format!("nothing runs below {text} that has a result"),
            _ => format!("none of the {others} children of {text} has a result to merge"),
        };
        return Err(Failure::input(FailureCode::NothingBelow, message)
            .hint("--children takes the root of a map or a fanout, --result one run; `offshoot list` shows both, and `last` may be a merge by now"));
    }
    if others > 0 {
        let many = earlier.len() + others;
        cx.output.warning(
            NoteCode::ChildrenWithoutResult,
            format_args!("{others} of {many} children have no result to merge"),
        );
    }
    Ok(earlier)
}

/// A merge that asks, in a tree of its own: what it asks are the pieces, under the limits of the command line.
fn asked(asking: &Asking, arguments: &MergeArguments, cx: &Invocation) -> Result<Exit, Failure> {
    let Some(run) = arguments.children.as_ref().or(arguments.result.first()) else {
        let message = format!("`{asking}` merges results of runs, and not of a file");
        return Err(Failure::input(FailureCode::MergeNeedsTree, message)
            .hint("name the runs with --children or --result"));
    };
    let record = Record::open_for(cx, run)?;
    let earlier = earlier_results(&record, arguments, cx)?;
    let results = earlier::results(&**record.store(), &earlier)?;
    drop(record);
    let terms = AnswerRules {
        merging: Merging::Asking(asking.clone()),
        check: None,
        on_failure: OnFailure::Fail,
        max_fail: None,
        separator: None,
    };
    let mut work = WorkArguments {
        ok_exit: vec![0],
        plugins: arguments.plugins.clone(),
        limits: arguments.limits.clone(),
        ..WorkArguments::default()
    };
    let command = match &asking.asked {
        Asked::Agent(agent) => {
            work.agent = Some(agent.to_string());
            Vec::new()
        }
        Asked::Command(line) => ["sh", "-c", line].map(str::to_owned).into(),
    };
    let (config, prepared) = preflight::prepare(&work, &command, cx)?;
    let many = if earlier.len() == 1 { "result" } else { "results" };
    let task = format!("{asking} of {} {many}", earlier.len());
    let plan = Plan {
        results: earlier,
        ..Plan::of("merge", &prepared, &config, &work.limits, cx).merging(&terms)
    };
    block_on(async {
        let interrupts = Interrupts::listen()?;
        let engine = Engine::start(config, &prepared, cx).await?;
        let order = PieceRun {
            label: None,
            task: task.into(),
            pieces: Vec::new(),
            results,
            prepared,
            plan,
            terms,
            external: None,
            outcomes: Outcomes::default(),
        };
        pieces::run(&engine, order, None, interrupts, cx).await
    })
}

/// Refuses limits where nothing runs that they could hold.
fn only_with_runs(limits: &LimitArguments, why: &str) -> Result<(), Failure> {
    if limits.is_empty() {
        return Ok(());
    }
    let message = format!("limits are for a merge that asks, outside of agents: {why}");
    Err(Failure::input(FailureCode::LimitsHoldNothing, message).hint(
        "leave the limits out, or name a merge that asks, such as --strategy summarize-with=AGENT",
    ))
}
