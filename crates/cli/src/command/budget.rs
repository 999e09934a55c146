//! `offshoot budget`.

use offshoot_door::{RaiseBudget, RunName};
use offshoot_model::{BudgetRequest, MicroUsd};

use super::spawn::call;
use crate::arguments::BudgetArguments;
use crate::door::reach;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::work::engine::block_on;

/// Adds to the budget of a run, and to every budget above it.
pub(crate) fn run(arguments: &BudgetArguments, cx: &Invocation) -> Result<Exit, Failure> {
    let BudgetArguments { run, add, add_tokens } = arguments;
    let usd = add.map(|dollars| {
        MicroUsd::from_f64(dollars).ok_or_else(|| {
            let most = MicroUsd::MAX;
            Failure::input(format_args!(
                "--add: {dollars} is not an amount from 0 to {most} dollars"
            ))
        })
    });
    let add = BudgetRequest { tokens: *add_tokens, usd: usd.transpose()? };
    block_on(async {
        let (supervisor, run) = reach(run, cx).await?;
        call(&supervisor, RaiseBudget { run: RunName(run), add }).await?;
        Ok(Exit::Done)
    })
}
