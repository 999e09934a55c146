//! `offshoot budget`.

use offshoot_display::number;
use offshoot_door::{Client, RaiseBudget, RunName};
use offshoot_model::BudgetRequest;

use crate::arguments::BudgetArguments;
use crate::code::NoteCode;
use crate::door::reach;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::work::engine::block_on;

/// Adds to the budget of a run, and to every budget above it.
pub(crate) fn run(arguments: &BudgetArguments, cx: &Invocation) -> Result<(), Failure> {
    let BudgetArguments { run, add, add_tokens } = arguments;
    let add = BudgetRequest { tokens: *add_tokens, usd: *add };
    block_on(async {
        let (supervisor, run) = reach(run, cx).await?;
        cx.output.note(NoteCode::BudgetRaised, raise(&supervisor, run, add).await?);
        Ok(())
    })
}

/// Has a supervisor add to the budget of a run, and says what that changed.
pub(super) async fn raise(
    supervisor: &Client,
    run: String,
    add: BudgetRequest,
) -> Result<String, Failure> {
    supervisor.call(RaiseBudget { run: RunName(run.clone()), add }).await?;
    let tokens = add.tokens.map(|tokens| format!("{} tokens", number::count(tokens)));
    let dollars = add.usd.map(number::dollars);
    let more = [dollars, tokens].into_iter().flatten().collect::<Vec<_>>().join(" and ");
    Ok(format!("the budget of {run}, and each above it, is {more} larger"))
}
