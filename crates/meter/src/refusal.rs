//! The answer no, in the words of each protocol, so that the program stops at once and says why. Pure.
//!
//! | protocol | status | tried with the real programs |
//! |---|---|---|
//! | Messages, Chat, Gemini | 402 | one request, one message. 401 and `invalid_request_error` are tried again, or end in a login |
//! | Responses | 400, plain text | one request, one message. 402 and 403 are tried again |

use serde_json::json;

use crate::protocol::Protocol;

/// A refused request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The rule, for programs.
    pub code: String,
    /// The rule, for people and models.
    pub message: String,
    /// Advice on what to do next.
    pub hint: Option<String>,
}

/// The rules of the meter itself. All others are those of the owner that grants reservations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::AsRefStr)]
#[strum(serialize_all = "snake_case")]
pub enum Code {
    /// The ticket is that of no run, or the process does not belong to the run.
    UnknownCaller,
    /// The path is none whose cost is known.
    UnmeteredRequest,
    /// The body cannot be read.
    MalformedRequest,
    /// The body is too large.
    RequestTooLarge,
    /// There is a budget in dollars, and the price is not known.
    CostUnbounded,
    /// There is a budget in dollars, and the provider would run a tool.
    ServerTool,
    /// Room did not come in time.
    HeldTooLong,
    /// No provider is known for requests of this kind.
    NoProvider,
    /// The key cannot be read.
    NoKey,
    /// The tree has ended.
    TreeEnded,
}

/// A response that says no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RefusalResponse {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    pub(crate) body: String,
}

impl Refusal {
    /// A refusal of the meter.
    pub fn new(code: Code, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { code: code.as_ref().to_owned(), message: message.into(), hint: Some(hint.into()) }
    }

    /// The text for the reader of the program's output.
    pub fn text(&self) -> String {
        let Self { code, message, hint } = self;
        match hint {
            Some(hint) => format!("offshoot refused this request ({code}): {message}. {hint}"),
            None => format!("offshoot refused this request ({code}): {message}"),
        }
    }

    /// The refusal in the words of a protocol. Of requests of no protocol those of Messages are taken, whose form most programs can show.
    pub(crate) fn response(&self, protocol: Option<Protocol>) -> RefusalResponse {
        let text = self.text();
        let body = match protocol {
            Some(Protocol::Responses) => {
                return RefusalResponse {
                    status: 400,
                    content_type: "text/plain; charset=utf-8",
                    body: text,
                };
            }
            Some(Protocol::Messages) | None => {
                json!({"type": "error", "error": {"type": "billing_error", "message": text}})
            }
            Some(Protocol::Chat) => {
                json!({"error": {"message": text, "type": "billing_error", "code": self.code, "param": null}})
            }
            Some(Protocol::Gemini) => {
                json!({"error": {"code": 402, "message": text, "status": "FAILED_PRECONDITION"}})
            }
        };
        let status = if protocol.is_none() { 404 } else { 402 };
        RefusalResponse { status, content_type: "application/json", body: body.to_string() }
    }
}

impl From<&offshoot_model::Refusal> for Refusal {
    fn from(refusal: &offshoot_model::Refusal) -> Self {
        Self {
            code: refusal.code.as_ref().to_owned(),
            message: refusal.message.clone(),
            hint: refusal.hint.clone(),
        }
    }
}

/// A failure of the way to the provider, in the words of a protocol: one that programs try again. `message` begins with the provider's address.
pub(crate) fn unreachable(protocol: Option<Protocol>, message: &str) -> RefusalResponse {
    let text = format!("offshoot cannot reach the provider at {message}");
    let body = match protocol {
        Some(Protocol::Messages) | None => {
            json!({"type": "error", "error": {"type": "api_error", "message": text}})
        }
        Some(Protocol::Chat | Protocol::Responses) => {
            json!({"error": {"message": text, "type": "server_error", "code": "provider_unreachable", "param": null}})
        }
        Some(Protocol::Gemini) => {
            json!({"error": {"code": 502, "message": text, "status": "UNAVAILABLE"}})
        }
    };
    RefusalResponse { status: 502, content_type: "application/json", body: body.to_string() }
}

#[cfg(test)]
mod tests {
    use offshoot_model::RefusalCode;

    use super::*;

    #[test]
    fn each_protocol_has_its_words() {
        let refusal =
            offshoot_model::Refusal::new(RefusalCode::BudgetExhausted, "0.50 dollars do not fit");
        let refusal = Refusal::from(&refusal.with_hint("raise budget.usd"));
        let text = "offshoot refused this request (budget_exhausted): 0.50 dollars do not fit. raise budget.usd";
        let check = |protocol, status, pointer: &str| {
            let response = refusal.response(protocol);
            assert_eq!(response.status, status);
            let body: serde_json::Value = serde_json::from_str(&response.body).expect("JSON");
            assert_eq!(body.pointer(pointer).and_then(|text| text.as_str()), Some(text));
            assert_eq!(response.content_type, "application/json");
        };
        check(Some(Protocol::Messages), 402, "/error/message");
        check(Some(Protocol::Chat), 402, "/error/message");
        check(Some(Protocol::Gemini), 402, "/error/message");
        check(None, 404, "/error/message");
        let plain = refusal.response(Some(Protocol::Responses));
        assert_eq!((plain.status, plain.body.as_str()), (400, text));
        assert!(plain.content_type.starts_with("text/plain"));
    }

    #[test]
    fn a_provider_that_is_down_is_another_matter() {
        for protocol in [Protocol::Messages, Protocol::Chat, Protocol::Responses, Protocol::Gemini]
        {
            let message = "http://127.0.0.1:1: connection refused";
            let response = unreachable(Some(protocol), message);
            assert_eq!(response.status, 502);
            let said = format!("offshoot cannot reach the provider at {message}");
            assert!(response.body.contains(&said), "{}", response.body);
        }
    }
}
