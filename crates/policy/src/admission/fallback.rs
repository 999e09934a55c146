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
    // Dollars that a tree may cost by default are no budget that was asked for.
    if grant.default_usd.is_none() {
        reservation::check_bounded(&grant.budget, terms, runtime)?;
    }
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

#[cfg(test)]
mod tests {
    use offshoot_config::{AgentId, Config};
    use offshoot_model::{BudgetGrant, MicroUsd, Pooled, Rights};

    use super::*;

    #[test]
    fn what_cannot_hold_a_run_does_not_take_it_over() {
        let terms = Terms::root(&Config::default(), &AgentId::main());
        let check = |was, cost, grant: &Grant, expected: Option<RefusalCode>| {
            let runtime = RuntimeFacts { cost, ..RuntimeFacts::of_a_command("other") };
            let refused = check_fallback(&runtime, was, &terms, grant).err();
            assert_eq!(refused.map(|refusal| refusal.code), expected, "{was:?} {cost:?} {grant:?}");
        };
        let (none, reported, unknown) =
            (CostKnowledge::None, CostKnowledge::Reported, CostKnowledge::Unknown);
        let free = Grant::unbounded();
        check(reported, unknown, &free, None);
        let dollars =
            |micros| BudgetGrant { tokens: None, usd: Some(MicroUsd::from_micros(micros)) };
        let paid = Grant { budget: dollars(5), ..Grant::unbounded() };
        check(reported, reported, &paid, None);
        check(reported, unknown, &paid, Some(RefusalCode::CostUnbounded));
        // A run that costs nothing was granted nothing.
        let nothing = Grant { budget: dollars(0), ..Grant::unbounded() };
        check(none, none, &nothing, None);
        check(none, reported, &nothing, Some(RefusalCode::BudgetExhausted));
        check(none, reported, &paid, None);
        // A piece draws its part only when it starts.
        for pooled in [Pooled { tokens: true, usd: false }, Pooled { tokens: false, usd: true }] {
            check(none, reported, &Grant { pooled, ..nothing.clone() }, None);
        }
        // The runtime can keep nothing from a session.
        let deny = ["exec".to_owned()].into();
        let denied = Grant { tools: Rights { deny, ..Rights::all() }.into(), ..Grant::unbounded() };
        check(none, none, &denied, Some(RefusalCode::ToolsNotGrantable));
    }
}
