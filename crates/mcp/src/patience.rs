//! Waiting no longer than the other side does, and showing signs of life meanwhile.

use offshoot_door::{Client, ClientError, Progress, Wait, Waited};
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use tokio::sync::watch;

use crate::Options;

/// How one call may block.
pub(crate) struct Patience {
    options: Options,
    listener: Option<Listener>,
}

/// Who wants to hear how it goes.
#[derive(Clone)]
struct Listener {
    peer: Peer<RoleServer>,
    token: ProgressToken,
}

impl Patience {
    pub(crate) fn new(options: Options, cx: &RequestContext<RoleServer>) -> Self {
        let token = cx.meta.get_progress_token();
        let listener = token.map(|token| Listener { peer: cx.peer.clone(), token });
        Self { options, listener }
    }

    /// Waits at most as long as asked and as the client is patient.
    pub(crate) async fn wait(
        &self,
        client: &Client,
        wait: Wait,
        seconds: Option<u64>,
    ) -> Result<Waited, ClientError> {
        let most = u64::try_from(self.options.patience.as_millis()).unwrap_or(u64::MAX);
        let asked = seconds.map_or(u64::MAX, |seconds| seconds.saturating_mul(1000));
        let wait = Wait { timeout_ms: Some(asked.min(most)), ..wait };
        let Some(listener) = &self.listener else { return client.call(wait).await };
        let (latest, heard) = watch::channel(Progress::default());
        let waiting = client.call_with_progress(wait, |progress| {
            latest.send_replace(progress);
        });
        tokio::select! {
            waited = waiting => waited,
            () = self.tell(listener, heard) => unreachable!("telling has no end"),
        }
    }

    /// Tells what is new, and at every pulse that it is still waiting. Never ends.
    async fn tell(&self, listener: &Listener, mut heard: watch::Receiver<Progress>) {
        let mut pulse = tokio::time::interval(self.options.pulse);
        // The protocol wants a number that grows with each notification, which the number of ended runs does not.
        let mut told = 0.0;
        loop {
            tokio::select! {
                _ = pulse.tick() => {}
                changed = heard.changed() => changed.expect("the sender outlives the telling"),
            }
            let words = words(&heard.borrow_and_update());
            told += 1.0;
            let progress = ProgressNotificationParam::new(listener.token.clone(), told);
            // A client that does not listen any more cancels the call, or has closed the connection.
            let _ = listener.peer.notify_progress(progress.with_message(words)).await;
        }
    }
}

fn words(progress: &Progress) -> String {
    let Progress { ended, total, text, .. } = progress;
    match (total, text) {
        (0, None) => "waiting".to_owned(),
        (0, Some(text)) => text.clone(),
        (_, None) => format!("{ended} of {total} ended"),
        (_, Some(text)) => format!("{ended} of {total} ended: {text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_in_words() {
        #[track_caller]
        fn check(ended: u64, total: u64, text: Option<&str>, expected: &str) {
            let text = text.map(str::to_owned);
            assert_eq!(words(&Progress { ended, total, text, merged: None }), expected);
        }
        check(0, 0, None, "waiting");
        check(0, 0, Some("reading"), "reading");
        check(1, 2, None, "1 of 2 ended");
        check(1, 2, Some("reading"), "1 of 2 ended: reading");
    }
}
