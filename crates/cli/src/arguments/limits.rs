//! Flags that set limits. They are the topmost layer of the configuration and obey its bounds.

use clap::{ArgAction, Args};
use offshoot_model::{Cleanup, RetryOn};
use serde::{Deserialize, Serialize};

use super::value::{max_depth, seconds_text, usd, value, whole, written};
use super::words::{CLEANUP, one_of};

/// The endings after which an agent may begin again.
const ENDINGS: &str = "endings with commas between them: exit:CODE, exit, signal, timeout, idle";

/// Limits of a tree. Kept as text: the configuration knows types, bounds and what to say about them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[command(next_help_heading = "Limits (they override the configuration, within its bounds)")]
pub(crate) struct LimitArguments {
    /// Agents that run at once, at all depths, and are not blocked in a wait; the rest queue
    #[arg(long, short = 'j', visible_alias = "jobs", value_name = "N", value_parser = written(whole(1..=u32::MAX, "4")))]
    pub(crate) max_concurrent: Option<String>,

    /// Time that an agent may run, such as 90s, with the CPU time that it uses while it waits; 0 is no limit, and 0.5 counts as 1 s
    #[arg(long, value_name = "DURATION", value_parser = seconds_text)]
    pub(crate) timeout: Option<String>,

    /// Time for which an agent may run without a sign of life, such as 30m; 0 is no limit [default: as configured, 600 s built in]
    #[arg(long, value_name = "DURATION", value_parser = seconds_text)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) idle_timeout: Option<String>,

    /// Time that the whole tree may take, such as 2h; what is not over then is ended, and 0 is no limit
    #[arg(long, value_name = "DURATION", value_parser = seconds_text)]
    pub(crate) deadline: Option<String>,

    /// Dollars the whole tree may cost; pieces of a map or a fanout draw from it as they start
    #[arg(long, value_name = "USD", value_parser = written(usd))]
    pub(crate) budget_usd: Option<String>,

    /// Tokens the whole tree may use, shared in the same way
    #[arg(long, value_name = "N", value_parser = written(whole(0_u64.., "20000")))]
    pub(crate) budget_tokens: Option<String>,

    /// Further attempts of an agent whose runtime had a passing fault, or that ended as --retry-on says
    #[arg(long, value_name = "N", value_parser = written(whole(0..=u32::MAX, "2")))]
    pub(crate) retries: Option<String>,

    /// Endings after which an agent begins again, such as exit:75,timeout: exit:CODE, exit, signal, timeout, idle
    #[arg(long, value_name = "ENDINGS", value_parser = written(value::<RetryOn>(ENDINGS, "exit:75,timeout")), requires = "retries")]
    pub(crate) retry_on: Option<String>,

    /// Time before the second attempt, such as 10s; each further one waits twice as long, and each a fifth more or less by chance
    #[arg(long, value_name = "DURATION", value_parser = seconds_text, requires = "retries")]
    pub(crate) backoff: Option<String>,

    /// Levels below the root
    #[arg(long, value_name = "N", value_parser = max_depth)]
    pub(crate) max_depth: Option<String>,

    /// Spawns that agents may ask for, over the life of the tree
    #[arg(long, value_name = "N", value_parser = written(whole(1..=u32::MAX, "100")))]
    pub(crate) max_spawns: Option<String>,

    /// Let agents below the root spawn too
    #[arg(long, action = ArgAction::SetTrue)]
    pub(crate) allow_recursive_spawn: bool,

    /// Keep or delete sessions below the root once their answers were handed over, where the request does not say; keep holds
    /// whatever is requested [default: as configured]
    #[arg(long, value_name = "WHAT", value_parser = one_of(CLEANUP))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cleanup: Option<Cleanup>,
}

impl LimitArguments {
    /// True if none was given.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A flag that sets a key of the configuration.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LimitFlag<'a> {
    /// With its dashes.
    pub(crate) flag: &'static str,
    /// Below `agents.defaults.subagents`.
    pub(crate) key: &'static str,
    /// As it was written.
    pub(crate) value: &'a str,
}

impl LimitArguments {
    /// The flags that were given.
    pub(crate) fn flags(&self) -> Vec<LimitFlag<'_>> {
        let recursive = self.allow_recursive_spawn.then_some("true");
        [
            ("--max-concurrent", "maxConcurrent", self.max_concurrent.as_deref()),
            ("--timeout", "runTimeoutSeconds", self.timeout.as_deref()),
            ("--idle-timeout", "idleTimeoutSeconds", self.idle_timeout.as_deref()),
            ("--deadline", "deadlineSeconds", self.deadline.as_deref()),
            ("--budget-usd", "budget.usd", self.budget_usd.as_deref()),
            ("--budget-tokens", "budget.tokens", self.budget_tokens.as_deref()),
            ("--retries", "retries.count", self.retries.as_deref()),
            ("--retry-on", "retries.on", self.retry_on.as_deref()),
            ("--backoff", "retries.backoffSeconds", self.backoff.as_deref()),
            ("--max-depth", "maxDepth", self.max_depth.as_deref()),
            ("--max-spawns", "maxSpawns", self.max_spawns.as_deref()),
            ("--allow-recursive-spawn", "allowRecursiveSpawn", recursive),
            ("--cleanup", "cleanup", self.cleanup.as_ref().map(Cleanup::as_ref)),
        ]
        .into_iter()
        .filter_map(|(flag, key, value)| Some(LimitFlag { flag, key, value: value? }))
        .collect()
    }
}
