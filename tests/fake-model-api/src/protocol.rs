//! The protocols in which a model can be asked.

use serde_json::Value;

use crate::wire::{self, Response};
use crate::{Conversation, Reply, Usage, chat, gemini, responses};

/// The protocol of a request for a further message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// Anthropic's messages.
    Messages,
    /// OpenAI's chats.
    Chat,
    /// OpenAI's responses.
    Responses,
    /// Gemini's contents, as a stream or whole.
    Gemini {
        /// The path asks for a stream, and not the body.
        stream: bool,
    },
}

impl Protocol {
    /// Returns the protocol of a request; none where it does not ask for a message.
    pub(crate) fn of(method: &str, path: &str) -> Option<Self> {
        let path = path.split('?').next()?;
        match (method, path) {
            ("POST", "/v1/messages") => Some(Self::Messages),
            ("POST", "/v1/chat/completions") => Some(Self::Chat),
            ("POST", "/v1/responses") => Some(Self::Responses),
            ("POST", _) => match gemini::target(path)?.1 {
                "generateContent" => Some(Self::Gemini { stream: false }),
                "streamGenerateContent" => Some(Self::Gemini { stream: true }),
                _ => None,
            },
            _ => None,
        }
    }

    /// Reads what a request says.
    pub(crate) fn conversation(self, path: &str, body: &Value) -> Conversation {
        match self {
            Self::Messages | Self::Chat => Conversation::of(body),
            Self::Responses => Conversation::of_responses(body),
            Self::Gemini { .. } => {
                let model = gemini::target(path).map_or("", |(model, _)| model);
                Conversation::of_contents(model, body)
            }
        }
    }

    /// Says a reply in the words of the protocol.
    pub(crate) fn answer(
        self,
        reply: &Reply,
        conversation: &Conversation,
        usage: Usage,
        serial: usize,
        body: &Value,
    ) -> Response {
        let stream = body["stream"] == true;
        match self {
            Self::Messages => wire::message(reply, conversation, usage, serial, stream),
            Self::Chat => {
                let says_usage = body["stream_options"]["include_usage"] == true;
                chat::answer(reply, conversation, usage, serial, stream, says_usage)
            }
            Self::Responses => responses::answer(reply, conversation, usage, serial, stream),
            Self::Gemini { stream } => gemini::answer(reply, conversation, usage, serial, stream),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_a_protocol() {
        let check = |path: &str, expected| {
            assert_eq!(Protocol::of("POST", path), expected, "{path}");
            assert_eq!(Protocol::of("GET", path), None, "{path}");
        };
        check("/v1/messages?beta=true", Some(Protocol::Messages));
        check("/v1/messages/count_tokens", None);
        check("/v1/chat/completions", Some(Protocol::Chat));
        check("/v1/responses", Some(Protocol::Responses));
        let stream = "/v1beta/models/g-1:streamGenerateContent?alt=sse";
        check(stream, Some(Protocol::Gemini { stream: true }));
        check("/v1beta/models/g-1:generateContent", Some(Protocol::Gemini { stream: false }));
        check("/v1beta/models/g-1:countTokens", None);
        check("/v1beta/models/g-1", None);
        let conversation = Protocol::Gemini { stream: true }.conversation(stream, &Value::Null);
        assert_eq!(conversation.model, "g-1");
    }
}
