//! The words of the selected run, on their way to the screen.

use std::collections::VecDeque;
use std::sync::Arc;

use offshoot_door::Output;
use offshoot_model::{RootId, RunId, RunStatus};
use offshoot_store::OutputReader;
use offshoot_watch::{News, Words};
use tokio::runtime::Handle;
use tokio::sync::mpsc::Sender;
use tokio::sync::watch::Receiver;

use super::trees::Trees;
use super::{Told, start_thread};
use crate::failure::Failure;
use crate::record::Record;
use crate::said::{SaidLine, SaidLines, Text};

/// The run whose words are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) run: Option<(RootId, RunId)>,
    /// The number of times that a supervisor has gone, and all is written, or that one has come to go on with a tree.
    pub(super) changes: u64,
}

/// Lines that are told of a run that has said more.
const MOST: usize = 5000;

/// An event with this number is never recorded: what is said alone is waited for.
const NO_EVENT: u64 = u64::MAX;

/// Reads on a thread of its own what the wanted run says. The thread ends when nothing can be wanted any more.
pub(super) fn follow(
    trees: Arc<Trees>,
    mut wanted: Receiver<Wanted>,
    tx: Sender<Told>,
) -> Result<(), Failure> {
    let handle = Handle::current();
    let read = move || {
        handle.block_on(async {
            loop {
                let now = *wanted.borrow_and_update();
                if let Some((root, run)) = now.run
                    && let Err(failure) = one(root, run, &trees, &mut wanted, &tx).await
                    && tx.send(Told::Failed(failure)).await.is_err()
                {
                    return;
                }
                // What is said of another run is told by another round.
                if *wanted.borrow() == now && wanted.changed().await.is_err() {
                    return;
                }
            }
        });
    };
    start_thread("said", read)
}

/// Tells what a run says, until another one is wanted or nothing more is said.
async fn one(
    root: RootId,
    run: RunId,
    trees: &Trees,
    wanted: &mut Receiver<Wanted>,
    tx: &Sender<Told>,
) -> Result<(), Failure> {
    let Some(record) = trees.record(root) else { return Ok(()) };
    let mut reader = OutputReader::new(record.folder(), root);
    let mut lines = SaidLines::default();
    let (mut said, mut is_first) = (None, true);
    loop {
        // Before anything is read: a supervisor that has let go of the tree has written all there is.
        let is_over = record.is_abandoned(root)?;
        let mut new = VecDeque::new();
        let mut keep = |line: SaidLine| {
            new.push_back(words(line));
            if new.len() > MOST {
                new.pop_front();
            }
        };
        reader.read::<Failure>(
            |any| any == run,
            |said| {
                lines.take(said, &mut keep);
                Ok(())
            },
        )?;
        if is_over && status(root, run, &record)? == RunStatus::Lost {
            lines.cut_off_if_said(run, &mut keep);
        }
        let open = lines.open(run).into_iter().map(words).collect();
        let from_beginning = std::mem::take(&mut is_first);
        let news = News { from_beginning, lines: new.into(), open };
        if tx.send(Told::Said(run, news)).await.is_err() || is_over {
            return Ok(());
        }
        // Where it has just gone, the end of its tree is told, and leads here again.
        let Ok(supervisor) = trees.supervisor(root).await else { return Ok(()) };
        tokio::select! {
            _ = wanted.changed() => return Ok(()),
            answer = supervisor.call(Output { after: said, event: NO_EVENT }) => match answer {
                Ok(answer) => said = Some(answer.said),
                Err(_) => {
                    trees.forget(root);
                    return Ok(());
                }
            },
        }
    }
}

/// Returns the status of a run of a tree whose supervisor has gone.
fn status(root: RootId, run: RunId, record: &Record) -> Result<RunStatus, Failure> {
    let ending = record.store().ending(root, run)?;
    Ok(ending.map_or(RunStatus::Lost, |ending| ending.status()))
}

fn words(line: SaidLine) -> Words {
    let (stream, text) = match line.text {
        Text::Said(stream, text) => (Some(stream), String::from_utf8_lossy(&text).into_owned()),
        Text::Missing(why) => (None, format!("[{why}]")),
    };
    Words { at: line.at, stream, text }
}
