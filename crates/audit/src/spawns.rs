//! The spawns of agents, counted again.

use std::collections::VecDeque;
use std::time::Duration;

use offshoot_model::{Rules, Timestamp};

use crate::Rule;

/// The spawns of the tree, and when the latest were.
#[derive(Default)]
pub(crate) struct Spawns {
    pub(crate) count: u64,
    /// Spawns within the last minute, kept where a limit asks for them.
    recent: VecDeque<Timestamp>,
}

const MINUTE: Duration = Duration::from_secs(60);

impl Spawns {
    /// One more, of a caller that has so many live children already. What was not held to, in words.
    pub(crate) fn count(
        &mut self,
        at: Timestamp,
        live_children: u32,
        rules: Option<&Rules>,
    ) -> Vec<(Rule, String)> {
        let mut broken = Vec::new();
        // Where the clock was set back, a spawn may lie in the future. It counts as one of now.
        self.recent.retain(|&earlier| at.since(earlier) < MINUTE);
        if let Some(rules) = rules {
            if self.count >= rules.max_spawns.into() {
                let message = format!("spawn {} of {}", self.count + 1, rules.max_spawns);
                broken.push((Rule::Spawns, message));
            }
            if let Some(most) = rules.max_spawns_per_minute
                && self.recent.len() >= most as usize
            {
                let message = format!("spawn {} of {most} in a minute", self.recent.len() + 1);
                broken.push((Rule::SpawnRate, message));
            }
            if let Some(most) = rules.max_children
                && live_children >= most
            {
                let message = format!("live child {} of {most}", live_children + 1);
                broken.push((Rule::Children, message));
            }
        }
        self.count += 1;
        self.recent.push_back(at);
        broken
    }
}
