//! The treatment of results that did not complete.

use serde::{Deserialize, Serialize};

/// As written after `--on-failure`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display, strum::EnumString)]
#[strum(serialize_all = "snake_case", parse_err_ty = ParseOnFailureError, parse_err_fn = unknown)]
pub enum OnFailure {
    /// There is no answer; the failures are named, and what completed stays readable as a partial answer.
    #[default]
    Fail,
    /// Failed results are left out, and listed beside the answer.
    Skip,
    /// The envelope of a failed result is its value.
    Include,
}

/// A text that is none of the three.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not one of fail, skip, include")]
pub struct ParseOnFailureError(String);

fn unknown(text: &str) -> ParseOnFailureError {
    ParseOnFailureError(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for choice in [OnFailure::Fail, OnFailure::Skip, OnFailure::Include] {
            assert_eq!(choice.to_string().parse(), Ok(choice));
        }
        let error = "ignore".parse::<OnFailure>().expect_err("no such choice");
        assert_eq!(error.to_string(), "`ignore` is not one of fail, skip, include");
    }
}
