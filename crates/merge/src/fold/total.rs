//! An exact total of decimal numbers.

use std::collections::BTreeMap;
use std::fmt;

use crate::number::Decimal;

/// A sum kept as signed groups of eighteen decimal digits, by their power of ten. Groups are added without carrying,
/// so that addition neither rounds nor depends on the order; carrying waits until the total is shown.
#[derive(Clone, Debug, Default)]
pub(super) struct Total {
    groups: BTreeMap<i64, i128>,
}

/// Digits of a group. One number adds less than 10^18 to a group, so 2^32 of them stay far below the 1.7 × 10^38
/// that 128 bits hold.
const GROUP: i64 = 18;
const BASE: i128 = 1_000_000_000_000_000_000;

/// A double reaches from 10^-324 to 10^308. Beyond this a number is a slip, and its digits would fill pages.
const EXTENT: i64 = 400;

impl Total {
    /// Adds a number. Returns false if it is out of reach, in which case it is left out.
    pub(super) fn add(&mut self, number: &Decimal<'_>) -> bool {
        let (digits, power) = number.significant();
        if power.abs() > EXTENT && digits.clone().next().is_some() {
            return false;
        }
        let mut group = power.div_euclid(GROUP);
        let mut weight = 10_i128.pow(power.rem_euclid(GROUP) as u32);
        let mut sum = 0;
        for digit in digits.rev() {
            if weight == BASE {
                self.add_group(group, sum, number.negative);
                (group, weight, sum) = (group + 1, 1, 0);
            }
            sum += i128::from(digit - b'0') * weight;
            weight *= 10;
        }
        self.add_group(group, sum, number.negative);
        true
    }

    fn add_group(&mut self, group: i64, sum: i128, negative: bool) {
        if sum != 0 {
            *self.groups.entry(group).or_default() += if negative { -sum } else { sum };
        }
    }

    /// Groups from the lowest to the highest, none left out, each within 0..10^18, and the sign they share.
    fn carried(&self) -> (bool, i64, Vec<i128>) {
        // The group before the decimal point is always there, so that a digit stands on both sides of it.
        let lowest = self.groups.keys().next().map_or(0, |&lowest| lowest.min(0));
        let highest = self.groups.keys().next_back().map_or(0, |&highest| highest.max(0));
        let carry_all = |sign: i128| {
            let mut carry = 0;
            let mut groups = Vec::new();
            for group in lowest..=highest {
                carry += sign * self.groups.get(&group).copied().unwrap_or_default();
                groups.push(carry.rem_euclid(BASE));
                carry = carry.div_euclid(BASE);
            }
            while carry > 0 {
                groups.push(carry.rem_euclid(BASE));
                carry = carry.div_euclid(BASE);
            }
            (carry, groups)
        };
        match carry_all(1) {
            (0, groups) => (false, lowest, groups),
            (_, _) => (true, lowest, carry_all(-1).1),
        }
    }
}

impl fmt::Display for Total {
    /// All digits, without an exponent, and a fraction only where there is one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (negative, lowest, groups) = self.carried();
        let mut digits = String::new();
        groups.iter().rev().for_each(|group| digits.push_str(&format!("{group:018}")));
        let point = digits.len() - (-lowest * GROUP) as usize;
        let (whole, fraction) = digits.split_at(point);
        let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
        let sign = if negative { "-" } else { "" };
        let whole = if whole.is_empty() { "0" } else { whole };
        let point = if fraction.is_empty() { "" } else { "." };
        write!(f, "{sign}{whole}{point}{fraction}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(numbers: &[&str], expected: &str) {
        let mut total = Total::default();
        for number in numbers {
            assert!(total.add(&Decimal::parse(number).expect(number)), "{number}");
        }
        assert_eq!(total.to_string(), expected, "{numbers:?}");
    }

    #[test]
    fn exact_to_the_last_digit() {
        check(&[], "0");
        check(&["0", "-0", "0.0", "0e9"], "0");
        check(&["1", "2", "3"], "6");
        check(&["0.1", "0.2"], "0.3");
        check(&["0.5", "0.50"], "1");
        check(&["-1", "0.25"], "-0.75");
        check(&["1", "-1"], "0");
        check(&["1e3", "1"], "1001");
        check(&["9007199254740993", "1"], "9007199254740994");
        check(&["999999999999999999", "1"], "1000000000000000000");
        check(&["1e36", "-1"], "999999999999999999999999999999999999");
        check(&["-1e36", "1"], "-999999999999999999999999999999999999");
        check(&["1e18", "-1", "1e-19"], "999999999999999999.0000000000000000001");
        check(
            &["340282366920938463463374607431768211456"; 2],
            "680564733841876926926749214863536422912",
        );
        check(&["-0.000000000000000000000000000001"], "-0.000000000000000000000000000001");
    }

    #[test]
    fn every_float_is_within_reach() {
        let text = |number: f64| format!("{number:e}");
        let (largest, smallest) = (text(f64::MAX), text(5e-324));
        check(&[&largest, &smallest, &format!("-{largest}"), &format!("-{smallest}")], "0");
        let mut total = Total::default();
        assert!(!total.add(&Decimal::parse("1e401").expect("a number")));
        assert!(!total.add(&Decimal::parse("1e-401").expect("a number")));
        assert_eq!(total.to_string(), "0");
    }
}
