//! Replies in the form in which they go over the wire. Pure.

use std::time::Duration;

use serde_json::{Value, json};

use crate::template::{fill, fill_value};
use crate::{ApiError, Break, Conversation, Reply, Usage};

/// One response, before it is sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    pub(crate) retry_after: Option<u64>,
    /// The number of seconds until the reset of a quota that is used up.
    pub(crate) quota_resets_in: Option<u64>,
    /// The part of a quota that is used, in percent, and the seconds until its reset.
    pub(crate) quota_used: Option<(u8, u64)>,
    pub(crate) parts: Vec<Part>,
}

/// A part of a response's body.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    /// These bytes.
    Bytes(String),
    /// These, which may be cut in the middle of a character.
    Piece(Vec<u8>),
    /// Nothing for so long.
    Pause(Duration),
    /// Nothing for ever.
    Silence,
    /// The connection ends here, and its end is no end of a response.
    Cut,
}

/// The response to a request for a message.
pub(crate) fn message(
    reply: &Reply,
    conversation: &Conversation,
    usage: Usage,
    serial: usize,
    stream: bool,
) -> Response {
    let content = match reply {
        Reply::Error(error) => return self::error(error),
        Reply::Hang => return Response { parts: vec![Part::Silence], ..stream_of(Vec::new()) },
        Reply::Text(text) | Reply::Slow { text, .. } => {
            vec![json!({"type": "text", "text": fill(text, conversation)})]
        }
        Reply::Calls(calls) => (1..)
            .zip(calls)
            .map(|(number, call)| {
                json!({
                    "type": "tool_use",
                    "id": format!("toolu_{serial:04}_{number}"),
                    "name": call.name,
                    "input": fill_value(&call.input, conversation),
                })
            })
            .collect(),
        Reply::Broken(_) => vec![json!({"type": "text", "text": "half of"})],
    };
    let stop_reason = if matches!(reply, Reply::Calls(_)) { "tool_use" } else { "end_turn" };
    let message = json!({
        "id": format!("msg_{serial:04}"),
        "type": "message",
        "role": "assistant",
        "model": conversation.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": usage_json(usage, 1),
    });
    if stream {
        return stream_of(events(reply, message, &content, stop_reason, usage));
    }
    let mut whole = message;
    whole["content"] = content.into();
    whole["stop_reason"] = stop_reason.into();
    whole["usage"] = usage_json(usage, usage.output);
    let pause = match reply {
        Reply::Slow { pause_ms, .. } => Some(Part::Pause(Duration::from_millis(*pause_ms))),
        _ => None,
    };
    let mut text = whole.to_string();
    let ending = match reply {
        Reply::Broken(breaks) => {
            text.truncate(text.len() / 2);
            (*breaks == Break::Silence).then_some(Part::Silence).or(Some(Part::Cut))
        }
        _ => None,
    };
    Response {
        parts: pause.into_iter().chain([Part::Bytes(text)]).chain(ending).collect(),
        ..json_of(200, &Value::Null)
    }
}

/// An error of the service.
pub(crate) fn error(error: &ApiError) -> Response {
    let ApiError { retry_after, quota_resets_in, .. } = *error;
    Response { retry_after, quota_resets_in, ..json_of(error.status, &error_json(error)) }
}

/// A response that is one JSON value.
pub(crate) fn json_of(status: u16, value: &Value) -> Response {
    let parts = vec![Part::Bytes(value.to_string())];
    Response {
        status,
        content_type: "application/json",
        retry_after: None,
        quota_resets_in: None,
        quota_used: None,
        parts,
    }
}

pub(crate) fn stream_of(parts: Vec<Part>) -> Response {
    Response {
        status: 200,
        content_type: "text/event-stream",
        retry_after: None,
        quota_resets_in: None,
        quota_used: None,
        parts,
    }
}

fn error_json(error: &ApiError) -> Value {
    json!({"type": "error", "error": {"type": error.kind, "message": error.message}})
}

fn usage_json(usage: Usage, output: u64) -> Value {
    json!({
        "input_tokens": usage.input,
        "output_tokens": output,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write,
    })
}

