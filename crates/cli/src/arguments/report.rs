//! `offshoot report`.

use clap::Args;

/// Note how it goes, from inside an agent
#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// A line for the parent and for whoever watches
    #[arg(value_name = "TEXT")]
    pub(crate) text: String,
}
