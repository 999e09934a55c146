//! `offshoot stats`.

use offshoot_display::Stats;
use offshoot_model::RootId;
use offshoot_spawner::{Clock, SystemClock};

use super::events::Within;
use crate::arguments::StatsArguments;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::Record;

/// Counts the runs of one tree, below one run, or of all trees.
pub(crate) fn run(arguments: &StatsArguments, cx: &Invocation) -> Result<(), Failure> {
    let mut stats = Stats::default();
    if let Some(text) = &arguments.run {
        let (record, found) = Record::open_own(cx, text)?;
        let within = Within::new(found.run, found.root.run());
        read(&record, found.root, within, &mut stats)?;
    } else {
        let now = SystemClock.now();
        let is_wanted =
            |opened_at| arguments.since.is_none_or(|since| now.since(opened_at) <= since);
        if let Some(record) = Record::open(cx)? {
            for summary in record.summaries()? {
                if is_wanted(summary.opened_at) {
                    let root = summary.root;
                    read(&record, root, Within::new(root.run(), root.run()), &mut stats)?;
                }
            }
        }
    }
    let page = stats.page();
    cx.output.result(&page, || cx.output.line(&page))
}

fn read(
    record: &Record,
    root: RootId,
    mut within: Within,
    stats: &mut Stats,
) -> Result<(), Failure> {
    // Before its events are read: a supervisor that ends meanwhile has written them all.
    let lost = record.is_abandoned(root)?;
    for event in record.store().events(root, 0) {
        let event = event?;
        if within.takes(&event) {
            stats.apply(&event);
        } else {
            stats.see(&event);
        }
    }
    if lost {
        stats.lose(root);
    }
    Ok(())
}
