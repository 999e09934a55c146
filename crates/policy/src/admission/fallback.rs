//! Other runtimes for a run that was admitted, in place of one that fails.

use offshoot_model::{CostKnowledge, Grant, Refusal, RefusalCode};

use super::{reservation, tools};
use crate::budget::Unit;
use crate::{RuntimeFacts, Terms};

/// Checks that this runtime may take over a run: it can keep from it all rights that the run lacks, and the budget of the run can be
/// held there. `was` is the knowledge of the cost with which the run is admitted, `terms` are those under which it spawns.
///
/// # Errors
///
/// Rights that the runtime cannot keep from the run, and a budget that it would break.
pub fn check_fallback(
    runtime: &RuntimeFacts,
    was: CostKnowledge,
    terms: &Terms,
    grant: &Grant,
) -> Result<(), Refusal> {
    let hint = "use another runtime there, or leave it out of model.fallbacks";
    tools::check_enforceable(&grant.tools, runtime).map_err(|(refusal, _)| refusal)?;
    reservation::check_bounded(&grant.budget, terms, runtime)?;
    let is_free = |cost: CostKnowledge| cost == CostKnowledge::None;
    let grants_nothing = Unit::ALL.iter().any(|&unit| unit.of(grant.budget) == Some(0));
    let is_pooled = grant.pooled.tokens || grant.pooled.usd;
    if is_free(was) && !is_free(runtime.cost) && grants_nothing && !is_pooled {
        let message = format!(
            "the runtime `{}` of model.fallbacks costs something, and a run whose own runtime costs nothing is granted nothing",
            runtime.name
        );
        return Err(Refusal::new(RefusalCode::BudgetExhausted, message).with_hint(hint));
    }
    Ok(())
}
