//! `offshoot report`.

use clap::Args;

/// Note how it goes, from inside an agent
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
    \"$OFFSHOOT\" report 'half of the files are read'")]
pub(crate) struct ReportArguments {
    /// A line of progress, for the parent and for people who watch the tree
    #[arg(value_name = "TEXT")]
    pub(crate) text: String,
}
