//! `offshoot stats`.

use std::time::Duration;

use clap::Args;
use offshoot_delegation::{Experience, TreeObservations};
use offshoot_display::{Learned, Opportunities, Replayed, Stats, TimeUse};
use offshoot_model::RootId;
use offshoot_spawner::{Clock, SystemClock, WhatIf};

use super::events::Within;
use crate::arguments::FormatArgument;
use crate::arguments::value::duration;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::Record;

/// Count runs: how they ended and why, how long they took, what they cost
///
/// With --delegation it counts tasks with a type instead (`offshoot delegate --type`): how many were done, in which time and at which cost,
/// by the agent that had them and by a child. After ten of each it recommends.
///
/// Failures are grouped by what they said, numbers aside, each group with one run as an example. Times in JSON are in milliseconds.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot stats last
  Everything that began today:
    offshoot stats --since 24h
  offshoot stats --json
  Which types of tasks go better when they are delegated:
    offshoot stats --delegation")]
pub(crate) struct StatsArguments {
    /// A run with what is below it [default: all trees]; a run id, its unique beginning, a session key, a label, `last`, `main` or `@N`
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,

    /// Only trees that were opened within this time, such as 24h
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "run")]
    pub(crate) since: Option<Duration>,

    /// Compare tasks of a type that were done directly with those that were delegated
    #[arg(long, conflicts_with = "run")]
    pub(crate) delegation: bool,

    #[command(flatten)]
    pub(crate) format: FormatArgument,
}

/// Counts the runs of one tree, below one run, or of all trees.
pub(crate) fn run(arguments: &StatsArguments, cx: &Invocation) -> Result<(), Failure> {
    if arguments.delegation {
        return learned(arguments, cx);
    }
    let (mut stats, mut found) = (Stats::default(), None);
    if let Some(text) = &arguments.run {
        let (record, run) = Record::open_own(cx, text)?;
        let within = Within::new(run.run, run.root.run());
        read(&record, run.root, within, &mut stats)?;
        // The slots of a tree are those of all of it.
        if run.run == run.root.run() {
            found = Some(opportunities(&record, run.root)?);
        }
    } else {
        each_tree(arguments, cx, |record, root| {
            read(record, root, Within::new(root.run(), root.run()), &mut stats)
        })?;
    }
    let mut page = stats.page(SystemClock.now());
    page.opportunities = found;
    cx.output.result(&page, || cx.output.line(&page))
}

/// Looks where the time of a tree went, and plays it again with twice and four times the slots.
fn opportunities(record: &Record, root: RootId) -> Result<Opportunities, Failure> {
    let (mut time_use, mut what_if) = (TimeUse::default(), WhatIf::default());
    let is_abandoned = record.replay(root, |event| {
        time_use.apply(event);
        what_if.apply(event);
    })?;
    if !is_abandoned {
        time_use.at(SystemClock.now());
    }
    let replayed = |max_concurrent: u32| Replayed {
        max_concurrent,
        ms: u64::try_from(what_if.with_slots(max_concurrent).as_millis()).unwrap_or(u64::MAX),
    };
    let own = what_if.slots().into_iter();
    let slots = own.flat_map(|own| [1, 2, 4].map(|times| own.saturating_mul(times)));
    Ok(time_use.opportunities(slots.map(replayed).collect()))
}

/// Compares what was done directly with what was delegated.
fn learned(arguments: &StatsArguments, cx: &Invocation) -> Result<(), Failure> {
    let (mut experience, mut trees) = (Experience::default(), 0);
    each_tree(arguments, cx, |record, root| {
        let mut tree = TreeObservations::default();
        for event in record.store().events(root, 0) {
            tree.apply(&event?);
        }
        trees += 1;
        experience.extend(tree.into_observations());
        Ok(())
    })?;
    let page = Learned::new(&experience, trees);
    cx.output.result(&page, || cx.output.line(&page))
}

/// Looks at each tree of the time that is wanted.
fn each_tree(
    arguments: &StatsArguments,
    cx: &Invocation,
    mut look: impl FnMut(&Record, RootId) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let now = SystemClock.now();
    let is_wanted = |opened_at| arguments.since.is_none_or(|since| now.since(opened_at) <= since);
    let Some(record) = Record::open(cx)? else { return Ok(()) };
    for summary in record.summaries()? {
        if is_wanted(summary.opened_at) {
            look(&record, summary.root)?;
        }
    }
    Ok(())
}

fn read(
    record: &Record,
    root: RootId,
    mut within: Within,
    stats: &mut Stats,
) -> Result<(), Failure> {
    let lost = record.replay(root, |event| match within.takes(event) {
        true => stats.apply(event),
        false => stats.see(event),
    })?;
    if lost {
        stats.lose(root);
    }
    Ok(())
}
