//! `offshoot merge`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use offshoot_door::{Client, Merge, MergeOrder, Merged, RunName, Tree};
use offshoot_host::Merging;
use offshoot_merge::{Answer, LineError, Lines, OnFailure, Values};
use offshoot_model::{Ending, Payload};
use offshoot_spawner::{Gathering, StoredValues};
use offshoot_store::{MemoryStore, Store};

use super::nested::only_of_the_tree;
use super::wait::print_value;
use crate::arguments::{LimitArguments, MergeArguments};
use crate::code::{FailureCode, NoteCode};
use crate::door::inside;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::load;
use crate::plugins;
use crate::record::{self, Record};
use crate::work::engine::block_on;
use crate::work::pieces::merging;

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
    let run = arguments.children.as_ref().or(arguments.result.first());
    let record = run.map(|run| Record::open_for(cx, run)).transpose()?;
    let store: Arc<dyn Store> = match &record {
        Some(record) => Arc::clone(record.store()),
        None => Arc::new(MemoryStore::new()),
    };
    let values = StoredValues::new(store);
    let answer = block_on(async {
        let gathering = begin(merging, arguments, values.clone(), cx).await?;
        match (&record, &arguments.children) {
            (None, _) => {
                lines(arguments.file.as_deref().unwrap_or(Path::new(STDIN)), gathering).await
            }
            (Some(record), Some(run)) => of_children(record, run, gathering, cx).await,
            (Some(record), None) => of_runs(record, &arguments.result, gathering).await,
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
    if merging.asking().is_some() {
        return Err(Failure::input(
            FailureCode::MergeNeedsTree,
            format_args!("`{merging}` asks for runs, and needs a tree"),
        )
        .hint("`offshoot map` and `offshoot fanout` take it as --merge"));
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
        (None, Some(name), _) => print_value(supervisor, name.clone(), cx).await,
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

/// `merge FILE`: opens the file of results.
async fn lines(file: &Path, gathering: Gathering) -> Result<Answer, Failure> {
    if file == Path::new(STDIN) {
        return read(file, BufReader::new(std::io::stdin()), gathering).await;
    }
    let open = File::open(file)
        .map_err(|error| Failure::file(FailureCode::CannotRead, "read", file, &error))?;
    read(file, BufReader::new(open), gathering).await
}

/// `merge FILE`: merges the results of a file, line by line.
async fn read(
    file: &Path,
    input: impl BufRead,
    mut gathering: Gathering,
) -> Result<Answer, Failure> {
    let is_stdin = file == Path::new(STDIN);
    let name = if is_stdin { "standard input".into() } else { file.to_string_lossy() };
    let mut count = 0;
    for line in Lines::new(input) {
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

/// `merge --result`: merges the answers of these runs.
async fn of_runs(
    record: &Record,
    runs: &[String],
    mut gathering: Gathering,
) -> Result<Answer, Failure> {
    for (place, text) in (0..).zip(runs) {
        let found = record.find(text)?;
        let ending = record.ending(found.root, found.run)?;
        match ending {
            Some(Ending { output: Some(output), .. }) => {
                let value = scalar(record, &output)?;
                gathering.push(place, found.run.to_string().into(), Ok(value)).await;
            }
            Some(_) => {
                return Err(Failure::input(
                    FailureCode::NoResult,
                    format_args!("run {} has no result", found.run),
                )
                .hint(format_args!("`offshoot show {}` says why", found.run)));
            }
            None => {
                return Err(Failure::input(
                    FailureCode::RunNotOver,
                    format_args!("run {} is not over", found.run),
                )
                .hint(format_args!("`offshoot show {}` says what it waits for", found.run)));
            }
        }
    }
    finish(gathering, u32::try_from(runs.len()).unwrap_or(u32::MAX)).await
}

/// Merges the results that completed below a run. Those that did not are counted and reported.
async fn of_children(
    record: &Record,
    text: &str,
    mut gathering: Gathering,
    cx: &Invocation,
) -> Result<Answer, Failure> {
    let found = record.find(text)?;
    let tree = record.tree(found.root)?;
    let node = tree.get(found.run).ok_or_else(|| {
        Failure::input(FailureCode::NoRunRecord, format_args!("run {} has no record", found.run))
    })?;
    let (mut count, mut others) = (0, 0);
    for child in tree.last_children(node) {
        let admitted = record.store().admitted(found.root, child.run)?;
        if admitted.is_some_and(|admitted| admitted.merges().is_some()) {
            // What a merge has made of the others.
            continue;
        }
        let ending = record.ending(found.root, child.run)?;
        match ending {
            Some(Ending { output: Some(output), .. }) if child.status.is_success() => {
                let key =
                    child.label.clone().unwrap_or_else(|| (count + others + 1).to_string().into());
                gathering.push(count, key, Ok(scalar(record, &output)?)).await;
                count += 1;
            }
            _ => others += 1,
        }
    }
    if others > 0 {
        cx.output.warning(
            NoteCode::ChildrenWithoutResult,
            format_args!("{others} of {} children have no result to merge", count + others),
        );
    }
    finish(gathering, count).await
}

/// Strategies that look into values need those that are small at hand.
fn scalar(record: &Record, output: &Payload) -> Result<Payload, Failure> {
    const SMALL: u64 = 64 * 1024;
    if output.size() <= SMALL {
        record::at_hand(&**record.store(), output)
    } else {
        Ok(output.clone())
    }
}
