//! The use that a provider reports of an answer, read from its pieces as they come. Pure.

pub(crate) mod chat;
mod gemini;
mod messages;
mod responses;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::price::{Service, Tokens};
use crate::protocol::Protocol;

/// The use that is known of an answer so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Tokens of the model that was asked.
    pub tokens: Tokens,
    /// Tokens of other models that the provider asked on the way, by name.
    pub others: BTreeMap<String, Tokens>,
    /// Uses of tools that the provider ran, by family.
    pub tools: BTreeMap<String, u64>,
    /// The way in which it was served.
    pub service: Service,
    /// True if what the model read was reported.
    pub input_known: bool,
    /// True if all that it wrote was reported.
    pub output_known: bool,
    /// True if the provider has said in the answer that it failed.
    pub failed: bool,
    /// True if the answer came to its end, whether or not it has said what it used. A stream may end without having said so.
    pub ended: bool,
}

impl Report {
    /// Takes a piece of an answer, or a whole one. What is no such piece changes nothing, and is answered with false.
    pub fn take(&mut self, protocol: Protocol, piece: &[u8]) -> bool {
        let Ok(piece) = serde_json::from_slice::<Value>(piece) else { return false };
        self.take_value(protocol, &piece);
        true
    }

    fn take_value(&mut self, protocol: Protocol, piece: &Value) {
        if let Value::Array(pieces) = piece {
            // Gemini's stream, where it is asked for no events.
            return pieces.iter().for_each(|piece| self.take_value(protocol, piece));
        }
        match protocol {
            Protocol::Messages => messages::take(self, piece),
            Protocol::Responses => responses::take(self, piece),
            Protocol::Chat => chat::take(self, piece),
            Protocol::Gemini => gemini::take(self, piece),
        }
    }

    /// Takes the end of the answer, which it has told itself.
    pub(crate) fn end(&mut self, protocol: Protocol) {
        self.ended = true;
        self.all_came(protocol);
    }

    /// Nothing more comes: the numbers that it told so far are those of all.
    pub(crate) fn all_came(&mut self, protocol: Protocol) {
        if protocol == Protocol::Chat {
            self.output_known |= self.input_known;
        }
    }

    /// True if all was reported.
    pub fn is_whole(&self) -> bool {
        self.input_known && self.output_known
    }
}

/// True for a piece of a stream that may say something about use. All others need not be read, which is most of them.
pub(crate) fn may_tell(protocol: Protocol, piece: &[u8]) -> bool {
    let word: &[u8] = match protocol {
        Protocol::Messages | Protocol::Responses | Protocol::Chat => b"usage",
        Protocol::Gemini => b"sageMetadata",
    };
    memchr::memmem::find(piece, word).is_some() || memchr::memmem::find(piece, b"error").is_some()
}

/// A count that can be believed.
fn count(value: &Value) -> Option<u64> {
    value.as_u64().filter(|&count| count <= offshoot_model::TokenCount::MAX)
}

/// A count that is zero where it is left out; none where it cannot be a count.
fn count_or_zero(value: &Value) -> Option<u64> {
    if value.is_null() { Some(0) } else { count(value) }
}

#[cfg(test)]
mod tests;
