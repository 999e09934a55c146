//! `offshoot audit`.

use clap::Args;

/// Prove the record of a tree, and count again what it was held to
///
/// The hash chain is recomputed first. Then slots, depth, spawns, rights, budgets, endings and deliveries are counted
/// again from the events alone, by code that shares nothing with what ran the tree. Exits 1 on any breach.
///
/// The last link that is printed stands for the whole record: keep it elsewhere to be able to tell later that nobody
/// has written the record anew.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot audit 0198c7
  offshoot audit 0198c7 --json | jq .breaches")]
pub(crate) struct AuditArguments {
    /// Any run of the tree: a run id, its unique beginning, or a session key
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
}
