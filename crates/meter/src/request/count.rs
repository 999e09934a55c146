//! The same request as a question for its number of tokens, which providers answer for nothing. Pure.

use std::ops::Range;

use hyper::body::Bytes;

use super::Request;
use crate::protocol::Protocol;

/// The part of a body that such a question holds.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Counted {
    /// The provider has no such service.
    No,
    /// The values, by their keys and places.
    Entries(Vec<(&'static str, Range<usize>)>),
    /// All of it.
    Whole,
}

/// A question for a number of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CountQuestion {
    /// The path to which it goes.
    pub path: String,
    /// The body in pieces, which share the request's.
    pub body: Vec<Bytes>,
}

impl Request {
    /// The question for the tokens of a request with this body; none where the provider has no such service.
    pub(crate) fn count_question(&self, body: &Bytes) -> Option<CountQuestion> {
        let text = |text: &str| Bytes::from(text.to_owned());
        match &self.counted {
            Counted::No => None,
            Counted::Entries(entries) => {
                let mut pieces = Vec::new();
                for (number, (key, place)) in entries.iter().enumerate() {
                    let before = if number == 0 { "{" } else { "," };
                    pieces.push(text(&format!("{before}\"{key}\":")));
                    pieces.push(body.slice(place.clone()));
                }
                pieces.push(text("}"));
                Some(CountQuestion { path: "/v1/messages/count_tokens".to_owned(), body: pieces })
            }
            Counted::Whole => {
                let from = body.iter().position(|byte| *byte == b'{')? + 1;
                let model = serde_json::Value::from(format!("models/{}", self.model));
                let head = format!("{{\"generateContentRequest\":{{\"model\":{model},");
                let path = format!("/v1beta/models/{}:countTokens", self.model);
                Some(CountQuestion { path, body: vec![text(&head), body.slice(from..), text("}")] })
            }
        }
    }
}

/// The number in the answer to such a question.
pub(crate) fn counted_tokens(protocol: Protocol, answer: &[u8]) -> Option<u64> {
    let answer: serde_json::Value = serde_json::from_slice(answer).ok()?;
    let key = match protocol {
        Protocol::Messages | Protocol::Responses | Protocol::Chat => "input_tokens",
        Protocol::Gemini => "totalTokens",
    };
    answer.get(key)?.as_u64()
}
