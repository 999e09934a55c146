//! `offshoot apply`.

use clap::Args;

/// Bring the changes of a run, or the branch of many, to the files here
///
/// Nothing is staged or committed. All changes are brought, or none: where a file has changes that are not committed, or others
/// have changed the same lines since, the files are named and nothing is touched.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot apply last
  offshoot apply 0198c7 && git diff")]
pub(crate) struct ApplyArguments {
    /// A run id, its unique beginning, a session key, a label, `last`, `main` or `@N`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
}
