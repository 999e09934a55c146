//! Lines and what they hold: JSON-RPC 2.0, one message a line.

use std::borrow::Cow;

use offshoot_model::{json_error, json_object};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{ErrorCode, RequestId};

const JSON_RPC: &str = "2.0";

/// A message that came in.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// Wants an answer.
    Request { id: RequestId, method: String, params: Option<Box<RawValue>> },
    /// Wants none.
    Notification { method: String, params: Option<Box<RawValue>> },
    /// Is one. Without an id it speaks about a line that could not be read, or about the connection.
    Answer { id: Option<RequestId>, result: Result<Box<RawValue>, RawError> },
}

/// A line that is no message.
#[derive(Debug)]
pub(crate) struct Malformed {
    pub(crate) code: ErrorCode,
    pub(crate) message: String,
}

/// An error as it travels.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RawError {
    pub(crate) code: i64,
    #[serde(default)]
    pub(crate) message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<Box<RawValue>>,
}

/// An answer on its way out.
#[derive(Serialize)]
pub(crate) struct Answer<'a> {
    jsonrpc: &'static str,
    /// Null where the request could not be read.
    id: Option<&'a RequestId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<RawError>,
}

/// A request or a notification on its way out.
#[derive(Serialize)]
pub(crate) struct Outgoing<'a, P: Serialize> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RequestId>,
    method: &'static str,
    params: P,
}

/// All that a message can have.
#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(default, borrow)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(default)]
    id: Option<RequestId>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Option<Box<RawValue>>,
    #[serde(default)]
    result: Option<Box<RawValue>>,
    #[serde(default)]
    error: Option<RawError>,
}

impl Incoming {
    pub(crate) fn parse(line: &[u8]) -> Result<Self, Malformed> {
        let text = str::from_utf8(line).map_err(|_| Malformed {
            code: ErrorCode::Parse,
            message: "a message is UTF-8".to_owned(),
        })?;
        let raw: Raw<'_> = json_object(text).map_err(|error| Malformed::of(text, &error))?;
        if raw.jsonrpc.as_deref() != Some(JSON_RPC) {
            return Err(Malformed::request("a message says `\"jsonrpc\": \"2.0\"`"));
        }
        match raw {
            Raw { method: Some(method), id: Some(id), params, .. } => {
                Ok(Self::Request { id, method, params })
            }
            Raw { method: Some(method), params, .. } => Ok(Self::Notification { method, params }),
            Raw { id, error: Some(error), .. } => Ok(Self::Answer { id, result: Err(error) }),
            Raw { id: id @ Some(_), result: Some(result), .. } => {
                Ok(Self::Answer { id, result: Ok(result) })
            }
            _ => Err(Malformed::request("a message has a `method`, a `result` or an `error`")),
        }
    }
}

impl Malformed {
    pub(crate) fn request(message: impl Into<String>) -> Self {
        Self { code: ErrorCode::InvalidRequest, message: message.into() }
    }

    /// JSON that is no message, or no JSON.
    fn of(text: &str, error: &serde_json::Error) -> Self {
        let code = match error.classify() {
            serde_json::error::Category::Data => ErrorCode::InvalidRequest,
            _ => ErrorCode::Parse,
        };
        Self { code, message: json_error(text, error) }
    }
}

impl RawError {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code: code.number(), message: message.into(), data: None }
    }

    pub(crate) fn with_data(mut self, data: &impl Serialize) -> Self {
        let data = serde_json::value::to_raw_value(data);
        self.data = Some(data.expect("what goes with an error is plain data"));
        self
    }
}

impl From<Malformed> for RawError {
    fn from(malformed: Malformed) -> Self {
        Self::new(malformed.code, malformed.message)
    }
}

impl<'a> Answer<'a> {
    pub(crate) fn result(id: &'a RequestId, result: &'a RawValue) -> Self {
        Self { jsonrpc: JSON_RPC, id: Some(id), result: Some(result), error: None }
    }

