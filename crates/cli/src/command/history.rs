//! `offshoot history`.

use offshoot_display::neutral;
use offshoot_door::{History, HistoryEntry, HistoryPage, RunName};
use offshoot_host::history;

use crate::arguments::HistoryArguments;
use crate::door::inside;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::Record;

/// Shows a session: inside an agent as the door tells it, else from the record.
pub(crate) fn run(arguments: &HistoryArguments, cx: &Invocation) -> Result<(), Failure> {
    let HistoryArguments { run, after, limit, .. } = arguments;
    let entries = inside(cx, async |supervisor| {
        let mut entries = Vec::new();
        let mut after = *after;
        loop {
            let wanted = limit.map(|limit| limit - entries.len() as u32);
            let asked = History { run: RunName(run.clone()), after, limit: wanted };
            let HistoryPage { entries: page, more } = supervisor.call(asked).await?;
            after = page.last().map(|entry| entry.seq).or(after);
            let is_empty = page.is_empty();
            entries.extend(page);
            if !more || is_empty || limit.is_some_and(|limit| entries.len() >= limit as usize) {
                return Ok(entries);
            }
        }
    })?;
    if let Some(entries) = entries {
        return print(&entries, cx);
    }
    let (record, found) = Record::open_to_look(cx, run)?;
    let limit = limit.map_or(usize::MAX, |limit| limit as usize);
    let page = history(&**record.store(), found.root, found.run, after.unwrap_or(0), limit);
    print(&page?.entries, cx)
}

fn print(entries: &[HistoryEntry], cx: &Invocation) -> Result<(), Failure> {
    cx.output.result(&entries, || {
        for HistoryEntry { seq, at, kind, from, text } in entries {
            let from = from.as_ref().map(|from| format!("  from {from}")).unwrap_or_default();
            cx.output.line(format_args!("{seq}  {at}  {kind}{from}"))?;
            for line in neutral::block(text).lines() {
                cx.output.line(format_args!("    {line}"))?;
            }
        }
        Ok(())
    })
}
