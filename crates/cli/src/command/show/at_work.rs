//! A run at work: for how long it has been silent, and the last lines that it said.

use std::collections::VecDeque;
use std::time::Duration;

use offshoot_door::Output;
use offshoot_model::Node;
use offshoot_store::OutputReader;

use crate::door::{reach, silences};
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::Record;
use crate::said::{SaidLine, SaidLines, Text};

/// The last lines that are shown.
const LINES: usize = 3;

/// A run at work.
#[derive(Debug, Default)]
pub(super) struct AtWork {
    /// The time since the run last said something. `None` where the run waits for its children, or where its supervisor does not answer.
    pub(super) silence: Option<Duration>,
    /// The last lines of both streams, the newest last.
    pub(super) lines: Vec<String>,
}

/// Looks at a run that has started and is not over; at any other there is nothing to see.
pub(super) async fn look(record: &Record, node: &Node, cx: &Invocation) -> Result<AtWork, Failure> {
    if node.status.is_terminal() || node.started_at.is_none() || node.runs_nothing() {
        return Ok(AtWork::default());
    }
    // One that has just gone has written all there is.
    if let Ok((supervisor, _)) = reach(&node.run.to_string(), cx).await
        && let Err(error) = supervisor.call(Output::default()).await
    {
        tracing::debug!(%error, "the last lines may be missing");
    }
    let silence = silences(&[node.root], cx).await?.get(&node.run).copied();
    Ok(AtWork { silence, lines: last_lines(record, node)? })
}

fn last_lines(record: &Record, node: &Node) -> Result<Vec<String>, Failure> {
    let mut reader = OutputReader::new(record.folder(), node.root);
    let (mut lines, mut last) = (SaidLines::default(), VecDeque::new());
    let mut keep = |line: SaidLine| {
        if let Text::Said(_, text) = line.text {
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
    Ok(last.iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect())
}
