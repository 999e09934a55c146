//! A run at work: for how long it has been silent, and the last lines that it said.

use std::collections::VecDeque;

use offshoot_display::AtWork;
use offshoot_door::Output;
use offshoot_model::{Node, Timestamp};
use offshoot_spawner::{Clock, SystemClock};
use offshoot_store::OutputReader;

use crate::door::{reach, silences};
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::Record;
use crate::said::{SaidLine, SaidLines, Text};

/// The last lines that are shown.
const LINES: usize = 3;

/// Looks at a run that has started and is not over; at any other there is nothing to see.
pub(super) async fn look(record: &Record, node: &Node, cx: &Invocation) -> Result<AtWork, Failure> {
    let is_over = node.status.is_terminal() || node.is_without_supervisor();
    if is_over || node.started_at.is_none() || node.runs_nothing() {
        return Ok(AtWork::default());
    }
    // One that has just gone has written all there is.
    if let Ok((supervisor, _)) = reach(&node.run.to_string(), cx).await
        && let Err(error) = supervisor.call(Output::default()).await
    {
        tracing::debug!(%error, "the last lines may be missing");
    }
    let silence = silences(&[node.root], cx).await?.get(&node.run).copied();
    let (said_at, lines) = last_lines(record, node)?;
    Ok(AtWork { age: node.age(SystemClock.now()), silence, lines, said_at })
}

/// Returns the last lines of both streams, and the time of the last one.
fn last_lines(record: &Record, node: &Node) -> Result<(Option<Timestamp>, Vec<String>), Failure> {
    let mut reader = OutputReader::new(record.folder(), node.root);
    let (mut lines, mut last, mut said_at) = (SaidLines::default(), VecDeque::new(), None);
    let mut keep = |line: SaidLine| {
        if let Text::Said(_, text) = line.text {
            said_at = Some(line.at);
            last.push_back(text);
            last.drain(..last.len().saturating_sub(LINES));
        }
    };
    reader.read::<Failure>(
        |run| run == node.run,
        |said| {
            lines.take(said, &mut keep);
            Ok(())
        },
    )?;
    // A program may wait behind a question, whose line has no end.
    lines.open(node.run).into_iter().for_each(keep);
    let lines = last.iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect();
    Ok((said_at, lines))
}
