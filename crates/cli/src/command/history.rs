//! `offshoot history`.

use offshoot_display::neutral;
use offshoot_door::{History, HistoryEntry, HistoryPage, RunName};
use offshoot_host::history;

use super::spawn::call;
use crate::arguments::HistoryArguments;
use crate::door::{above, may_be_below};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::Record;
use crate::work::engine::block_on;

/// Shows a session: inside an agent as the door tells it, else from the record.
pub(crate) fn run(arguments: &HistoryArguments, cx: &Invocation) -> Result<Exit, Failure> {
    let HistoryArguments { run, after, limit } = arguments;
    if may_be_below(cx) {
        let inside = block_on(async {
            let Some(supervisor) = above(cx).await? else { return Ok(None) };
            let mut entries = Vec::new();
            let mut after = *after;
            loop {
                let wanted = limit.map(|limit| limit - entries.len() as u32);
                let asked = History { run: RunName(run.clone()), after, limit: wanted };
                let HistoryPage { entries: page, more } = call(&supervisor, asked).await?;
                after = page.last().map(|entry| entry.seq).or(after);
                let is_empty = page.is_empty();
                entries.extend(page);
                if !more || is_empty || limit.is_some_and(|limit| entries.len() >= limit as usize) {
                    return Ok(Some(entries));
                }
            }
        })?;
        if let Some(entries) = inside {
            return print(&entries, cx);
        }
    }
    let record = Record::open_for(cx, run)?;
    let found = record.find(run)?;
    let limit = limit.map_or(usize::MAX, |limit| limit as usize);
    let page = history(&**record.store(), found.root, found.run, after.unwrap_or(0), limit);
    print(&page?.entries, cx)
}

fn print(entries: &[HistoryEntry], cx: &Invocation) -> Result<Exit, Failure> {
    if cx.output.wants_json() {
        cx.output.json(&entries)?;
        return Ok(Exit::Done);
    }
    for HistoryEntry { seq, at, kind, from, text } in entries {
        let from = from.as_ref().map(|from| format!("  from {from}")).unwrap_or_default();
        cx.output.line(format_args!("{seq}  {at}  {kind}{from}"))?;
        for line in neutral::block(text).lines() {
            cx.output.line(format_args!("    {line}"))?;
        }
    }
    Ok(Exit::Done)
}
