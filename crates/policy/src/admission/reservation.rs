//! The share of the budget that a child gets.
//!
//! A run that costs something, and whose dollars no budget bounds, gets a share of what its tree may cost by default
//! (`runtimes.NAME.defaultUsd`). So does a run that costs nothing, where dollars are asked for it: what it starts is bounded by them.

use offshoot_model::{
    BudgetGrant, BudgetRequest, CostKnowledge, MicroUsd, Origin, Pooled, Refusal, RefusalCode,
    SpawnRequest,
};

use super::Question;
use crate::budget::Unit;
use crate::{RuntimeFacts, Terms};

/// The amounts that are reserved for a child and everything below it.
pub(super) struct Reserved {
    pub(super) budget: BudgetGrant,
    pub(super) pooled: Pooled,
    /// The most dollars that the tree may cost where no budget bounds it, where those of the child are a part of them.
    pub(super) default_usd: Option<MicroUsd>,
}

/// Returns the reservation for the child and everything below it: the amount that was asked for, else a share of what the caller
/// has left; never more than the child's own budget. A piece that asks for nothing draws its part when it starts.
pub(super) fn check(
    question: &Question<'_>,
    terms: &Terms,
    may_spawn: bool,
) -> Result<Reserved, Refusal> {
    let Question { caller, load, request, origin, runtime, .. } = *question;
    let of_caller = load.books.ledger.left(caller.run);
    let most = most(question, terms);
    let is_bounded = of_caller.usd.is_some() || most.usd.is_some();
    let asks_for_usd = asked(request, Unit::Usd).is_some();
    let default_usd = match asks_for_usd && origin == Origin::Agent {
        true => runtime.default_usd,
        false => runtime.default_of_paid(),
    };
    let default_usd = default_usd.filter(|_| !is_bounded);
    let by_default = default_usd.map(|most| load.books.ledger.left_by_default(most));
    let left =
        BudgetGrant { usd: by_default.map(MicroUsd::from_micros).or(of_caller.usd), ..of_caller };
    let part = caller.terms.spawn_part();
    // A run that costs nothing and cannot pass a budget on needs no reservation.
    let is_free = runtime.cost == CostKnowledge::None && !may_spawn;
    let pools = origin == Origin::Piece && caller.terms.pools_pieces() && !is_free;
    let pooled = |unit: Unit| {
        let is_bounded = unit.of(of_caller).is_some() && unit.of(most) != Some(0);
        pools && is_bounded && asked(request, unit).is_none()
    };
    let exhausted = |unit: Unit, asked: u64, left: u64| match default_usd {
        Some(most) if unit == Unit::Usd => {
            // Of a run that costs nothing the limit is that of others.
            let name = runtime.default_of_paid().map(|_| &*runtime.name);
            default_exhausted(name.unwrap_or("NAME"), most, asked, left)
        }
        _ => exhausted(caller.terms, unit, asked, left),
    };
    let reserve = |unit: Unit| -> Result<Option<u64>, Refusal> {
        let (left, asked) = (unit.of(left), asked(request, unit));
        let amount = match (asked, left) {
            (Some(asked), Some(left)) if asked > left => {
                return Err(exhausted(unit, asked, left));
            }
            (Some(asked), _) => Some(asked),
            (None, Some(_)) if is_free || pooled(unit) => Some(0),
            (None, Some(left)) => Some(part.of(left)),
            (None, None) => None,
        };
        let amount = least(amount, unit.of(most));
        match amount {
            Some(0) if runtime.cost != CostKnowledge::None && !pooled(unit) => {
                Err(exhausted(unit, asked.unwrap_or(0), left.unwrap_or(0)))
            }
            _ => Ok(amount),
        }
    };
    let budget = BudgetGrant::new(reserve(Unit::Tokens)?, reserve(Unit::Usd)?);
    // Dollars that a tree may cost by default are no budget that was asked for: what is unknown runs as it does without one.
    let has_default = default_usd.is_some() && !asks_for_usd;
    let is_by_default = || has_default || load.books.ledger.is_by_default(caller.run);
    if let Err(refusal) = check_bounded(&budget, terms, runtime)
        && !is_by_default()
    {
        return Err(refusal);
    }
    let pooled = Pooled { tokens: pooled(Unit::Tokens), usd: pooled(Unit::Usd) };
    Ok(Reserved { budget, pooled, default_usd })
}

