//! `offshoot report`.

use offshoot_door::Report;

use super::spawn::call;
use crate::arguments::ReportArguments;
use crate::door::visit;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::work::engine::block_on;

/// Notes how it goes.
pub(crate) fn run(arguments: &ReportArguments, cx: &Invocation) -> Result<Exit, Failure> {
    block_on(async {
        let supervisor = visit(cx).await?;
        call(&supervisor, Report { text: arguments.text.clone() }).await?;
        Ok(Exit::Done)
    })
}