fn events(
    reply: &Reply,
    message: Value,
    content: &[Value],
    stop_reason: &str,
    usage: Usage,
) -> Vec<Part> {
    let mut parts = vec![event(json!({"type": "message_start", "message": message}))];
    for (index, block) in content.iter().enumerate() {
        let (start, deltas) = block_events(block, reply);
        parts.push(event(
            json!({"type": "content_block_start", "index": index, "content_block": start}),
        ));
        for delta in deltas {
            if let Reply::Slow { pause_ms, .. } = reply {
                parts.push(Part::Pause(Duration::from_millis(*pause_ms)));
            }
            parts.push(event(
                json!({"type": "content_block_delta", "index": index, "delta": delta}),
            ));
        }
        if let Reply::Broken(breaks) = reply {
            parts.extend(break_parts(*breaks));
            return parts;
        }
        parts.push(event(json!({"type": "content_block_stop", "index": index})));
    }
    parts.push(event(json!({
        "type": "message_delta",
        "delta": {"stop_reason": stop_reason, "stop_sequence": null},
        "usage": {"output_tokens": usage.output},
    })));
    parts.push(event(json!({"type": "message_stop"})));
    parts
}

/// How a block begins, and what is added to it bit by bit.
fn block_events(block: &Value, reply: &Reply) -> (Value, Vec<Value>) {
    let text_delta = |text: &str| json!({"type": "text_delta", "text": text});
    match block["text"].as_str() {
        Some(text) => {
            let deltas = match reply {
                Reply::Slow { .. } => text.split_inclusive(' ').map(text_delta).collect(),
                _ => vec![text_delta(text)],
            };
            (json!({"type": "text", "text": ""}), deltas)
        }
        None => {
            let input = block["input"].to_string();
            let mut start = block.clone();
            start["input"] = json!({});
            (start, vec![json!({"type": "input_json_delta", "partial_json": input})])
        }
    }
}

fn break_parts(breaks: Break) -> Vec<Part> {
    let half = || Part::Bytes("event: content_block_delta\ndata: {\"type\": \"cont".to_owned());
    match breaks {
        Break::Cut => vec![half(), Part::Cut],
        Break::Silence => vec![half(), Part::Silence],
        Break::Garbage => {
            vec![Part::Bytes("event: content_block_delta\ndata: {not json\n\n".to_owned())]
        }
        Break::Overloaded => {
            vec![event(error_json(&ApiError::new(529, "overloaded_error", "overloaded")))]
        }
    }
}

/// One event of a stream, by its type.
pub(crate) fn event(data: Value) -> Part {
    let kind = data["type"].as_str().expect("every event is made here, with its type");
    Part::Bytes(format!("event: {kind}\ndata: {data}\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(response: &Response) -> Vec<String> {
        let kind = |part: &Part| match part {
            Part::Bytes(text) => {
                let line = text.lines().next().unwrap_or_default();
                line.trim_start_matches("event: ").to_owned()
            }
            other => format!("{other:?}"),
        };
        response.parts.iter().map(kind).collect()
    }

    fn stream(reply: &Reply) -> Vec<String> {
        kinds(&message(reply, &Conversation::default(), Usage::default(), 1, true))
    }

    const BEGIN: [&str; 3] = ["message_start", "content_block_start", "content_block_delta"];
    const END: [&str; 3] = ["content_block_stop", "message_delta", "message_stop"];

    #[test]
    fn an_answer_is_a_row_of_events() {
        assert_eq!(stream(&Reply::text("hello there")), [&BEGIN[..], &END].concat());
        let call = Reply::call("Bash", json!({"command": "ls"}));
        assert_eq!(stream(&call), [&BEGIN[..], &END].concat());
        let slow = Reply::Slow { text: "a b".into(), pause_ms: 2 };
        let pause = "Pause(2ms)";
        let expected =
            [&BEGIN[..2], &[pause, "content_block_delta", pause, "content_block_delta"], &END];
        assert_eq!(stream(&slow), expected.concat());
        assert_eq!(stream(&Reply::Hang), ["Silence"]);
    }

    #[test]
    fn a_stream_breaks_in_its_middle() {
        for (breaks, rest) in [
            (Break::Cut, &["content_block_delta", "Cut"][..]),
            (Break::Silence, &["content_block_delta", "Silence"]),
            (Break::Garbage, &["content_block_delta"]),
            (Break::Overloaded, &["error"]),
        ] {
            assert_eq!(stream(&Reply::Broken(breaks)), [&BEGIN[..], rest].concat());
        }
    }

    #[test]
    fn without_a_stream_the_answer_is_one_value() {
        let conversation = Conversation { prompt: "x".into(), ..Conversation::default() };
        let reply = Reply::text("it was {{prompt}}");
        let response = message(&reply, &conversation, Usage::default(), 7, false);
        let [Part::Bytes(text)] = &response.parts[..] else { panic!("{response:?}") };
        let value: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(value["id"], "msg_0007");
        assert_eq!(value["content"], json!([{"type": "text", "text": "it was x"}]));
        assert_eq!(value["usage"]["output_tokens"], 5);
        assert_eq!(value["stop_reason"], "end_turn");
    }
}
