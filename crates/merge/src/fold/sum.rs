//! Numbers, added.

use std::sync::Arc;

use offshoot_model::Payload;

use super::total::Total;
use crate::MergeError;
use crate::number::Decimal;
use crate::text;

/// Holds the total, and the first result in request order that is no number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sum {
    total: Total,
    offender: Option<Offender>,
}

#[derive(Clone, Debug)]
struct Offender {
    index: u32,
    key: Arc<str>,
    found: String,
}

/// The number of bytes of a value that is no number that are shown.
const SHOWN: usize = 60;

impl Sum {
    pub(super) fn push(&mut self, index: u32, key: Arc<str>, value: &Payload) {
        if let Err(found) = self.add(value)
            && self.offender.as_ref().is_none_or(|offender| index < offender.index)
        {
            self.offender = Some(Offender { index, key, found });
        }
    }

    pub(super) fn check(&self) -> Result<(), MergeError> {
        match &self.offender {
            Some(Offender { key, found, .. }) => {
                Err(MergeError::NotANumber { key: Arc::clone(key), found: found.clone() })
            }
            None => Ok(()),
        }
    }

    /// The total of the numbers, in JSON's notation.
    pub(crate) fn text(&self) -> String {
        self.total.to_string()
    }

    /// Adds a number, or says what there is instead.
    fn add(&mut self, value: &Payload) -> Result<(), String> {
        match value {
            Payload::Text(text) => self.add_text(text),
            Payload::Json(json) => match json.as_str() {
                string if string.starts_with('"') => {
                    self.add_text(&String::from_utf8_lossy(&text::decoded(string)))
                }
                other => self.add_text(other),
            },
            Payload::Stored(reference) => {
                Err(format!("a {} value of {} bytes", reference.kind, reference.size))
            }
        }
    }

    fn add_text(&mut self, text: &str) -> Result<(), String> {
        let number = Decimal::parse(text.trim());
        if number.is_some_and(|number| self.total.add(&number)) {
            return Ok(());
        }
        let mut shown: String = text.chars().take(SHOWN).collect();
        if shown.len() < text.len() {
            shown.push('…');
        }
        Err(format!("{shown:?}"))
    }
}
