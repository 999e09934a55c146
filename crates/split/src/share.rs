//! The shares of several files in a number of pieces.

use std::num::NonZeroU64;

/// Returns the number of pieces of each file: by size, largest remainder first, at least one for each that is not empty,
/// none for an empty one. The sum is `pieces`, except where more files than that are not empty.
pub(crate) fn shares(sizes: &[u64], pieces: NonZeroU64) -> Vec<u64> {
    let filled = sizes.iter().filter(|size| **size > 0).count() as u64;
    let total: u128 = sizes.iter().map(|size| u128::from(*size)).sum();
    // One for each comes first, so that only the rest has to be divided.
    let rest = u128::from(pieces.get().saturating_sub(filled));
    let mut shares: Vec<u64> = sizes.iter().map(|size| u64::from(*size > 0)).collect();
    let mut remainders = Vec::new();
    let mut given = 0;
    for (index, size) in sizes.iter().enumerate().filter(|(_, size)| **size > 0) {
        let exact = rest * u128::from(*size);
        let whole = exact / total;
        shares[index] += whole as u64;
        given += whole;
        remainders.push((exact % total, index));
    }
    // Equal remainders go to the earlier file: the sort is stable.
    remainders.sort_by_key(|(remainder, _)| std::cmp::Reverse(*remainder));
    for (_, index) in remainders.into_iter().take((rest - given) as usize) {
        shares[index] += 1;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(sizes: &[u64], pieces: u64, expected: &[u64]) {
        let pieces = NonZeroU64::new(pieces).expect("tests ask for pieces");
        assert_eq!(shares(sizes, pieces), expected);
    }

    #[test]
    fn by_size_with_one_for_each() {
        check(&[100], 4, &[4]);
        check(&[], 4, &[]);
        check(&[0, 0], 4, &[0, 0]);
        check(&[100, 100], 4, &[2, 2]);
        check(&[100, 100, 100], 4, &[2, 1, 1]);
        check(&[1, 1000], 4, &[1, 3]);
        check(&[100, 0, 100], 4, &[2, 0, 2]);
        check(&[1, 2, 3], 2, &[1, 1, 1]);
        check(&[u64::MAX, u64::MAX], u64::MAX, &[1 << 63, (1 << 63) - 1]);
    }
}
