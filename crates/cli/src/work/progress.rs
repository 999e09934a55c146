//! How the work goes, on standard error, while it goes.

use offshoot_display::{Style, line};
use offshoot_spawner::EventStream;

use crate::output::Output;

/// Shows a tree's events until the tree is over.
pub(crate) async fn follow(mut events: EventStream, expected: usize, output: Output) {
    let mut progress = output.progress(expected as u64);
    if progress.is_none() && !output.wants_details() {
        return;
    }
    // A record that cannot be read any more is reported by whoever waits for the answer.
    while let Some(Ok(event)) = events.next().await {
        match &mut progress {
            Some(progress) => progress.apply(&event),
            None => output.detail(line(&event).style(Style::Colour)),
        }
    }
    if let Some(progress) = progress {
        progress.finish();
    }
}
