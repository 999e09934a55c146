//! The answer of a judge.

use serde::Deserialize;
use serde_json::Value;

/// The result that a judge has chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The place among the results that it was asked about, from 0.
    pub winner: usize,
    /// The reason in its words; empty where it gave none.
    pub reason: String,
}

/// The object as a judge writes it.
#[derive(Deserialize)]
struct Written {
    winner: Value,
    #[serde(default)]
    reason: String,
}

impl Choice {
    /// Reads the answer of a judge about results of these names: an object `{"winner": …, "reason": "…"}`, alone or with text
    /// around it. The winner is a number from 1 or a name that one result has. None where the answer is anything else.
    pub fn parse<'a>(answer: &str, names: impl ExactSizeIterator<Item = &'a str>) -> Option<Self> {
        let object = answer.get(answer.find('{')?..=answer.rfind('}')?)?;
        let Written { winner, reason } = serde_json::from_str(object).ok()?;
        let many = names.len();
        let winner = match &winner {
            Value::Number(number) => from_one(number.as_u64()?, many)?,
            Value::String(name) => {
                let mut same = names.enumerate().filter(|(_, known)| known == name);
                match (same.next(), same.next()) {
                    (Some((place, _)), None) => place,
                    (None, _) => from_one(name.parse().ok()?, many)?,
                    (Some(_), Some(_)) => return None,
                }
            }
            _ => return None,
        };
        Some(Self { winner, reason })
    }
}

fn from_one(number: u64, many: usize) -> Option<usize> {
    let place = usize::try_from(number.checked_sub(1)?).ok()?;
    (place < many).then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_a_number_or_a_name() {
        let names = ["north", "south", "2", "north"];
        let check = |answer: &str, expected: Option<(usize, &str)>| {
            let choice = Choice::parse(answer, names.into_iter());
            let found = choice.as_ref().map(|choice| (choice.winner, choice.reason.as_str()));
            assert_eq!(found, expected, "{answer}");
        };
        check(r#"{"winner": 1, "reason": "short"}"#, Some((0, "short")));
        check(r#"{"winner": 4}"#, Some((3, "")));
        check(r#"{"winner": "south", "reason": "warm", "more": 1}"#, Some((1, "warm")));
        check(r#"{"winner": "1"}"#, Some((0, "")));
        check(r#"{"winner": "2"}"#, Some((2, "")));
        check("```json\n{\"winner\": 2,\n\"reason\": \"{}\"}\n```", Some((1, "{}")));
        for nonsense in [
            "",
            "the second one",
            "{",
            "}{",
            "{}",
            "[1]",
            r#"{"winner": 0}"#,
            r#"{"winner": 5}"#,
            r#"{"winner": -1}"#,
            r#"{"winner": 1.5}"#,
            r#"{"winner": null}"#,
            r#"{"winner": "east"}"#,
            r#"{"winner": "north"}"#,
            r#"{"winner": 1, "reason": 2}"#,
            r#"{"winner": 1} {"winner": 2}"#,
        ] {
            check(nonsense, None);
        }
    }
}
