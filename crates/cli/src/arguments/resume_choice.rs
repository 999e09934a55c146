//! The choice of what runs again of a tree that is over.

use clap::Args;
use offshoot_model::MicroUsd;

use super::value::{seconds, seconds_from_now, usd, whole};
use crate::wording::command_line;

/// The choice of what runs again of a tree that is over, and its new limits.
#[derive(Debug, Default, PartialEq, Args)]
pub(crate) struct ResumeChoice {
    /// Run the pieces again that failed or took too long, those that were cancelled because too many had failed, and those that were not started
    /// because the budget or the time to wait for a quota was used up
    #[arg(long)]
    pub(crate) failed: bool,

    /// Run the pieces again that were cancelled or never started, as without any option; --failed --cancelled runs both kinds
    #[arg(long)]
    pub(crate) cancelled: bool,

    /// Of those, only the pieces with this label; one label: each further one is another command
    #[arg(long, value_name = "LABEL")]
    pub(crate) only: Option<String>,

    /// The time that the tree has from now on, such as 90s or 2h; must be given where it was over
    #[arg(long, value_name = "DURATION", value_parser = seconds_from_now)]
    pub(crate) deadline: Option<u64>,

    /// Time that a piece may run which begins from now on, such as 90s, in place of what the tree allowed; 0 is no limit
    #[arg(long, value_name = "DURATION", value_parser = seconds)]
    pub(crate) timeout: Option<u64>,

    /// Time for which such a piece may run without a sign of life, such as 30m; 0 is no limit
    #[arg(long, value_name = "DURATION", value_parser = seconds)]
    pub(crate) idle_timeout: Option<u64>,

    /// Dollars the whole tree may cost, with what it has cost; must be given where they were used up
    #[arg(long, value_name = "USD", value_parser = usd)]
    pub(crate) budget_usd: Option<MicroUsd>,

    /// Tokens the whole tree may use, with what it has used; must be given where they were used up
    #[arg(long, value_name = "N", value_parser = whole(0_u64.., "20000"))]
    pub(crate) budget_tokens: Option<u64>,
}

impl ResumeChoice {
    /// Returns the options as they are typed, with a space before each.
    pub(crate) fn typed(&self) -> String {
        let Self {
            failed,
            cancelled,
            only,
            deadline,
            timeout,
            idle_timeout,
            budget_usd,
            budget_tokens,
        } = self;
        let only = only.as_ref().map(|only| command_line(std::slice::from_ref(only)));
        let words = [
            failed.then(|| " --failed".to_owned()),
            cancelled.then(|| " --cancelled".to_owned()),
            only.map(|only| format!(" --only {only}")),
            deadline.map(|seconds| format!(" --deadline {seconds}s")),
            timeout.map(|seconds| format!(" --timeout {seconds}s")),
            idle_timeout.map(|seconds| format!(" --idle-timeout {seconds}s")),
            budget_usd.map(|usd| format!(" --budget-usd {usd}")),
            budget_tokens.map(|tokens| format!(" --budget-tokens {tokens}")),
        ];
        words.into_iter().flatten().collect()
    }
}
