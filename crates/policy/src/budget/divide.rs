//! The division of a budget among many children at once.

use std::num::NonZeroU32;

use offshoot_config::Fraction;
use offshoot_model::{BudgetGrant, MicroUsd};

use super::Unit;

/// The claim of one of several children that are asked for together on the budget of their parent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Claim {
    /// The amounts that it asks for by itself.
    pub own: BudgetGrant,
    /// The weight beside the others; 1 where it has none.
    pub weight: Option<NonZeroU32>,
    /// True if it may use anything, and needs a part where it asks for nothing by itself.
    pub spends: bool,
}

/// Returns the parts of children without an amount of their own, in each unit: what is left, less what others ask for by themselves and
/// the part that is kept, by weight. None in a unit in which a child asks by itself, spends nothing, or nothing bounds it.
pub fn parts(left: BudgetGrant, keep: Fraction, claims: &[Claim]) -> Vec<BudgetGrant> {
    let mut parts = vec![BudgetGrant::default(); claims.len()];
    for unit in Unit::ALL {
        let Some(left) = unit.of(left) else { continue };
        let own = |claim: &Claim| unit.of(claim.own);
        let asked = claims.iter().filter_map(own).fold(0, u64::saturating_add);
        let weight = |claim: &Claim| match own(claim) {
            None if claim.spends => claim.weight.map_or(1, NonZeroU32::get),
            _ => 0,
        };
        let weights: Vec<u32> = claims.iter().map(weight).collect();
        let rest = BudgetGrant { tokens: Some(left.saturating_sub(asked)), usd: None };
        let shares = divide(rest, keep, &weights);
        for ((part, share), weight) in parts.iter_mut().zip(shares).zip(weights) {
            let share = share.tokens.filter(|_| weight > 0);
            match unit {
                Unit::Tokens => part.tokens = share,
                Unit::Usd => part.usd = share.map(MicroUsd::from_micros),
            }
        }
    }
    parts
}

/// Divides what is left, less the part that is kept for the one who asks, by weight; the same weight for all divides
/// equally. Parts are rounded down, so that together they never exceed the whole. A unit that nothing bounds stays
/// without bounds.
///
/// ```
/// use offshoot_config::built_in::BUDGET_KEEP;
/// use offshoot_model::BudgetGrant;
/// use offshoot_policy::budget::divide;
///
/// let left = BudgetGrant { tokens: Some(1000), usd: None };
/// let parts = divide(left, BUDGET_KEEP, &[1, 1, 2]);
/// assert_eq!(parts.iter().map(|part| part.tokens).collect::<Vec<_>>(), [Some(200), Some(200), Some(400)]);
/// assert_eq!(parts[0].usd, None);
/// ```
pub fn divide(left: BudgetGrant, keep: Fraction, weights: &[u32]) -> Vec<BudgetGrant> {
    let total: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
    let part = |whole: u64, weight: u32| {
        let pool = whole - keep.of(whole);
        let part = u128::from(pool) * u128::from(weight) / total.max(1);
        u64::try_from(part).expect("a part is not more than the whole")
    };
    let parts = weights
        .iter()
        .map(|&weight| Unit::grant(|unit| unit.of(left).map(|whole| part(whole, weight))));
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fraction(millionths: u32) -> Fraction {
        Fraction::from_millionths(millionths).expect("at most one")
    }

    #[test]
    fn amounts_of_their_own_go_off_first_and_what_is_free_gets_none() {
        let own = |tokens| BudgetGrant { tokens: Some(tokens), usd: None };
        let claim = Claim { spends: true, ..Claim::default() };
        let claims = [
            claim,
            Claim { weight: NonZeroU32::new(3), ..claim },
            Claim { own: own(40), ..claim },
            Claim { spends: false, ..claim },
        ];
        let left = BudgetGrant { tokens: Some(140), usd: Some(MicroUsd::from_micros(100)) };
        let found = parts(left, fraction(200_000), &claims);
        let tokens: Vec<_> = found.iter().map(|part| part.tokens).collect();
        assert_eq!(tokens, [Some(20), Some(60), None, None]);
        let usd: Vec<_> = found.iter().map(|part| part.usd.map(MicroUsd::as_micros)).collect();
        assert_eq!(usd, [Some(16), Some(48), Some(16), None]);
        assert_eq!(parts(own(10), fraction(0), &[claim])[0].usd, None);
    }

    #[test]
    fn parts_are_a_table() {
        let check = |left: u64, keep: u32, weights: &[u32], expected: &[u64]| {
            let grant = BudgetGrant { tokens: Some(left), usd: Some(MicroUsd::from_micros(left)) };
            let parts = divide(grant, fraction(keep), weights);
            let tokens: Vec<_> = parts.iter().filter_map(|part| part.tokens).collect();
            let usd: Vec<_> =
                parts.iter().filter_map(|part| part.usd).map(MicroUsd::as_micros).collect();
            assert_eq!(tokens, expected, "{left} {keep} {weights:?}");
            assert_eq!(usd, expected, "{left} {keep} {weights:?}");
        };
        check(100, 200_000, &[1, 1], &[40, 40]);
        check(100, 0, &[1, 1, 1], &[33, 33, 33]);
        check(100, 1_000_000, &[1, 1], &[0, 0]);
        check(100, 0, &[3, 1, 0], &[75, 25, 0]);
        check(100, 0, &[0, 0], &[0, 0]);
        check(0, 0, &[1, 1], &[0, 0]);
        let most = MicroUsd::MAX.as_micros();
        check(most, 0, &[1], &[most]);
        check(100, 0, &[], &[]);
    }

    proptest! {
        #[test]
        fn parts_never_exceed_the_whole(
            left in any::<u64>(),
            keep in 0_u32..=1_000_000,
            weights in prop::collection::vec(any::<u32>(), 0..20),
        ) {
            let grant = BudgetGrant { tokens: Some(left), usd: None };
            let parts = divide(grant, fraction(keep), &weights);
            let sum: u128 = parts.iter().filter_map(|part| part.tokens).map(u128::from).sum();
            prop_assert!(sum + u128::from(fraction(keep).of(left)) <= u128::from(left));
        }
    }
}
