//! One event of an answer, read patiently: endpoints differ in what they leave out. Pure.

use serde_json::Value;

use crate::meter::Tokens;

/// The content of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// A further bit of the answer.
    Delta(Delta),
    /// Nothing more will come.
    Done,
    /// The service could not go on.
    Error(ServiceError),
    /// No message at all; its beginning.
    Garbage(String),
}

/// A further bit of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    /// Text of the answer.
    pub text: String,
    /// Bits of calls of tools.
    pub calls: Vec<CallDelta>,
    /// The reason why the answer ends here.
    pub finish: Option<String>,
    /// The usage of the call.
    pub usage: Option<Tokens>,
    /// The service's words about the usage, where they cannot be right.
    pub odd_usage: Option<String>,
}

/// A bit of one call of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallDelta {
    /// The index of the call within the answer. Some endpoints do not say, and some say 0 of each.
    pub index: Option<u64>,
    /// The call's name for its result; only in its first bit.
    pub id: Option<String>,
    /// The tool's name; only in its first bit.
    pub name: Option<String>,
    /// Of the arguments, which are JSON once they are whole.
    pub arguments: String,
}

/// An error as a service words it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceError {
    /// For people.
    pub message: String,
    /// The kinds of the error, in the words of the service: `insufficient_quota`, `model_not_found`.
    pub kinds: Vec<String>,
    /// The status, where the error carries one.
    pub status: Option<u16>,
}

/// Of what is no message, this much is shown.
const SHOWN: usize = 200;

/// Reads the data of one event, or a whole answer where the endpoint does not stream.
pub fn parse(data: &str) -> Chunk {
    if data.trim() == "[DONE]" {
        return Chunk::Done;
    }
    let Ok(Value::Object(fields)) = serde_json::from_str(data) else {
        return Chunk::Garbage(beginning(data));
    };
    let message = Value::Object(fields);
    if let Some(error) = ServiceError::of(&message) {
        return Chunk::Error(error);
    }
    let choice = &message["choices"][0];
    let said = if choice["delta"].is_object() { &choice["delta"] } else { &choice["message"] };
    let calls = said["tool_calls"].as_array().into_iter().flatten();
    let used = &message["usage"];
    let usage = Tokens::of(used);
    let is_odd = usage.is_none() && used.get("prompt_tokens").is_some_and(|count| !count.is_null());
    Chunk::Delta(Delta {
        text: said["content"].as_str().unwrap_or_default().to_owned(),
        calls: calls.map(CallDelta::of).collect(),
        finish: choice["finish_reason"].as_str().map(str::to_owned),
        usage,
        odd_usage: is_odd.then(|| beginning(&used.to_string())),
    })
}

/// The beginning of a text, for a message about it.
pub(crate) fn beginning(text: &str) -> String {
    text.trim().chars().take(SHOWN).collect()
}

impl CallDelta {
    fn of(call: &Value) -> Self {
        let function = &call["function"];
        let text =
            |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        Self {
            index: call["index"].as_u64(),
            id: text(&call["id"]),
            name: text(&function["name"]),
            arguments: match &function["arguments"] {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                // Some endpoints send them as the object that they are.
                other => other.to_string(),
            },
        }
    }
}

