//! The options that depend on the program at the other end.

use std::time::Duration;

use crate::RightsOf;

/// The options of a server, by the patience of the model's program.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The longest that a call blocks. A wait that takes longer is answered with what is still pending.
    pub patience: Duration,
    /// The interval at which a call that blocks shows a sign of life, where the caller asked for progress. Not zero.
    pub pulse: Duration,
    /// The rights by which the tools of the program itself can be permitted. With them there is a tool `permission`, which
    /// answers a program that asks before it uses one of these.
    pub permission: Option<RightsOf>,
}

impl Default for Options {
    /// 45 seconds, since clients commonly give up after 60; a pulse of 5, so that several fit into any of their limits.
    fn default() -> Self {
        Self { patience: Duration::from_secs(45), pulse: Duration::from_secs(5), permission: None }
    }
}
