//! `offshoot events`.

use std::collections::HashSet;
use std::io::Write;

use offshoot_display::Style;
use offshoot_model::{Event, EventKind, RunId};

use crate::arguments::EventsArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::Record;

/// Prints the events of a run and of what is below it.
pub(crate) fn run(arguments: &EventsArguments, cx: &Invocation) -> Result<Exit, Failure> {
    let (record, found) = Record::open_own(cx, &arguments.run)?;
    let mut within = Within::new(found.run, found.root.run());
    // Before anything is read, so that nothing happens in between.
    let mut watch = arguments.follow.then(|| record.watch(found.root)).transpose()?;
    let mut last = 0;
    loop {
        // One that lets go of the tree has written all there is.
        let is_over = record.is_abandoned(found.root)?;
        let mut broken = None;
        let mut print = |out: &mut dyn Write| {
            for event in record.store().events(found.root, last) {
                match event {
                    Ok(event) => {
                        last = event.seq;
                        if within.takes(&event) {
                            show(&event, cx, out)?;
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
            (None, _) => return Ok(Exit::Done),
        }
    }
}

/// A run and what is below it, learned while reading.
struct Within {
    all: bool,
    runs: HashSet<RunId>,
}

impl Within {
    fn new(run: RunId, root: RunId) -> Self {
        Self { all: run == root, runs: HashSet::from([run]) }
    }

    fn takes(&mut self, event: &Event) -> bool {
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

fn show(event: &Event, cx: &Invocation, out: &mut dyn Write) -> std::io::Result<()> {
    if cx.output.wants_json() {
        return offshoot_display::json::write_event(event, out);
    }
    writeln!(out, "{}", offshoot_display::line(event).style(Style::Colour))
}
