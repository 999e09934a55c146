//! A decimal number as it is written, without a float in between.

/// The parts of a number: its digits are `whole` followed by `fraction`, times ten to the `exponent` minus the
/// length of `fraction`. Borrowed, so that looking at a number costs no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decimal<'a> {
    pub(crate) negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
    exponent: i64,
}

impl<'a> Decimal<'a> {
    /// Reads what people and programs write as a number: JSON's grammar, and besides it a plus sign, leading zeros
    /// and a missing digit on one side of the point. No white space, no separators, no infinities.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (negative, rest) = match text.as_bytes() {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        let (whole, rest) = digits(rest);
        let (fraction, rest) = match rest {
            [b'.', rest @ ..] => digits(rest),
            rest => (&rest[..0], rest),
        };
        let exponent = match rest {
            [] => 0,
            [b'e' | b'E', rest @ ..] => {
                // 32 bits: an exponent beyond them is no number of practical use, and sums of 64 bits stay safe.
                let exponent: i32 = std::str::from_utf8(rest).ok()?.parse().ok()?;
                i64::from(exponent)
            }
            _ => return None,
        };
        let some_digit = !whole.is_empty() || !fraction.is_empty();
        some_digit.then_some(Self { negative, whole, fraction, exponent })
    }

    /// Digits without leading and trailing zeros, most significant first, and the power of ten of the last one.
    /// Numbers are equal where this and the sign are; of zero there are no digits.
    pub(crate) fn significant(
        &self,
    ) -> (impl DoubleEndedIterator<Item = u8> + Clone + use<'a>, i64) {
        let mut whole = self.whole;
        let mut fraction = self.fraction;
        let mut power = self.exponent - fraction.len() as i64;
        while let [rest @ .., b'0'] = fraction {
            fraction = rest;
            power += 1;
        }
        if fraction.is_empty() {
            while let [rest @ .., b'0'] = whole {
                whole = rest;
                power += 1;
            }
        }
        while let [b'0', rest @ ..] = whole {
            whole = rest;
        }
        if whole.is_empty() {
            while let [b'0', rest @ ..] = fraction {
                fraction = rest;
            }
        }
        (whole.iter().chain(fraction).copied(), power)
    }
}

fn digits(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| !byte.is_ascii_digit());
    bytes.split_at(end.unwrap_or(bytes.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(&str, i64)>) {
        let found = Decimal::parse(text).map(|number| {
            let (digits, power) = number.significant();
            let sign = if number.negative { "-" } else { "" };
            (format!("{sign}{}", String::from_utf8(digits.collect()).expect("digits")), power)
        });
        let expected = expected.map(|(digits, power)| (digits.to_owned(), power));
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn what_is_a_number() {
        check("1", Some(("1", 0)));
        check("+1", Some(("1", 0)));
        check("-12.50", Some(("-125", -1)));
        check("1.0", Some(("1", 0)));
        check("100", Some(("1", 2)));
        check("1e2", Some(("1", 2)));
        check("0.1E+3", Some(("1", 2)));
        check("12e-3", Some(("12", -3)));
        check("007", Some(("7", 0)));
        check(".5", Some(("5", -1)));
        check("5.", Some(("5", 0)));
        check("0.0010", Some(("1", -3)));
        for text in [
            "", "-", ".", "e1", "1e", "1e+", "1e+-2", "0x1", "1_0", "1,0", " 1", "1 ", "inf", "NaN",
        ] {
            check(text, None);
        }
        check("1e99999999999999999999", None);
    }
}
