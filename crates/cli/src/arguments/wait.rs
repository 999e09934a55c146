//! `offshoot wait`.

use std::time::Duration;

use clap::Args;
use offshoot_merge::OnFailure;

use super::strategies;
use super::value::duration;
use super::words::{ON_FAILURE, one_of};

/// Wait for children, from inside an agent
///
/// Prints their answers in the order asked. The slot of the waiting agent is lent meanwhile, so a tree of any depth
/// finishes with a single slot.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  All children, in the order in which they were asked for:
    \"$OFFSHOOT\" wait
  The first of two that ends, as JSON, for a minute at most:
    \"$OFFSHOOT\" wait --any --timeout 1m --json 0198c7 0198c8
  Their sum, by a jq program:
    \"$OFFSHOOT\" wait --merge 'plugin:merge-jq=map(.value | tonumber) | add'")]
pub(crate) struct WaitArguments {
    /// The runs to wait for [default: the children that the session has not heard of yet, or all]
    #[arg(value_name = "RUN")]
    pub(crate) runs: Vec<String>,

    /// Until one of them has ended
    #[arg(long)]
    pub(crate) any: bool,

    #[arg(help = strategies(
        "Print their answers as one",
        "or by a plugin that was there when the tree began",
        "; what an early answer does not need is cancelled"
    ))]
    #[arg(long, value_name = "STRATEGY")]
    pub(crate) merge: Option<String>,

    /// With --merge: what a run that did not complete means
    #[arg(long, value_name = "POLICY", value_parser = one_of(ON_FAILURE), default_value = "fail", requires = "merge")]
    pub(crate) on_failure: OnFailure,

    /// Give up after this time, such as 90s; the children go on
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
}
