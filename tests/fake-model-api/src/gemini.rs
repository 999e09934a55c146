//! Replies as Gemini gives them. Pure.

use std::time::Duration;

use serde_json::{Value, json};

use crate::template::{fill, fill_value};
use crate::wire::{self, Part, Response, json_of, stream_of};
use crate::{ApiError, Break, Conversation, Reply, Usage};

/// Splits a path into the model and what is asked of it.
pub(crate) fn target(path: &str) -> Option<(&str, &str)> {
    let path = path.split('?').next()?;
    path.strip_prefix("/v1beta/models/")?.split_once(':')
}

/// The response to a request for further content.
pub(crate) fn answer(
    reply: &Reply,
    conversation: &Conversation,
    usage: Usage,
    serial: usize,
    stream: bool,
) -> Response {
    let text_part = |text: &str| json!({ "text": text });
    let parts: Vec<Value> = match reply {
        Reply::Error(error) => return self::error(error),
        Reply::Hang => return Response { parts: vec![Part::Silence], ..stream_of(Vec::new()) },
        Reply::Text(text) | Reply::Slow { text, .. } => {
            let text = fill(text, conversation);
            if stream {
                text.split_inclusive(' ').map(text_part).collect()
            } else {
                vec![text_part(&text)]
            }
        }
        Reply::Broken(_) => vec![text_part("half of")],
        Reply::Calls(calls) => calls
            .iter()
            .map(|call| {
                let arguments = fill_value(&call.input, conversation);
                json!({"functionCall": {"name": call.name, "args": arguments}})
            })
            .collect(),
    };
    let chunk = |parts: &[Value], finish: Value| {
        json!({
            "candidates": [{
                "content": {"role": "model", "parts": parts},
                "finishReason": finish,
                "index": 0,
            }],
            "modelVersion": conversation.model,
            "responseId": format!("response-{serial:04}"),
        })
    };
    let ended = |parts: &[Value]| {
        let mut last = chunk(parts, "STOP".into());
        last["usageMetadata"] = json!({
            "promptTokenCount": usage.input + usage.cache_read,
            "cachedContentTokenCount": usage.cache_read,
            "candidatesTokenCount": usage.output,
            "totalTokenCount": usage.input + usage.cache_read + usage.output,
        });
        last
    };
    if !stream {
        return json_of(200, &ended(&parts));
    }
    let mut sent = Vec::new();
    for part in parts {
        if let Reply::Slow { pause_ms, .. } = reply {
            sent.push(Part::Pause(Duration::from_millis(*pause_ms)));
        }
        sent.push(event(&chunk(&[part], Value::Null)));
    }
    match reply {
        Reply::Broken(breaks) => sent.extend(break_parts(*breaks)),
        _ => sent.push(event(&ended(&[]))),
    }
    stream_of(sent)
}

/// Four characters to the token, as elsewhere.
pub(crate) fn tokens(body: &Value) -> Response {
    json_of(200, &json!({"totalTokens": body["contents"].to_string().len() / 4}))
}

fn event(data: &Value) -> Part {
    Part::Bytes(format!("data: {data}\r\n\r\n"))
}

fn break_parts(breaks: Break) -> Vec<Part> {
    let half = || Part::Bytes("data: {\"candidates\": [{\"con".to_owned());
    match breaks {
        Break::Cut => vec![half(), Part::Cut],
        Break::Silence => vec![half(), Part::Silence],
        Break::Garbage => vec![Part::Bytes("data: {not json\r\n\r\n".to_owned())],
        Break::Overloaded => {
            vec![event(&error_json(&ApiError::new(503, "overloaded_error", "overloaded")))]
        }
    }
}

fn error(error: &ApiError) -> Response {
    Response { parts: vec![Part::Bytes(error_json(error).to_string())], ..wire::error(error) }
}

fn error_json(error: &ApiError) -> Value {
    let status = match error.status {
        400 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        429 => "RESOURCE_EXHAUSTED",
        _ => "UNAVAILABLE",
    };
    json!({"error": {"code": error.status, "message": error.message, "status": status}})
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is sent: of chunks the parts, with the reason and the numbers of one that ends; of the rest its words.
    fn sent(reply: &Reply, stream: bool) -> Vec<Value> {
        let response = answer(reply, &Conversation::default(), Usage::default(), 1, stream);
        let short = |part: &Part| {
            let Part::Bytes(text) = part else { return json!(format!("{part:?}")) };
            let Ok(mut chunk) = serde_json::from_str::<Value>(text.trim_start_matches("data: "))
            else {
                return json!(text);
            };
            let Some(candidate) = chunk.pointer("/candidates/0") else {
                return chunk["error"].take();
            };
            let parts = candidate["content"]["parts"].clone();
            match &chunk["usageMetadata"] {
                Value::Null => parts,
                used => json!([parts, candidate["finishReason"], used]),
            }
        };
        response.parts.iter().map(short).collect()
    }

    fn used() -> Value {
        json!({
            "promptTokenCount": 10,
            "cachedContentTokenCount": 0,
            "candidatesTokenCount": 5,
            "totalTokenCount": 15,
        })
    }

    #[test]
    fn an_answer_is_chunks_and_then_its_end() {
        let end = json!([[], "STOP", used()]);
        let word = |text: &str| json!([{ "text": text }]);
        let text = sent(&Reply::text("hello there"), true);
        assert_eq!(text, [word("hello "), word("there"), end.clone()]);
        let call = json!([{"functionCall": {"name": "f", "args": {"a": 1}}}]);
        assert_eq!(sent(&Reply::call("f", json!({"a": 1})), true), [call, end.clone()]);
        let slow = Reply::Slow { text: "a b".into(), pause_ms: 2 };
        let pause = || json!("Pause(2ms)");
        assert_eq!(sent(&slow, true), [pause(), word("a "), pause(), word("b"), end]);
        assert_eq!(sent(&Reply::Hang, true), ["Silence"]);
        let whole = json!([word("hello there"), "STOP", used()]);
        assert_eq!(sent(&Reply::text("hello there"), false), [whole]);
    }

    #[test]
    fn errors_and_breaks() {
        let half = json!("data: {\"candidates\": [{\"con");
        let error = |code: u16, message: &str, status: &str| json!({"code": code, "message": message, "status": status});
        for (breaks, rest) in [
            (Break::Cut, vec![half.clone(), "Cut".into()]),
            (Break::Silence, vec![half, "Silence".into()]),
            (Break::Garbage, vec!["data: {not json\r\n\r\n".into()]),
            (Break::Overloaded, vec![error(503, "overloaded", "UNAVAILABLE")]),
        ] {
            let begin = json!([{"text": "half of"}]);
            assert_eq!(sent(&Reply::Broken(breaks), true), [vec![begin], rest].concat());
        }
        let refused = error(401, "invalid x-api-key", "UNAUTHENTICATED");
        assert_eq!(sent(&Reply::unauthorized(), true), [refused]);
    }
}
