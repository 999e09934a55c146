//! A budget with which a tree can finish, for hints. Pure.

use offshoot_audit::{Account, Unit};
use offshoot_model::MicroUsd;

/// Returns the option with which a tree has enough for its `open` pieces that have no answer. So many of its pieces have run, and one of them
/// has `asked` for so much. A request may have reserved up to `bound`: the last piece needs so much to begin with, whatever it costs.
pub(crate) fn larger(
    account: &Account,
    have_run: u64,
    (asked, bound): (u64, u64),
    open: usize,
) -> String {
    let Account { unit, granted, used, overrun, .. } = *account;
    let used = u64::try_from(used + overrun).unwrap_or(u64::MAX);
    let each = used.checked_div(have_run).unwrap_or(0).max(asked);
    let used = used.saturating_add(bound.saturating_sub(each));
    option(unit, enough(granted, used, each, open))
}

/// Returns an amount that is enough for a whole tree: twice what it had, or what it has used and `each` for each of its `open` pieces, and at
/// least for one, whichever is more. Rounded up to two digits, which people can read and type.
pub(crate) fn enough(granted: u64, used: u64, each: u64, open: usize) -> u64 {
    let rest = each.saturating_mul(open.max(1) as u64);
    let enough = used.saturating_add(rest).max(granted.saturating_mul(2));
    let step = 10u64.pow(enough.checked_ilog10().unwrap_or(0).saturating_sub(1));
    enough.div_ceil(step).saturating_mul(step)
}

/// Returns the option that gives a tree an amount, in tokens or millionths of a dollar.
pub(crate) fn option(unit: Unit, amount: u64) -> String {
    match unit {
        Unit::Tokens => format!("--budget-tokens {amount}"),
        Unit::MicroUsd => format!("--budget-usd {}", MicroUsd::from_micros(amount)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_enough_for_the_pieces_that_are_open() {
        for (granted, used, each, open, expected) in [
            (500_000, 480_000, 20_000, 1, 1_000_000),
            (500_000, 480_000, 20_000, 90, 2_300_000),
            // The first piece has used more than all had.
            (1_000_000, 1_070_000, 1_070_000, 5, 6_500_000),
            // No piece is open, and the merge asks.
            (1_000_000, 1_500_000, 600_000, 0, 2_100_000),
            (1_000, 999, 101, 100, 12_000),
            (0, 0, 0, 0, 0),
            (u64::MAX, u64::MAX, u64::MAX, usize::MAX, u64::MAX),
        ] {
            assert_eq!(enough(granted, used, each, open), expected, "{granted} {used}");
        }
    }

    #[test]
    fn an_amount_is_written_as_it_is_typed() {
        assert_eq!(option(Unit::Tokens, 12_000), "--budget-tokens 12000");
        assert_eq!(option(Unit::MicroUsd, 2_300_000), "--budget-usd 2.30");
        assert_eq!(option(Unit::MicroUsd, 1_000_000), "--budget-usd 1.00");
    }
}