    pub(crate) fn error(id: Option<&'a RequestId>, error: RawError) -> Self {
        Self { jsonrpc: JSON_RPC, id, result: None, error: Some(error) }
    }
}

impl<'a, P: Serialize> Outgoing<'a, P> {
    pub(crate) fn request(id: &'a RequestId, method: &'static str, params: P) -> Self {
        Self { jsonrpc: JSON_RPC, id: Some(id), method, params }
    }

    pub(crate) fn notification(method: &'static str, params: P) -> Self {
        Self { jsonrpc: JSON_RPC, id: None, method, params }
    }
}

/// A message as a line. Values stay the text they came as, so there may be line breaks between their tokens; inside of
/// strings JSON has none.
pub(crate) fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("messages are plain data");
    for byte in &mut line {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use offshoot_model::JsonText;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_are_told_apart() {
        fn check(line: &str, expected: &str) {
            let found = match Incoming::parse(line.as_bytes()) {
                Ok(Incoming::Request { id, method, params }) => {
                    format!(
                        "request {id} {method} {}",
                        params.map_or(String::new(), |raw| raw.to_string())
                    )
                }
                Ok(Incoming::Notification { method, .. }) => format!("notification {method}"),
                Ok(Incoming::Answer { id: Some(id), result: Ok(_) }) => format!("result {id}"),
                Ok(Incoming::Answer { id, result }) => {
                    let id = id.map_or("-".to_owned(), |id| id.to_string());
                    format!("error {id} {}", result.expect_err("results have ids").code)
                }
                Err(malformed) => format!("{:?}", malformed.code),
            };
            assert_eq!(found, expected, "{line}");
        }
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":[1]}}"#,
            r#"request 1 a {"x":[1]}"#,
        );
        check(r#"{"jsonrpc":"2.0","id":"ü","method":"a","new":{}}"#, r#"request "ü" a "#);
        check(r#"{"jsonrpc":"2.0","method":"a"}"#, "notification a");
        check(r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#, "notification a");
        check(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "result 1");
        check(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"x"}}"#, "error 1 -1");
        check(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1}}"#, "error - -1");
        check(r#"{"jsonrpc":"2.0","id":[1],"method":"a"}"#, "InvalidRequest");
        check(r#"{"jsonrpc":"2.0","id":true,"method":"a"}"#, "InvalidRequest");
        check(r#"{"jsonrpc":"2.0","id":1}"#, "InvalidRequest");
        check(r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#, "InvalidRequest");
        check(r#"{"id":1,"method":"a"}"#, "InvalidRequest");
        check(r#"[{"jsonrpc":"2.0","id":1,"method":"a"}]"#, "InvalidRequest");
        check("7", "InvalidRequest");
        check("", "Parse");
        check("{", "Parse");
        check("GET / HTTP/1.1", "Parse");
        check("{} {}", "Parse");
    }

    #[test]
    fn a_value_in_many_lines_travels_in_one() {
        let value = JsonText::parse("{\r\n  \"a\": [1,\n  2], \"b\": \"x\\ny\"\n}".into()).unwrap();
        let bytes = line(&Outgoing::notification("x", &value));
        assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 1);
        let Ok(Incoming::Notification { params: Some(params), .. }) = Incoming::parse(&bytes)
        else {
            panic!("a notification")
        };
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(read(params.get()), read(value.as_str()));
    }

    proptest! {
        #[test]
        fn no_line_panics(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Incoming::parse(&line);
        }

        #[test]
        fn an_id_comes_back_as_it_was(text in "[^\\x00-\\x1f]{0,20}", number in any::<i64>()) {
            for id in [serde_json::to_string(&text).unwrap(), number.to_string()] {
                let read: RequestId = serde_json::from_str(&id).unwrap();
                prop_assert_eq!(serde_json::to_string(&read).unwrap(), id);
            }
        }
    }
}
