//! The progress of the runs on standard error.

use std::time::Duration;

use offshoot_display::{Style, line};
use offshoot_model::{Timestamp, error_chain};
use offshoot_spawner::{Clock, Session, SystemClock};
use offshoot_store::StoreError;
use tokio::time::MissedTickBehavior;

use crate::code::NoteCode;
use crate::output::Output;

/// Ages and silences are drawn anew so often.
const TICK: Duration = Duration::from_secs(1);

/// Shows a tree's events from this moment on until the tree is over, and says when its record cannot be written.
pub(crate) fn follow(
    session: &Session,
    expected: usize,
    since: Timestamp,
    output: Output,
) -> impl Future<Output = ()> + use<> {
    // Of a tree that goes on, the record tells first what has happened before.
    let progress = output.progress(expected as u64);
    let mut progress = progress.map(|progress| progress.since(since));
    let shows_events = progress.is_some() || output.wants_details();
    let mut events = shows_events.then(|| session.events());
    let mut trouble = Some(session.trouble());
    async move {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while events.is_some() || trouble.is_some() {
            tokio::select! {
                biased;
                next = async { trouble.as_mut()?.next().await }, if trouble.is_some() => {
                    let Some(error) = next else {
                        trouble = None;
                        continue;
                    };
                    let text = words(error.as_deref());
                    match &mut progress {
                        Some(progress) => progress.note(&text),
                        None => output.warning(NoteCode::RecordTrouble, text),
                    }
                }
                event = async { events.as_mut()?.next().await }, if events.is_some() => {
                    match (event, &mut progress) {
                        (Some(Ok(event)), Some(progress)) => progress.apply(&event),
                        (Some(Ok(event)), None) if event.at < since => {}
                        (Some(Ok(event)), None) => output.detail(line(&event).style(Style::Colour)),
                        // A record that cannot be read any more is reported by what waits for the answer.
                        (Some(Err(_)) | None, _) => events = None,
                    }
                }
                _ = tick.tick(), if progress.is_some() => {
                    if let Some(progress) = &mut progress {
                        progress.tick(SystemClock.now());
                    }
                }
            }
        }
        if let Some(progress) = progress {
            progress.finish();
        }
    }
}

/// Returns the message on a record that cannot be written; where there is no error, on one that can be written again.
fn words(error: Option<&StoreError>) -> String {
    let Some(error) = error else { return "the record can be written again".to_owned() };
    format!(
        "{}; until it can be written nothing is started, and nothing is told",
        error_chain(error)
    )
}
