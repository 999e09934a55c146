//! The endings after which a run begins again, as the operator chooses them.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_with::{DeserializeFromStr, SerializeDisplay};

use crate::Reason;

/// Endings after which a run has another attempt, besides faults that another attempt can mend: `exit:75,timeout`.
#[derive(Clone, Copy, Default, PartialEq, Eq, SerializeDisplay, DeserializeFromStr)]
#[derive(derive_more::Debug)]
#[debug("RetryOn({self})")]
pub struct RetryOn {
    signal: bool,
    timeout: bool,
    idle: bool,
    /// A bit for each exit code.
    exits: [u64; 4],
}

/// A word that names no ending.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is none of exit:CODE, exit, signal, timeout, idle")]
pub struct UnknownEnding(String);

const ANY: [u64; 4] = [u64::MAX; 4];

impl RetryOn {
    /// True if nothing was chosen.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// True if an exit code or a signal was chosen, which only programs end with.
    pub fn is_for_programs(&self) -> bool {
        self.signal || self.exits != [0; 4]
    }

    /// True if a run that ended so begins again.
    pub fn includes(&self, reason: &Reason) -> bool {
        match reason {
            Reason::ExitCode { code } => u8::try_from(*code).is_ok_and(|code| self.has(code)),
            Reason::Signal { .. } | Reason::OutOfMemory { .. } => self.signal,
            Reason::Timeout { .. } => self.timeout,
            Reason::Idle { .. } => self.idle,
            _ => false,
        }
    }

    fn has(&self, code: u8) -> bool {
        self.exits[usize::from(code / 64)] & (1 << (code % 64)) != 0
    }

    fn add(&mut self, word: &str) -> Option<()> {
        match word.split_once(':') {
            Some(("exit", code)) => {
                let code: u8 = code.parse().ok()?;
                self.exits[usize::from(code / 64)] |= 1 << (code % 64);
            }
            None if word == "exit" => self.exits = ANY,
            None if word == "signal" => self.signal = true,
            None if word == "timeout" => self.timeout = true,
            None if word == "idle" => self.idle = true,
            _ => return None,
        }
        Some(())
    }
}

impl FromStr for RetryOn {
    type Err = UnknownEnding;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut on = Self::default();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            on.add(word).ok_or_else(|| UnknownEnding(word.to_owned()))?;
        }
        Ok(on)
    }
}

impl fmt::Display for RetryOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words: Vec<String> = match self.exits {
            ANY => vec!["exit".to_owned()],
            _ => {
                let codes = (0..=u8::MAX).filter(|&code| self.has(code));
                codes.map(|code| format!("exit:{code}")).collect()
            }
        };
        let others = [(self.signal, "signal"), (self.timeout, "timeout"), (self.idle, "idle")];
        words.extend(others.iter().filter(|(is_set, _)| *is_set).map(|(_, word)| (*word).into()));
        f.write_str(&words.join(","))
    }
}

impl JsonSchema for RetryOn {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RetryOn".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "description": "endings, such as exit:75,timeout" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_are_a_table() {
        let check = |text: &str, shown: &str, yes: &[Reason], no: &[Reason]| {
            let on: RetryOn = text.parse().expect("these are endings");
            assert_eq!(on.to_string(), shown);
            assert_eq!(on.to_string().parse(), Ok(on));
            assert!(yes.iter().all(|reason| on.includes(reason)), "{text}");
            assert!(!no.iter().any(|reason| on.includes(reason)), "{text}");
        };
        let exit = |code| Reason::ExitCode { code };
        let (signal, timeout) = (Reason::Signal { signal: 9 }, Reason::Timeout { seconds: 1 });
        check("", "", &[], &[exit(1), signal.clone(), timeout.clone()]);
        check("exit:75", "exit:75", &[exit(75)], &[exit(11), exit(256), exit(-1)]);
        check("timeout, exit:255,exit:1", "exit:1,exit:255,timeout", &[exit(255), timeout], &[]);
        check("exit", "exit", &[exit(1), exit(200)], &[Reason::TurnLimit]);
        check("signal,idle", "signal,idle", &[signal, Reason::Idle { seconds: 2 }], &[exit(1)]);
        for wrong in ["exit:256", "exit:", "fail", "exit:75 timeout"] {
            assert!(wrong.parse::<RetryOn>().is_err(), "{wrong}");
        }
    }
}
