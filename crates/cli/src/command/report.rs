//! `offshoot report`.

use clap::Args;
use offshoot_door::Report;

use crate::door::visit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::work::engine::block_on;

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

/// Notes how it goes.
pub(crate) fn run(arguments: &ReportArguments, cx: &Invocation) -> Result<(), Failure> {
    block_on(async {
        visit(cx).await?.call(Report { text: arguments.text.clone() }).await?;
        Ok(())
    })
}
