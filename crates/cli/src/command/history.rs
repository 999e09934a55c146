//! `offshoot history`.

use clap::Args;
use offshoot_display::neutral;
use offshoot_door::{History, HistoryEntry, HistoryPage, RunName};
use offshoot_host::history;

use crate::arguments::FormatArgument;
use crate::arguments::value::whole;
use crate::door::inside;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::Record;

/// Show what happened in a session
///
/// The list has the task of the session, what the session asked for and was given, and its answer. Inside an agent: its own session, or
/// one below it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot history 0198c7
  offshoot history 0198c7 --after 12 --limit 5 --json")]
pub(crate) struct HistoryArguments {
    /// The session: a run id, its unique beginning, a session key, a label, `last`, `main` or `@N`
    #[arg(value_name = "KEY")]
    pub(crate) run: String,

    /// Only what came after this number
    #[arg(long, value_name = "SEQ", value_parser = whole(0_u64.., "12"))]
    pub(crate) after: Option<u64>,

    /// Only so many entries
    #[arg(long, value_name = "N", value_parser = whole(1..=u32::MAX, "20"))]
    pub(crate) limit: Option<u32>,

    #[command(flatten)]
    pub(crate) format: FormatArgument,
}

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
