//! The meaning of the next key: to look around, to type, or to answer.

use offshoot_model::{BudgetRequest, MicroUsd, RootId, RunId, number};

use crate::intent::Intent;

/// The meaning of keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Mode {
    /// Keys look around and ask for things.
    #[default]
    Browse,
    /// The keys are explained; the next one ends that.
    Help,
    /// A text is typed by which runs are chosen.
    Filter,
    /// Something is typed for a run.
    Typing(Typing),
    /// A question is answered.
    Asked(Question),
    /// A text or an answer would make no sense, for this reason.
    Refused(&'static str),
}

/// A text for a run, while it is typed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Typing {
    pub(crate) kind: Typed,
    pub(crate) root: RootId,
    pub(crate) run: RunId,
    /// The name of the run.
    pub(crate) name: String,
    pub(crate) text: String,
    /// The mistake in what was typed.
    pub(crate) mistake: Option<&'static str>,
}

/// The use of a text that is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    Budget,
    Letter,
}

/// A question that is answered with `y` or anything else.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Question {
    pub(crate) text: String,
    pub(crate) intent: Intent,
}

impl Typing {
    /// The words before the text.
    pub(crate) fn label(&self) -> String {
        let name = &self.name;
        match self.kind {
            Typed::Budget => format!("more budget for {name} (2.50, or 5000 tokens): "),
            Typed::Letter => format!("letter to {name}: "),
        }
    }

    /// The text was typed: what is asked next, or wanted.
    pub(crate) fn done(mut self) -> (Mode, Option<Intent>) {
        let (root, run) = (self.root, self.run);
        match self.kind {
            Typed::Letter if self.text.trim().is_empty() => (Mode::Browse, None),
            Typed::Letter => (Mode::Browse, Some(Intent::Send { root, run, text: self.text })),
            Typed::Budget => match amount(&self.text) {
                Ok(add) => {
                    let amount = words(&add);
                    let text =
                        format!("add {amount} to the budget of {} and all above it?", self.name);
                    let intent = Intent::Budget { root, run, add };
                    (Mode::Asked(Question { text, intent }), None)
                }
                Err(mistake) => {
                    self.mistake = Some(mistake);
                    (Mode::Typing(self), None)
                }
            },
        }
    }
}

/// An amount of dollars, or of tokens.
fn amount(text: &str) -> Result<BudgetRequest, &'static str> {
    let text = text.trim();
    let digits = |text: &str| text.replace([',', '_'], "");
    let tokens = ["tokens", "token", "t"].iter().find_map(|unit| text.strip_suffix(unit));
    let add = match tokens {
        Some(count) => BudgetRequest { tokens: digits(count.trim()).parse().ok(), usd: None },
        None => {
            let dollars = text.strip_prefix('$').unwrap_or(text).trim();
            let usd = dollars.parse().ok().and_then(MicroUsd::from_f64);
            BudgetRequest { tokens: None, usd }
        }
    };
    let is_something =
        add.tokens.is_some_and(|it| it > 0) || add.usd.is_some_and(|it| it.as_micros() > 0);
    if is_something { Ok(add) } else { Err("that is no amount") }
}

fn words(add: &BudgetRequest) -> String {
    match (add.usd, add.tokens) {
        (Some(usd), _) => number::dollars(usd),
        (None, tokens) => format!("{} tokens", number::count(tokens.unwrap_or_default())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_dollars_or_tokens() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(amount(text).ok().as_ref().map(words).as_deref(), expected, "{text:?}");
        };
        check("2.50", Some("$2.50"));
        check(" $ 3", Some("$3.00"));
        check("5000 tokens", Some("5,000 tokens"));
        check("1,000t", Some("1,000 tokens"));
        for wrong in ["", "0", "-1", "nan", "x", "0 tokens", "1.5 tokens", "tokens"] {
            check(wrong, None);
        }
    }
}
