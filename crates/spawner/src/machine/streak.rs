//! One tool, used with the same input again and again.

use std::sync::Arc;

use offshoot_model::{ContentHash, ToolUse};

/// The number of uses in a row that are named. A model that asks again after an error, or waits for a build, ends sooner.
const TIMES: u32 = 10;

/// The uses of one tool with one input in a row, by one attempt of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Streak {
    attempt: u32,
    tool: Arc<str>,
    input: ContentHash,
    times: u32,
}

impl Streak {
    /// Counts one more use, and returns the tool and the number of uses where this one has to be named. A use whose input is not
    /// known is like no other.
    pub(super) fn of(
        streak: &mut Option<Box<Self>>,
        attempt: u32,
        used: &ToolUse,
    ) -> Option<(Arc<str>, u32)> {
        let Some(input) = &used.input else {
            *streak = None;
            return None;
        };
        let input = input.digest;
        match streak {
            Some(same)
                if same.attempt == attempt && same.tool == used.name && same.input == input =>
            {
                same.times = same.times.saturating_add(1);
                (same.times == TIMES).then(|| (Arc::clone(&same.tool), TIMES))
            }
            other => {
                let tool = Arc::clone(&used.name);
                *other = Some(Box::new(Self { attempt, tool, input, times: 1 }));
                None
            }
        }
    }
}
