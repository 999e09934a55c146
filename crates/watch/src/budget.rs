//! The budget of a run, and how much of it is used.

use offshoot_model::{BudgetGrant, Cost, Event, EventKind, Grant, MicroUsd, Usage, number};

/// One kind of budget.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Used {
    /// From 0 to 1.
    pub(crate) part: f64,
    /// The whole in words.
    pub(crate) of: String,
}

/// Returns the budget that events of a run tell of: what it was granted, and what was added since.
pub(crate) fn granted<'a>(events: impl Iterator<Item = &'a Event>) -> BudgetGrant {
    let mut budget = BudgetGrant::default();
    for event in events {
        match &event.kind {
            // A pool is its parent's, where it has its bar.
            EventKind::Admitted(admitted) => {
                let Grant { budget: own, pooled, .. } = &*admitted.grant;
                budget.tokens = own.tokens.filter(|_| !pooled.tokens);
                budget.usd = own.usd.filter(|_| !pooled.usd);
            }
            EventKind::BudgetRaised { tokens, micro_usd } => {
                budget.tokens = budget.tokens.map(|before| before.saturating_add(*tokens));
                let more = MicroUsd::from_micros(*micro_usd);
                budget.usd = budget.usd.map(|before| before + more);
            }
            _ => {}
        }
    }
    budget
}

/// Returns the kinds of budget that there are, and what these runs have used of them. Amounts that are not known count as nothing.
pub(crate) fn used(budget: BudgetGrant, usage: &Usage, cost: &Cost) -> Vec<Used> {
    let part = |used: u64, whole: u64| match whole {
        0 => 1.0,
        whole => (used as f64 / whole as f64).min(1.0),
    };
    let spent = cost.dollars().as_micros();
    let usd =
        budget.usd.map(|usd| Used { part: part(spent, usd.as_micros()), of: number::dollars(usd) });
    let tokens = budget.tokens.map(|tokens| Used {
        part: part(usage.total().charged(), tokens),
        of: format!("{} tokens", number::count(tokens)),
    });
    [usd, tokens].into_iter().flatten().collect()
}
