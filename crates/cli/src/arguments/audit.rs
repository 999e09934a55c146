//! `offshoot audit`.

use std::path::PathBuf;

use clap::Args;
use offshoot_model::ContentHash;

use super::value::value;

/// The form of the last link of a record.
const LINK: &str =
    "64 hexadecimal digits, which `offshoot audit RUN --head` printed last in its line";
const LINK_EXAMPLE: &str = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";

/// Prove the record of a tree, and count again what it was held to
///
/// The hash chain is recomputed first. Then slots, depths, spawns and their rates, agents, cycles, rights, budgets, times, breakers,
/// attempts, endings and deliveries are counted again from the events alone, by code that shares nothing with what ran the tree. Exits 1
/// on any breach.
///
/// The chain proves that a record is consistent, not that it is the one that was written: who can write the database can compute it
/// again. The last link stands for the whole record. Keep it elsewhere (--head, or `audit.heads` in the configuration: a file, or a
/// program that reads it), and --since tells whether the record still continues it; or sign it (--sign, or `audit.sign`), and --verify
/// tells whether it is still the one that was signed. Keys are those of ssh, of the kind ed25519.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot audit
  offshoot audit 0198c7
  offshoot audit --all
  offshoot audit 0198c7 --json | jq .breaches
  offshoot audit --head >> /mnt/elsewhere/heads
  offshoot audit 0198c7 --since 5f0c…
  offshoot audit 0198c7 --sign ~/.ssh/id_ed25519 > 0198c7.sig
  offshoot audit 0198c7 --verify 0198c7.sig --key ~/.ssh/id_ed25519.pub

Environment:
  OFFSHOOT_AUDIT_HEADS  a file to which each tree's last link is appended when the command that ran the tree ends,
                        instead of audit.heads")]
pub(crate) struct AuditArguments {
    /// Any run of the tree: a run id, its unique beginning, a session key, a label, `last`, `main` or `@N` [default: last; with --head:
    /// all trees]
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,

    /// Audit all trees, and count over all of them the slots that they share (`host.maxConcurrent`, `host.maxConcurrentPerAccount`)
    #[arg(long, conflicts_with_all = ["run", "head", "since", "sign", "verify"])]
    pub(crate) all: bool,

    /// Print the last link of each tree, or of that of RUN, and nothing else: tree, number of events, link
    #[arg(long, conflicts_with_all = ["since", "sign", "verify"])]
    pub(crate) head: bool,

    /// Make sure that the record continues the one that had this link
    #[arg(long, value_name = "LINK", value_parser = value::<ContentHash>(LINK, LINK_EXAMPLE))]
    pub(crate) since: Option<ContentHash>,

    /// Print a signature of the last link of a tree that is over, by this private key of ssh (ed25519, without a passphrase)
    #[arg(long, value_name = "FILE", conflicts_with = "verify")]
    pub(crate) sign: Option<PathBuf>,

    /// Make sure that this is a signature of the tree's last link, or a list of links with one
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) verify: Option<PathBuf>,

    /// The public key for --verify
    #[arg(long, value_name = "FILE", requires = "verify")]
    pub(crate) key: Option<PathBuf>,
}
