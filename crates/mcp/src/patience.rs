//! Waiting no longer than the other side does, and showing signs of life meanwhile.

use offshoot_door::{
    Ask, Client, ClientError, Merged, Progress, SpawnMany, SpawnedMany, Wait, Waited,
};
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use tokio::sync::watch;

use crate::Options;
use crate::repeats::Repeats;

/// The time for which one call may block, and its listener.
pub(crate) struct Patience<'a> {
    pub(crate) options: Options,
    /// The earlier answers to this client.
    pub(crate) repeats: &'a Repeats,
    listener: Option<Listener>,
}

/// The receiver of a call's progress.
struct Listener {
    peer: Peer<RoleServer>,
    token: ProgressToken,
}

impl<'a> Patience<'a> {
    pub(crate) fn new(
        options: Options,
        repeats: &'a Repeats,
        cx: &RequestContext<RoleServer>,
    ) -> Self {
        let token = cx.meta.get_progress_token();
        let listener = token.map(|token| Listener { peer: cx.peer.clone(), token });
        Self { options, repeats, listener }
    }

    /// The patience of a client that no progress is shown to.
    pub(crate) const fn unheard(options: Options, repeats: &'a Repeats) -> Self {
        Self { options, repeats, listener: None }
    }

    /// Waits at most as long as asked and as the client is patient.
    pub(crate) async fn wait(
        &self,
        client: &Client,
        wait: Wait,
        seconds: Option<u64>,
    ) -> Result<Waited, ClientError> {
        self.ask(client, Wait { timeout_ms: Some(self.most(seconds)), ..wait }).await
    }

    /// Asks for children, and waits for them as long as the client is patient, where that is asked too.
    pub(crate) async fn spawn_many(
        &self,
        client: &Client,
        many: SpawnMany,
    ) -> Result<SpawnedMany, ClientError> {
        let in_time = |wait| Wait { timeout_ms: Some(self.most(None)), ..wait };
        self.ask(client, SpawnMany { wait: many.wait.map(in_time), ..many }).await
    }

    /// In milliseconds.
    fn most(&self, seconds: Option<u64>) -> u64 {
        let most = u64::try_from(self.options.patience.as_millis()).unwrap_or(u64::MAX);
        let asked = seconds.map_or(u64::MAX, |seconds| seconds.saturating_mul(1000));
        asked.min(most)
    }

    /// Asks, and shows signs of life until there is an answer.
    async fn ask<A: Ask>(&self, client: &Client, ask: A) -> Result<A::Answer, ClientError> {
        let Some(listener) = &self.listener else { return client.call(ask).await };
        let (latest, heard) = watch::channel(Progress::default());
        let asking = client.call_with_progress(ask, |progress| {
            latest.send_replace(progress);
        });
        tokio::select! {
            answer = asking => answer,
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

/// For people, who read one line.
fn words(progress: &Progress) -> String {
    let Progress { ended, total, text, merged } = progress;
    let so_far = (*total > 0).then(|| format!("{ended} of {total} ended"));
    let merged = merged.as_ref().and_then(glimpse);
    let parts = [so_far, merged, text.clone()].into_iter().flatten().collect::<Vec<_>>();
    if parts.is_empty() { "waiting".to_owned() } else { parts.join(": ") }
}

/// The beginning of what there is of a merge.
fn glimpse(merged: &Merged) -> Option<String> {
    /// A line of a terminal, roughly.
    const MOST: usize = 100;
    let data = merged.data.as_ref()?.as_str();
    let mut shown: String = data.chars().take(MOST).collect();
    if shown.len() < data.len() {
        shown.push('…');
    }
    Some(format!("{} so far {shown}", merged.strategy))
}

#[cfg(test)]
mod tests {
    use offshoot_model::JsonText;

    use super::*;

    #[test]
    fn progress_in_words() {
        #[track_caller]
        fn check(ended: u64, total: u64, text: Option<&str>, merged: Option<&str>, expected: &str) {
            let text = text.map(str::to_owned);
            let merged = merged.map(|data| Merged {
                strategy: "sum".into(),
                data: Some(JsonText::parse(data.into()).expect("JSON")),
                name: None,
                failed: vec![],
                error: None,
                chosen: None,
            });
            assert_eq!(words(&Progress { ended, total, text, merged }), expected);
        }
        check(0, 0, None, None, "waiting");
        check(0, 0, Some("reading"), None, "reading");
        check(1, 2, None, None, "1 of 2 ended");
        check(1, 2, Some("reading"), None, "1 of 2 ended: reading");
        check(1, 2, Some("reading"), Some("7"), "1 of 2 ended: sum so far 7: reading");
        let long = format!("\"{}\"", "ü".repeat(300));
        let shown = format!("1 of 2 ended: sum so far \"{}…", "ü".repeat(99));
        check(1, 2, None, Some(&long), &shown);
    }
}
