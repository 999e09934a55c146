//! A split as it is written on the command line.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use crate::Split;

/// A text that is no split.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no split: {problem}; the forms are {forms}", forms = Split::FORMS.join(", "))]
pub struct ParseSplitError {
    text: String,
    problem: String,
}

impl ParseSplitError {
    /// Returns the name of a form that is written, where there is no such form.
    pub fn unknown(&self) -> Option<&str> {
        let form = self.text.split(':').next().unwrap_or_default();
        let is_known = Split::FORMS.iter().any(|known| known.split(':').next() == Some(form));
        (!is_known).then_some(form)
    }
}

impl Split {
    /// The forms as they are written, with a placeholder for their number: `lines:N`.
    pub const FORMS: &[&str] = &[
        "files",
        "lines:N",
        "chunks:N",
        "chunks:N@bytes",
        "bytes:N",
        "bytes:N@lines",
        "paragraphs:N",
        "jsonl:N",
    ];
}

/// A size in bytes, shown with the largest unit that leaves it whole.
pub(crate) struct Size(pub(super) NonZeroU64);

const UNITS: [(char, u32); 3] = [('g', 30), ('m', 20), ('k', 10)];

impl FromStr for Split {
    type Err = ParseSplitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).map_err(|problem| ParseSplitError { text: text.to_owned(), problem })
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0.get();
        match UNITS.iter().find(|(_, shift)| bytes.trailing_zeros() >= *shift) {
            Some((unit, shift)) => write!(f, "{}{unit}", bytes >> shift),
            None => bytes.fmt(f),
        }
    }
}

fn parse(text: &str) -> Result<Split, String> {
    let (form, argument) = parted(text, ':');
    if !Split::FORMS.iter().any(|known| known.split(':').next() == Some(form)) {
        return Err(format!("unknown form `{form}`"));
    }
    let argument = match (form, argument) {
        ("files", None) => return Ok(Split::Files),
        ("files", Some(_)) => return Err("`files` takes no number".to_owned()),
        (_, None) => return Err(format!("`{form}` needs a number, such as {form}:10")),
        (_, Some(argument)) => argument,
    };
    let (number, unit) = parted(argument, '@');
    match (form, unit) {
        ("bytes", None) => size(number).map(Split::Bytes),
        ("bytes", Some("lines")) => size(number).map(Split::WholeLines),
        ("bytes", Some(other)) => Err(format!("only `@lines` may follow the size, not `@{other}`")),
        ("chunks", None | Some("lines")) => count(number).map(Split::Chunks),
        ("chunks", Some("bytes")) => count(number).map(Split::ByteChunks),
        ("chunks", Some(other)) => {
            Err(format!("only `@lines` or `@bytes` may follow the number, not `@{other}`"))
        }
        (_, Some(_)) => Err(format!("only `bytes` and `chunks` take `@`, `{form}` does not")),
        ("lines", None) => count(number).map(Split::Lines),
        ("paragraphs", None) => count(number).map(Split::Paragraphs),
        (_, None) => count(number).map(Split::JsonLines),
    }
}

/// Returns the text before a character, and what stands behind it.
fn parted(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at).map_or((text, None), |(before, behind)| (before, Some(behind)))
}

fn count(text: &str) -> Result<NonZeroU64, String> {
    number(text, || format!("`{text}` is not a whole number"))
}

fn size(text: &str) -> Result<NonZeroU64, String> {
    let lower = text.to_ascii_lowercase();
    let (digits, shift) = UNITS
        .iter()
        .find_map(|(unit, shift)| lower.strip_suffix(*unit).map(|digits| (digits, *shift)))
        .unwrap_or((&lower, 0));
    let error = || format!("`{text}` is not a size: bytes, or a number with k, m or g");
    let size = number(digits, error)?;
    size.checked_mul(NonZeroU64::MIN.saturating_add((1 << shift) - 1))
        .ok_or_else(|| format!("`{text}` is too large"))
}

/// Digits alone: `parse` of the standard library would take `+5` as well.
fn number(digits: &str, error: impl Fn() -> String) -> Result<NonZeroU64, String> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(error());
    }
    let number: u64 = digits.parse().map_err(|_| format!("`{digits}` is too large"))?;
    NonZeroU64::new(number).ok_or_else(|| "the number must be at least 1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, canonical: &str) {
        let split: Split = text.parse().expect(text);
        assert_eq!(split.to_string(), canonical, "{text}");
        assert_eq!(canonical.parse(), Ok(split), "{text}");
    }

    fn refused(text: &str, problem: &str) {
        let error = text.parse::<Split>().expect_err(text).to_string();
        assert!(error.contains(problem), "{text}: {error}");
        assert!(error.contains("bytes:N@lines"), "{error}");
    }

    #[test]
    fn every_form() {
        check("files", "files");
        check("lines:1", "lines:1");
        check("lines:007", "lines:7");
        check("chunks:12", "chunks:12@lines");
        check("chunks:12@bytes", "chunks:12@bytes");
        for (text, was) in [("chunks:3", "chunks:3@bytes"), ("chunks:3@lines", "chunks:3@lines")] {
            assert_eq!(Split::recorded(text).expect(text).to_string(), was, "{text}");
        }
        check("bytes:1000", "bytes:1000");
        check("bytes:1024", "bytes:1k");
        check("bytes:1m", "bytes:1m");
        check("bytes:1M", "bytes:1m");
        check("bytes:1024k", "bytes:1m");
        check("bytes:1025k", "bytes:1025k");
        check("bytes:2g@lines", "bytes:2g@lines");
        check("bytes:18446744073709551615", "bytes:18446744073709551615");
        check("paragraphs:3", "paragraphs:3");
        check("jsonl:100", "jsonl:100");
        assert_eq!(Split::default().to_string(), "files");
    }

    #[test]
    fn what_is_wrong_is_named() {
        refused("", "unknown form ``");
        refused("liens:5", "unknown form `liens`");
        refused("Lines:5", "unknown form `Lines`");
        refused("lines", "`lines` needs a number");
        refused("lines:", "`` is not a whole number");
        refused("lines:0", "at least 1");
        refused("lines:-1", "`-1` is not a whole number");
        refused("lines:+1", "`+1` is not a whole number");
        refused("lines: 1", "` 1` is not a whole number");
        refused("lines:1k", "`1k` is not a whole number");
        refused("lines:1:2", "`1:2` is not a whole number");
        refused("lines:5@lines", "only `bytes` and `chunks` take `@`");
        refused("chunks:5@words", "not `@words`");
        refused("lines:18446744073709551616", "too large");
        refused("files:3", "takes no number");
        refused("bytes:1mb", "`1mb` is not a size");
        refused("bytes:k", "`k` is not a size");
        refused("bytes:0k", "at least 1");
        refused("bytes:1m@words", "not `@words`");
        refused("bytes:17179869184g", "too large");
    }
}
