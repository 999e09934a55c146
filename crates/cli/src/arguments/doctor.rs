//! `offshoot doctor`.

use clap::Args;

/// Check that running trees can be cleaned up, or that limits hold
///
/// Shows what is found on this computer: programs of agents with their versions and logins, the data folder, descriptors, memory, and what
/// trees of this user take of the limits of the section `host`. No key is read.
///
/// Shows also, for each supervisor of this user that runs, its keeper: the process that ends its agents if it is killed; and whether its
/// agents are in a control group; with --json that alone. Ends with 1 where a keeper is stopped or missing.
///
/// With --prove it tries the limits of the configuration that holds here, one by one: built-in agents ask for more than each limit
/// allows, and the table shows what they got. Limits over all trees of this user are tried apart from the trees that run.
/// No program and no model is started; it takes a few seconds. Ends with 1 where a limit does not hold.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot doctor
  offshoot doctor --prove
  offshoot doctor --prove --config strict.toml --json")]
pub(crate) struct DoctorArguments {
    /// Try each limit of the configuration with built-in agents
    #[arg(long)]
    pub(crate) prove: bool,
}