/// Returns the most that the terms of the child allow it. What they have from above was raised where the budget above was; what its
/// agent says itself stays.
fn most(question: &Question<'_>, terms: &Terms) -> BudgetGrant {
    let Question { config, caller, definition, .. } = *question;
    let own = definition.filter(|agent| agent.id() != caller.terms.agent());
    let own = own.map_or_else(BudgetGrant::default, |agent| {
        // A value that a flag has replaced for the root's agent is not its own any more.
        let (own, holds) = (&agent.subagents.budget, terms.settings(config, agent.id()).budget);
        let tokens = own.tokens.as_ref().filter(|own| holds.tokens.as_ref() == Some(*own));
        let usd = own.usd.as_ref().filter(|own| holds.usd.as_ref() == Some(*own));
        BudgetGrant { tokens: tokens.map(|it| it.value), usd: usd.map(|it| it.value) }
    });
    Unit::grant(|unit| {
        let most = unit.of(terms.budget())?;
        match unit.of(caller.raised) {
            Some(raised) if raised > 0 && unit.of(caller.terms.budget()) == Some(most) => {
                least(Some(most.saturating_add(raised)), unit.of(own))
            }
            _ => Some(most),
        }
    })
}

/// Returns the budget of a root and its whole tree, or less where less was asked for.
pub(super) fn of_root(
    terms: &Terms,
    request: &SpawnRequest,
    runtime: Option<&RuntimeFacts>,
) -> Result<BudgetGrant, Refusal> {
    let grant = Unit::grant(|unit| least(asked(request, unit), unit.of(terms.budget())));
    let Some(runtime) = runtime else { return Ok(grant) };
    for unit in Unit::ALL {
        if runtime.cost != CostKnowledge::None && unit.of(grant) == Some(0) {
            return Err(exhausted(terms, unit, 0, 0));
        }
    }
    check_bounded(&grant, terms, runtime)?;
    Ok(grant)
}

/// A budget in dollars is a promise, which cannot be kept for a runtime that neither says nor bounds what it costs.
pub(super) fn check_bounded(
    grant: &BudgetGrant,
    terms: &Terms,
    runtime: &RuntimeFacts,
) -> Result<(), Refusal> {
    if grant.usd.is_none()
        || runtime.cost != CostKnowledge::Unknown
        || terms.budget.allow_unknown_cost()
    {
        return Ok(());
    }
    let message = format!(
        "there is a budget in usd, and the cost of the runtime `{}` is neither reported nor bounded",
        runtime.name
    );
    let refusal = Refusal::new(RefusalCode::CostUnbounded, message).with_hint(
        "use a runtime that reports its cost; the operator can set agents.defaults.subagents.budget.allowUnknownCost = true, or runtimes.NAME.cost = \"none\" for a runtime that costs nothing",
    );
    Err(refusal.governed_by(terms.governing("budget.allowUnknownCost")))
}

fn exhausted(terms: &Terms, unit: Unit, asked: u64, left: u64) -> Refusal {
    let (asked_text, left_text) = (unit.show(asked), unit.show(left));
    let message = if asked > 0 {
        format!("the budget cannot reserve {asked_text}: {left_text} left")
    } else {
        format!("a budget of {asked_text} pays for nothing: {left_text} left")
    };
    let refusal = Refusal::new(RefusalCode::BudgetExhausted, message).with_hint(
        "ask for less, wait for a child to return its rest, or do the work in this session; the operator can give the tree a larger budget",
    );
    refusal.governed_by(terms.governing(&format!("budget.{}", unit.as_str())))
}

/// The refusal where all that a tree may cost without a budget is used or reserved.
fn default_exhausted(runtime: &str, most: MicroUsd, asked: u64, left: u64) -> Refusal {
    let [asked_text, left_text] = [asked, left].map(|amount| Unit::Usd.show(amount));
    let wanted = if asked > 0 {
        format!("{asked_text} cannot be reserved")
    } else {
        "nothing can be reserved".to_owned()
    };
    let message = format!(
        "{wanted}: no budget in dollars is set, and of the {most} usd that all paid agents of the tree may cost then, {left_text} are left"
    );
    Refusal::new(RefusalCode::BudgetExhausted, message).with_hint(format!(
        "ask for less, wait for a child to return its rest, or do the work in this session; the operator can raise runtimes.{runtime}.defaultUsd, or give a new tree a budget with --budget-usd"
    ))
}

pub(super) fn asked(request: &SpawnRequest, unit: Unit) -> Option<u64> {
    let BudgetRequest { tokens, usd } = request.budget?;
    unit.of(BudgetGrant { tokens, usd })
}

/// `None` bounds nothing.
fn least(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    a.into_iter().chain(b).min()
}
