//! The sleep that turns the machine's timers into real time.

use std::pin::Pin;
use std::time::Duration;

use offshoot_model::Timestamp;
use tokio::time::Sleep;

use crate::tree_context::TreeContext;

/// The longest sleep. Timers of tokio stand still while the computer sleeps, and the clock of a tree does not.
const LONGEST: Duration = Duration::from_secs(60);

/// One sleep, kept from one wait to the next: timers are set and taken back with every run, and nearly none of them is
/// ever reached. Set again only for an earlier moment, so that it may ring too early; the caller looks at the
/// clock.
#[derive(Default)]
pub(super) struct Alarm(Option<(Timestamp, Pin<Box<Sleep>>)>);

impl Alarm {
    /// Ends when the clock shows this moment, or earlier. Safe to drop and to call again.
    pub(super) async fn rings(&mut self, moment: Option<Timestamp>, tree: &TreeContext) {
        let Some(moment) = moment else { return std::future::pending().await };
        let set = match self.0.take() {
            Some((set, sleep)) if set <= moment => (set, sleep),
            _ => {
                let left = moment.since(tree.clock.now());
                #[expect(
                    clippy::disallowed_methods,
                    reason = "the one place where the machine's timers become real time"
                )]
                let sleep = tokio::time::sleep(left.min(LONGEST));
                (moment, Box::pin(sleep))
            }
        };
        let (_, sleep) = self.0.insert(set);
        sleep.await;
        self.0 = None;
    }
}