impl ServiceError {
    /// The error in a body or an event, in the shapes that are in use; none where there is none.
    pub fn of(body: &Value) -> Option<Self> {
        let error = &body["error"];
        let (message, about) = match error {
            Value::Object(_) => (&error["message"], error),
            Value::String(_) => (error, body),
            // Of frameworks below the endpoint: `{"detail": …}`, `{"object": "error", "message": …}`.
            _ if body["detail"].is_string() => (&body["detail"], body),
            _ if body["object"] == "error" => (&body["message"], body),
            _ => return None,
        };
        let words = [&about["type"], &about["code"]].into_iter().filter_map(Value::as_str);
        let status = about["code"].as_u64().or_else(|| about["status"].as_u64());
        Some(Self {
            message: message.as_str().map_or_else(|| beginning(&error.to_string()), str::to_owned),
            kinds: words.map(str::to_owned).collect(),
            status: status.and_then(|status| status.try_into().ok()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(data: &str, expected: Chunk) {
        assert_eq!(parse(data), expected, "{data}");
    }

    fn text(text: &str) -> Chunk {
        Chunk::Delta(Delta { text: text.into(), ..Delta::default() })
    }

    /// Lines as four endpoints send them, shortened where they repeat themselves.
    #[test]
    fn bits_of_text() {
        check(
            r#"{"id":"chatcmpl-B9","object":"chat.completion.chunk","created":1741569952,"model":"gpt-4o","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null}"#,
            text(""),
        );
        check(
            r#"{"id":"chatcmpl-77","object":"chat.completion.chunk","created":1,"model":"qwen3:8b","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":"Hel"},"finish_reason":null}]}"#,
            text("Hel"),
        );
        check(
            r#"{"choices":[{"finish_reason":null,"index":0,"delta":{"content":"lo"}}],"created":1,"id":"chatcmpl-x","model":"m","system_fingerprint":"b4000","object":"chat.completion.chunk"}"#,
            text("lo"),
        );
        check(
            r#"{"choices":[{"index":0,"delta":{"reasoning_content":"hm"},"finish_reason":null}]}"#,
            text(""),
        );
        check(
            r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"whole"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#,
            Chunk::Delta(Delta {
                text: "whole".into(),
                finish: Some("stop".into()),
                usage: Some(Tokens { input: 3, output: 1, ..Tokens::default() }),
                ..Delta::default()
            }),
        );
    }

    #[test]
    fn the_end_and_its_numbers() {
        check("[DONE]", Chunk::Done);
        check(" [DONE] ", Chunk::Done);
        check(
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
            Chunk::Delta(Delta { finish: Some("tool_calls".into()), ..Delta::default() }),
        );
        check(
            r#"{"choices":[],"usage":{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29,"prompt_tokens_details":{"cached_tokens":4}}}"#,
            Chunk::Delta(Delta {
                usage: Some(Tokens { input: 15, output: 10, cache_read: 4, ..Tokens::default() }),
                ..Delta::default()
            }),
        );
    }

    #[test]
    fn bits_of_calls() {
        let call = |index, id: Option<&str>, name: Option<&str>, arguments: &str| {
            let (id, name) = (id.map(str::to_owned), name.map(str::to_owned));
            let call = CallDelta { index, id, name, arguments: arguments.into() };
            Chunk::Delta(Delta { calls: vec![call], ..Delta::default() })
        };
        check(
            r#"{"choices":[{"delta":{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"sessions_spawn","arguments":""}}]}}]}"#,
            call(Some(0), Some("call_1"), Some("sessions_spawn"), ""),
        );
        check(
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"ta"}}]}}]}"#,
            call(Some(0), None, None, "{\"ta"),
        );
        check(
            r#"{"choices":[{"delta":{"tool_calls":[{"id":"","function":{"name":"f","arguments":{"a":1}}}]}}]}"#,
            call(None, None, Some("f"), r#"{"a":1}"#),
        );
    }

    #[test]
    fn errors_in_the_shapes_that_there_are() {
        let error = |message: &str, kinds: &[&str], status| {
            let kinds = kinds.iter().map(ToString::to_string).collect();
            Chunk::Error(ServiceError { message: message.into(), kinds, status })
        };
        check(
            r#"{"error":{"message":"slow down","type":"requests","param":null,"code":"rate_limit_exceeded"}}"#,
            error("slow down", &["requests", "rate_limit_exceeded"], None),
        );
        check(
            r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#,
            error("Loading model", &["unavailable_error"], Some(503)),
        );
        check(r#"{"error":"model 'x' not found"}"#, error("model 'x' not found", &[], None));
        check(
            r#"{"object":"error","message":"too long","type":"BadRequestError","param":null,"code":400}"#,
            error("too long", &["BadRequestError"], Some(400)),
        );
        check(r#"{"detail":"Not Found"}"#, error("Not Found", &[], None));
        check(r#"{"error":{"odd":1}}"#, error(r#"{"odd":1}"#, &[], None));
    }

    #[test]
    fn what_is_no_message() {
        check("<html>", Chunk::Garbage("<html>".into()));
        check("[1]", Chunk::Garbage("[1]".into()));
        check(r#"{"choices":[{"del"#, Chunk::Garbage(r#"{"choices":[{"del"#.into()));
        check(&"ä".repeat(900), Chunk::Garbage("ä".repeat(200)));
        check("{}", Chunk::Delta(Delta::default()));
        check(r#"{"choices":7,"usage":"x","error":null}"#, Chunk::Delta(Delta::default()));
    }
}
