//! The share of each tree in the slots that all trees of a user have.
//!
//! Each tree gets what it wants, and where that is more than there is, the trees that want most get equally much. What cannot be
//! divided goes to trees that do not hold more than the others already, and of those to the one that has been in line longest. So a
//! slot that two trees want goes to and fro between them, whichever began first.
//!
//! ```
//! use offshoot_policy::host_share::{Claim, due};
//!
//! let claim = |wants, holds, turn| Claim { wants, holds, turn };
//! assert_eq!(due(8, &[claim(2, 2, 1), claim(9, 6, 2), claim(9, 0, 3)]), [2, 3, 3]);
//! // The first one holds the only slot, so the next one goes to the other that came first.
//! assert_eq!(due(1, &[claim(5, 1, 1), claim(1, 0, 2), claim(1, 0, 3)]), [0, 1, 0]);
//! ```

/// The claim of one tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The number of runs that hold a slot or could start now.
    pub wants: u32,
    /// The number of slots that the tree has.
    pub holds: u32,
    /// The place in line; the lowest has been in line longest.
    pub turn: u64,
}

/// Returns for each claim how many of `max` slots are due to it. Together they are no more than `max`.
pub fn due(max: u32, claims: &[Claim]) -> Vec<u32> {
    let mut shares = vec![0; claims.len()];
    let mut open: Vec<usize> = (0..claims.len()).collect();
    let mut left = max;
    // What small claims leave is divided again, until all that are open want more than there is for each.
    loop {
        let each = left / u32::try_from(open.len()).unwrap_or(u32::MAX).max(1);
        let (small, large): (Vec<usize>, Vec<usize>) =
            open.iter().partition(|at| claims[**at].wants <= each);
        if small.is_empty() {
            let over = left - each * u32::try_from(large.len()).unwrap_or(u32::MAX);
            return divide(shares, claims, large, each, over);
        }
        for at in small {
            shares[at] = claims[at].wants;
            left -= claims[at].wants;
        }
        open = large;
    }
}

/// Returns how many of the slots that are free go to the first claim. Slots that are due to claims that have been in line for longer are left
/// to them: one that gives a slot back does not take it again before them.
///
/// ```
/// use offshoot_policy::host_share::{Claim, free_for_first};
///
/// let claim = |wants, holds, turn| Claim { wants, holds, turn };
/// // The first one has just given a slot back, for which the second one waits.
/// assert_eq!(free_for_first(2, &[claim(1, 0, 9), claim(1, 0, 5), claim(1, 1, 7)]), 0);
/// assert_eq!(free_for_first(2, &[claim(1, 0, 5), claim(1, 0, 9), claim(1, 1, 7)]), 1);
/// ```
pub fn free_for_first(max: u32, claims: &[Claim]) -> u32 {
    let due = due(max, claims);
    let Some((own, others)) = claims.split_first() else { return 0 };
    let taken = claims.iter().fold(0_u32, |sum, claim| sum.saturating_add(claim.holds));
    let ahead = others.iter().zip(&due[1..]).filter(|(other, _)| other.turn < own.turn);
    let ahead: u32 = ahead.map(|(other, due)| due.saturating_sub(other.holds)).sum();
    let free = max.saturating_sub(taken).saturating_sub(ahead);
    due[0].saturating_sub(own.holds).min(free)
}

/// Gives so many to each of these, and one more to the first `over` of them.
fn divide(
    mut shares: Vec<u32>,
    claims: &[Claim],
    mut among: Vec<usize>,
    each: u32,
    over: u32,
) -> Vec<u32> {
    among.sort_by_key(|at| (claims[*at].holds > each, claims[*at].turn));
    for (place, at) in among.into_iter().enumerate() {
        shares[at] = each + u32::from(place < over as usize);
    }
    shares
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(wants: u32, holds: u32, turn: u64) -> Claim {
        Claim { wants, holds, turn }
    }

    #[test]
    fn shares() {
        let check = |max, claims: &[Claim], expected: &[u32]| {
            assert_eq!(due(max, claims), expected, "{max} for {claims:?}");
        };
        check(4, &[], &[]);
        check(4, &[of(9, 0, 1)], &[4]);
        check(4, &[of(3, 0, 1)], &[3]);
        check(4, &[of(0, 0, 1), of(9, 0, 2)], &[0, 4]);
        check(4, &[of(9, 4, 1), of(9, 0, 2)], &[2, 2]);
        check(10, &[of(1, 1, 1), of(4, 4, 2), of(9, 5, 3)], &[1, 4, 5]);
        // The one of three that cannot be divided is not kept by the tree that has it.
        check(3, &[of(9, 2, 1), of(9, 1, 2)], &[1, 2]);
        check(3, &[of(9, 1, 1), of(9, 2, 2)], &[2, 1]);
        check(3, &[of(9, 1, 2), of(9, 1, 1)], &[1, 2]);
        // More trees than slots: those in line longest.
        check(2, &[of(1, 1, 1), of(1, 1, 2), of(1, 0, 4), of(1, 0, 3)], &[0, 0, 1, 1]);
    }

    #[test]
    fn what_is_due_to_those_in_line_for_longer_is_left_to_them() {
        let check = |turn: u64, expected: u32| {
            let claims = [of(1, 0, turn), of(1, 0, 5), of(1, 1, 7)];
            assert_eq!(free_for_first(2, &claims), expected, "{turn}");
        };
        check(9, 0);
        check(5, 1);
        check(4, 1);
    }

    proptest! {
        #[test]
        fn nothing_is_given_twice_or_left(
            max in 1_u32..40,
            claims in proptest::collection::vec((0_u32..20, 0_u32..20, 0_u64..5), 0..12),
        ) {
            let claims: Vec<Claim> =
                claims.into_iter().map(|(wants, holds, turn)| of(wants, holds, turn)).collect();
            let shares = due(max, &claims);
            let wanted: u32 = claims.iter().map(|claim| claim.wants).sum();
            prop_assert_eq!(shares.iter().sum::<u32>(), wanted.min(max));
            for (share, claim) in shares.iter().zip(&claims) {
                prop_assert!(*share <= claim.wants);
                // One that gets less than it wants has no less than any other, but for what cannot be divided.
                let most = shares.iter().max().copied().unwrap_or(0);
                prop_assert!(*share == claim.wants || *share + 1 >= most);
            }
        }
    }
}
