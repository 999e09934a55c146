//! Other runtimes for a run that was admitted, in place of one that fails.

use offshoot_model::{Grant, Refusal, RefusalCode};

use super::{reservation, tools};
use crate::budget::Unit;
use crate::{RuntimeFacts, Terms};

/// Checks that this runtime may take over a run: it can keep from it all rights that the run lacks, and the budget of the run can be
/// held there. `was_free` is true if the runtime that the run is on costs nothing, `terms` are those under which it spawns.
///
/// # Errors
///
/// Rights that the runtime cannot keep from the run, a budget that it would break, and a runtime that costs something for a run that has
/// nothing to pay it with.
pub fn check_fallback(
    runtime: &RuntimeFacts,
    was_free: bool,
    terms: &Terms,
    grant: &Grant,
) -> Result<(), Refusal> {
    tools::check_enforceable(&grant.tools, runtime).map_err(|(refusal, _)| refusal)?;
    // Dollars that a tree may cost by default are no budget that was asked for.
    if grant.default_usd.is_none() {
        reservation::check_bounded(&grant.budget, terms, runtime)?;
    }
    if !was_free || runtime.costs_nothing() {
        return Ok(());
    }
    let is_pooled = grant.pooled.tokens || grant.pooled.usd;
    let grants_nothing = Unit::ALL.iter().any(|&unit| unit.of(grant.budget) == Some(0));
    // A run that costs nothing has no part of what its tree may cost by default.
    let has_dollars = grant.budget.usd.is_some() || grant.pooled.usd;
    let why = match () {
        () if grants_nothing && !is_pooled => "is granted nothing",
        () if !has_dollars && runtime.default_of_paid().is_some() => "has no budget in dollars",
        () => return Ok(()),
    };
    let message = format!(
        "the runtime `{}` of model.fallbacks costs something, and a run whose own runtime costs nothing {why}",
        runtime.name
    );
    Err(Refusal::new(RefusalCode::BudgetExhausted, message).with_hint(
        "ask for a budget for it, use another runtime there, or leave it out of model.fallbacks; the operator can give the tree a budget with --budget-usd",
    ))
}

#[cfg(test)]
mod tests {
    use offshoot_config::{AgentId, Config};
    use offshoot_model::{BudgetGrant, CostKnowledge, MicroUsd, Pooled, Rights};

    use super::*;

    #[test]
    fn what_cannot_hold_a_run_does_not_take_it_over() {
        let terms = Terms::root(&Config::default(), &AgentId::main());
        let (none, reported, unknown) =
            (CostKnowledge::None, CostKnowledge::Reported, CostKnowledge::Unknown);
        let check = |was, cost, grant: &Grant, expected: Option<RefusalCode>| {
            let runtime = RuntimeFacts { cost, ..RuntimeFacts::of_a_command("other") };
            let refused = check_fallback(&runtime, was == none, &terms, grant).err();
            assert_eq!(refused.map(|refusal| refusal.code), expected, "{was:?} {cost:?} {grant:?}");
        };
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
        // Dollars by default bound no run that has no part of them.
        let other = |cost, is_free| {
            let default_usd = Some(MicroUsd::from_micros(5));
            RuntimeFacts { cost, is_free, default_usd, ..RuntimeFacts::of_a_command("other") }
        };
        let dollars = |was: &RuntimeFacts, runtime: &RuntimeFacts, grant: &Grant| {
            let checked = check_fallback(runtime, was.costs_nothing(), &terms, grant);
            checked.map_err(|refusal| refusal.code)
        };
        let costly = other(reported, false);
        for was in [other(none, false), other(reported, true)] {
            let refused = Err(RefusalCode::BudgetExhausted);
            assert_eq!(dollars(&was, &costly, &free), refused, "{was:?}");
            assert_eq!(dollars(&was, &costly, &paid), Ok(()));
            let pooled = Pooled { tokens: false, usd: true };
            assert_eq!(dollars(&was, &costly, &Grant { pooled, ..Grant::unbounded() }), Ok(()));
            for last in [other(none, false), other(reported, true), other(unknown, false)] {
                assert_eq!(dollars(&was, &last, &free), Ok(()), "{was:?} {last:?}");
            }
        }
        assert_eq!(dollars(&costly, &costly, &free), Ok(()), "the library may bound no root");
        assert_eq!(dollars(&other(unknown, false), &costly, &free), Ok(()));
        // The runtime can keep nothing from a session.
        let deny = ["exec".to_owned()].into();
        let denied = Grant { tools: Rights { deny, ..Rights::all() }.into(), ..Grant::unbounded() };
        check(none, none, &denied, Some(RefusalCode::ToolsNotGrantable));
    }
}
