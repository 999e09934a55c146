//! The words of agents, on their way to the files.

use std::time::Duration;

use offshoot_door::{Output, OutputWritten};

use super::TreeService;

/// A follower is told so often at most: what comes meanwhile is written with one call for each agent.
const EVERY: Duration = Duration::from_millis(40);

impl TreeService {
    /// Has it written, once there is something new where the caller waits for that.
    pub(super) async fn output(&self, asked: Output) -> OutputWritten {
        let Output { after, event } = asked;
        if let Some(after) = after {
            self.agents.output_news(after, event).await;
            #[expect(clippy::disallowed_methods, reason = "no event ends it: more is let gather")]
            tokio::time::sleep(EVERY).await;
        }
        OutputWritten { said: self.agents.output_written().await }
    }
}
