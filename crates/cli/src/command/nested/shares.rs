//! The parts of a budget that the children of a nested map or fanout ask for.

use std::num::NonZeroU32;

use offshoot_door::Spawn;
use offshoot_model::{BudgetRequest, MicroUsd};

use crate::code::FailureCode;
use crate::failure::Failure;

/// Divides a budget among these children: a child with an amount of its own gets that, the others what remains, by weight.
///
/// At the door there is no pool from which several children draw. Parts that are together no more than the whole are what keeps
/// to it.
///
/// # Errors
///
/// Fails if the amounts that children have of their own are more than the whole.
pub(super) fn share(whole: Option<BudgetRequest>, children: &mut [Spawn]) -> Result<(), Failure> {
    let Some(BudgetRequest { tokens, usd }) = whole else { return Ok(()) };
    let own = |child: &Spawn| child.budget.unwrap_or_default();
    if let Some(tokens) = tokens {
        let parts = parts(tokens, children, |child| own(child).tokens)
            .ok_or_else(|| too_little("--budget-tokens"))?;
        for (child, part) in children.iter_mut().zip(parts) {
            child.budget.get_or_insert_default().tokens = Some(part);
        }
    }
    if let Some(usd) = usd {
        let parts =
            parts(usd.as_micros(), children, |child| own(child).usd.map(MicroUsd::as_micros))
                .ok_or_else(|| too_little("--budget-usd"))?;
        for (child, part) in children.iter_mut().zip(parts) {
            child.budget.get_or_insert_default().usd = Some(MicroUsd::from_micros(part));
        }
    }
    Ok(())
}

/// Returns the part of each; none where the amounts of their own are more than the whole.
fn parts(whole: u64, children: &[Spawn], own: impl Fn(&Spawn) -> Option<u64>) -> Option<Vec<u64>> {
    let fixed = children.iter().filter_map(&own).try_fold(0_u64, u64::checked_add)?;
    let rest = u128::from(whole.checked_sub(fixed)?);
    let weight = |child: &Spawn| u128::from(child.weight.map_or(1, NonZeroU32::get));
    let all: u128 = children.iter().filter(|child| own(child).is_none()).map(weight).sum();
    let part = |child: &Spawn| {
        own(child).unwrap_or_else(|| {
            // No part is more than the rest, which is a u64.
            u64::try_from(rest * weight(child) / all.max(1)).unwrap_or(u64::MAX)
        })
    };
    Some(children.iter().map(part).collect())
}

fn too_little(flag: &str) -> Failure {
    Failure::input(
        FailureCode::TasksOverBudget,
        format_args!("the budgets of the tasks are together more than {flag}"),
    )
    .hint(format_args!("give {flag} that much, or the tasks less"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_amount_of_its_own_shares_the_rest_by_weight() {
        let child = |own: Option<u64>, weight| Spawn {
            budget: own.map(|tokens| BudgetRequest { tokens: Some(tokens), usd: None }),
            weight: NonZeroU32::new(weight),
            ..Spawn::task("x")
        };
        let check = |whole, mut children: Vec<Spawn>, expected: Option<&[u64]>| {
            let whole = BudgetRequest { tokens: Some(whole), usd: None };
            let shared = share(Some(whole), &mut children).ok();
            let parts = children.iter().filter_map(|child| child.budget?.tokens);
            assert_eq!(shared.map(|()| parts.collect::<Vec<_>>()).as_deref(), expected);
        };
        check(10, vec![child(None, 1); 3], Some(&[3, 3, 3]));
        check(10, vec![child(Some(4), 1), child(None, 1)], Some(&[4, 6]));
        check(8, vec![child(None, 3), child(None, 1)], Some(&[6, 2]));
        check(u64::MAX, vec![child(None, 1)], Some(&[u64::MAX]));
        check(3, vec![child(Some(4), 1), child(None, 1)], None);
        check(0, vec![child(None, 1)], Some(&[0]));
        check(10, Vec::new(), Some(&[]));
    }
}
