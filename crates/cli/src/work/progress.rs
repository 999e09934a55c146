//! The progress of the runs on standard error.

use offshoot_display::{Style, line};
use offshoot_model::error_chain;
use offshoot_spawner::Session;
use offshoot_store::StoreError;

use crate::output::Output;

/// Shows a tree's events until the tree is over, and says when its record cannot be written.
pub(crate) fn follow(
    session: &Session,
    expected: usize,
    output: Output,
) -> impl Future<Output = ()> + use<> {
    let mut progress = output.progress(expected as u64);
    let shows_events = progress.is_some() || output.wants_details();
    let mut events = shows_events.then(|| session.events());
    let mut trouble = Some(session.trouble());
    async move {
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
                        None => output.warning(text),
                    }
                }
                event = async { events.as_mut()?.next().await }, if events.is_some() => {
                    match (event, &mut progress) {
                        (Some(Ok(event)), Some(progress)) => progress.apply(&event),
                        (Some(Ok(event)), None) => output.detail(line(&event).style(Style::Colour)),
                        // A record that cannot be read any more is reported by what waits for the answer.
                        (Some(Err(_)) | None, _) => events = None,
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
