//! `offshoot doctor`.

use clap::Args;

/// Check that running trees can be cleaned up if their supervisors are killed
///
/// Shows, for each supervisor of this user that runs, its keeper: the process that ends its agents if it is killed; and whether its
/// agents are in a control group. Ends with 1 where a keeper is stopped or missing.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot doctor
  offshoot doctor --json")]
pub(crate) struct DoctorArguments {}
