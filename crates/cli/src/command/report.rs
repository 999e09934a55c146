//! `offshoot report`.

use offshoot_door::Report;

use crate::arguments::ReportArguments;
use crate::door::visit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::work::engine::block_on;

/// Notes how it goes.
pub(crate) fn run(arguments: &ReportArguments, cx: &Invocation) -> Result<(), Failure> {
    block_on(async {
        visit(cx).await?.call(Report { text: arguments.text.clone() }).await?;
        Ok(())
    })
}
