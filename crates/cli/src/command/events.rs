//! `offshoot events`.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::sync::Arc;

use clap::Args;
use offshoot_display::Style;
use offshoot_model::{Event, EventKind, Grant, RunId};

use crate::arguments::FormatArgument;
use crate::code::NoteCode;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::Record;

/// Print what happened in a tree, in order
///
/// With --json one event a line, in a form that stays: docs/events.schema.json describes it. New kinds and fields may
/// be added; pass over what you do not know.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot events
  offshoot events 0198c7a2-41f3 --follow
  offshoot events last --json | jq -c .kind.type")]
pub(crate) struct EventsArguments {
    /// Any run of the tree: a run id, its unique beginning, a session key, a label, `last`, `main` or `@N`; of a run below the root its
    /// subtree
    #[arg(value_name = "RUN", default_value = "last")]
    pub(crate) run: String,

    /// Go on with what happens, until the tree is over or its supervisor has gone
    #[arg(short, long)]
    pub(crate) follow: bool,

    #[command(flatten)]
    pub(crate) format: FormatArgument,
}

/// Prints the events of a run and of what is below it.
pub(crate) fn run(arguments: &EventsArguments, cx: &Invocation) -> Result<(), Failure> {
    let (record, found) = Record::open_own(cx, &arguments.run)?;
    let mut within = Within::new(found.run, found.root.run());
    let mut grants = HashMap::new();
    // Before anything is read, so that nothing happens in between.
    let mut watch = arguments.follow.then(|| record.watch(found.root)).transpose()?;
    let (mut last, mut has_ended) = (0, false);
    loop {
        // One that lets go of the tree has written all there is.
        let is_over = record.is_abandoned(found.root)?;
        let mut broken = None;
        let mut print = |out: &mut dyn Write| {
            for event in record.store().events(found.root, last) {
                match event {
                    Ok(event) => {
                        last = event.seq;
                        if event.run == found.root.run() {
                            match event.kind {
                                EventKind::Ended(_) => has_ended = true,
                                EventKind::RootReopened(_) => has_ended = false,
                                _ => {}
                            }
                        }
                        let above = above(&event, &mut grants);
                        if within.takes(&event) {
                            show(&event, above.as_deref(), cx, out)?;
                        }
                    }
                    Err(error) => {
                        broken = Some(error.into());
                        break;
                    }
                }
            }
            Ok(())
        };
        // JSON is for programs, which read what is there.
        if cx.output.wants_json() {
            cx.output.stream(|out| print(out))?
        } else {
            cx.output.painted(print)?
        }
        match (broken, &mut watch) {
            (Some(failure), _) => return Err(failure),
            (None, Some(watch)) if !is_over => watch.wait()?,
            (None, Some(_)) if !has_ended => {
                let root = found.root;
                cx.output.note(
                    NoteCode::SupervisorOver,
                    format_args!(
                        "the supervisor of tree {root} has gone, and nothing more happens in it"
                    ),
                );
                cx.output.hint(
                    NoteCode::GoOnWithTree,
                    format_args!("`offshoot resume {root}` goes on with it"),
                );
                return Ok(());
            }
            (None, _) => return Ok(()),
        }
    }
}

/// A run and what is below it, learned while reading.
pub(super) struct Within {
    all: bool,
    runs: HashSet<RunId>,
}

impl Within {
    pub(super) fn new(run: RunId, root: RunId) -> Self {
        Self { all: run == root, runs: HashSet::from([run]) }
    }

    pub(super) fn takes(&mut self, event: &Event) -> bool {
        if self.all {
            return true;
        }
        if let EventKind::Admitted(admitted) = &event.kind
            && admitted.parent.is_some_and(|parent| self.runs.contains(&parent))
        {
            self.runs.insert(event.run);
        }
        self.runs.contains(&event.run)
    }
}

/// Returns the terms of the parent of a run that is admitted, and keeps those of the run if it may have children.
fn above(event: &Event, grants: &mut HashMap<RunId, Arc<Grant>>) -> Option<Arc<Grant>> {
    let EventKind::Admitted(admitted) = &event.kind else { return None };
    if admitted.grant.may_spawn {
        grants.insert(event.run, Arc::clone(&admitted.grant));
    }
    grants.get(&admitted.parent?).map(Arc::clone)
}

fn show(
    event: &Event,
    above: Option<&Grant>,
    cx: &Invocation,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    if cx.output.wants_json() {
        return offshoot_display::json::write_event(event, cx.output.format(), out);
    }
    writeln!(out, "{}", offshoot_display::line(event).above(above).style(Style::Colour))
}
