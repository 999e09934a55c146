//! Replies as the Responses API gives them. Pure.

use std::time::Duration;

use serde_json::{Value, json};

use crate::template::{fill, fill_value};
use crate::wire::{self, Part, Response, json_of, stream_of};
use crate::{ApiError, Break, Conversation, Reply, ToolCall, Usage, chat};

/// The response to a request for a further answer.
pub(crate) fn answer(
    reply: &Reply,
    conversation: &Conversation,
    usage: Usage,
    serial: usize,
    stream: bool,
) -> Response {
    let items: Vec<Value> = match reply {
        Reply::Error(error) => return chat::error(error),
        Reply::Hang => return Response { parts: vec![Part::Silence], ..stream_of(Vec::new()) },
        Reply::Text(text) | Reply::Slow { text, .. } => {
            vec![message(serial, &fill(text, conversation))]
        }
        Reply::Broken(_) => vec![message(serial, "half of")],
        Reply::Calls(calls) => {
            let call = |(index, call)| call_item(serial, index, call, conversation);
            calls.iter().enumerate().map(call).collect()
        }
    };
    let whole = json!({
        "id": format!("resp_{serial:04}"),
        "object": "response",
        "created_at": 0,
        "model": conversation.model,
        "status": "completed",
        "output": items,
        "usage": {
            "input_tokens": usage.input + usage.cache_read,
            "input_tokens_details": {"cached_tokens": usage.cache_read},
            "output_tokens": usage.output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.input + usage.cache_read + usage.output,
        },
    });
    if stream { stream_of(events(reply, &items, &whole)) } else { json_of(200, &whole) }
}

fn message(serial: usize, text: &str) -> Value {
    json!({
        "type": "message",
        "id": format!("msg_{serial:04}"),
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    })
}

fn call_item(serial: usize, index: usize, call: &ToolCall, conversation: &Conversation) -> Value {
    let mut item = json!({
        "type": "function_call",
        "id": format!("fc_{serial:04}_{index}"),
        "call_id": format!("call_{serial:04}_{index}"),
        "status": "completed",
        "name": call.name,
        "arguments": fill_value(&call.input, conversation).to_string(),
    });
    // No name of a tool has a dot, so what stands before one is the namespace in which the tool was offered.
    if let Some((namespace, name)) = call.name.split_once('.') {
        item["namespace"] = namespace.into();
        item["name"] = name.into();
    }
    item
}

fn events(reply: &Reply, items: &[Value], whole: &Value) -> Vec<Part> {
    let mut stream = Stream::default();
    let mut begun = whole.clone();
    begun["status"] = "in_progress".into();
    begun["output"] = json!([]);
    begun["usage"] = Value::Null;
    stream.tell("response.created", json!({"response": begun}));
    stream.tell("response.in_progress", json!({"response": begun}));
    for (index, item) in items.iter().enumerate() {
        if item["type"] == "message" {
            stream.text(reply, index, item);
        } else {
            stream.call(index, item);
        }
        if let Reply::Broken(breaks) = reply {
            stream.broken(*breaks, begun);
            return stream.parts;
        }
        stream.tell("response.output_item.done", json!({"output_index": index, "item": item}));
    }
    stream.tell("response.completed", json!({"response": whole}));
    stream.parts
}

/// The events of an answer so far.
#[derive(Default)]
struct Stream {
    parts: Vec<Part>,
    told: usize,
}

impl Stream {
    fn tell(&mut self, kind: &str, mut event: Value) {
        event["type"] = kind.into();
        event["sequence_number"] = self.told.into();
        self.told += 1;
        self.parts.push(wire::event(event));
    }

    /// A message up to the end of its text.
    fn text(&mut self, reply: &Reply, index: usize, item: &Value) {
        let mut begun = item.clone();
        begun["status"] = "in_progress".into();
        begun["content"] = json!([]);
        self.tell("response.output_item.added", json!({"output_index": index, "item": begun}));
        let place = json!({"item_id": item["id"], "output_index": index, "content_index": 0});
        let with = |name: &str, value: Value| {
            let mut event = place.clone();
            event[name] = value;
            event
        };
        let part = &item["content"][0];
        let empty = json!({"type": "output_text", "text": "", "annotations": []});
        self.tell("response.content_part.added", with("part", empty));
        let text = part["text"].as_str().unwrap_or_default();
        for word in text.split_inclusive(' ') {
            if let Reply::Slow { pause_ms, .. } = reply {
                self.parts.push(Part::Pause(Duration::from_millis(*pause_ms)));
            }
            self.tell("response.output_text.delta", with("delta", word.into()));
        }
        if !matches!(reply, Reply::Broken(_)) {
            self.tell("response.output_text.done", with("text", text.into()));
            self.tell("response.content_part.done", with("part", part.clone()));
        }
    }

    /// A call up to the end of its arguments.
    fn call(&mut self, index: usize, item: &Value) {
        let mut begun = item.clone();
        begun["status"] = "in_progress".into();
        begun["arguments"] = "".into();
        self.tell("response.output_item.added", json!({"output_index": index, "item": begun}));
        let place = json!({"item_id": item["id"], "output_index": index});
        let (mut delta, mut done) = (place.clone(), place);
        delta["delta"] = item["arguments"].clone();
        done["arguments"] = item["arguments"].clone();
        self.tell("response.function_call_arguments.delta", delta);
        self.tell("response.function_call_arguments.done", done);
    }

    fn broken(&mut self, breaks: Break, mut response: Value) {
        let begin = "event: response.output_text.delta\ndata: {";
        match breaks {
            Break::Cut => {
                self.parts.extend([Part::Bytes(format!("{begin}\"type\": \"resp")), Part::Cut]);
            }
            Break::Silence => {
                self.parts.extend([Part::Bytes(format!("{begin}\"type\": \"resp")), Part::Silence]);
            }
            Break::Garbage => self.parts.push(Part::Bytes(format!("{begin}not json\n\n"))),
            Break::Overloaded => {
                let error = ApiError::new(529, "server_is_overloaded", "overloaded");
                response["status"] = "failed".into();
                response["error"] = json!({"code": error.kind, "message": error.message});
                self.tell("response.failed", json!({"response": response}));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(reply: &Reply) -> Vec<String> {
        let response = answer(reply, &Conversation::default(), Usage::default(), 1, true);
        let kind = |part: &Part| match part {
            Part::Bytes(text) => {
                let line = text.lines().next().unwrap_or_default();
                line.trim_start_matches("event: ").trim_start_matches("response.").to_owned()
            }
            other => format!("{other:?}"),
        };
        response.parts.iter().map(kind).collect()
    }

    const BEGIN: [&str; 3] = ["created", "in_progress", "output_item.added"];
    const TEXT: [&str; 2] = ["content_part.added", "output_text.delta"];
    const END: [&str; 2] = ["output_item.done", "completed"];

    #[test]
    fn an_answer_is_a_row_of_events() {
        let done = ["output_text.done", "content_part.done"];
        let text = [&BEGIN[..], &TEXT, &done, &END].concat();
        assert_eq!(kinds(&Reply::text("hello")), text);
        let arguments = ["function_call_arguments.delta", "function_call_arguments.done"];
        let call = [&BEGIN[..], &arguments, &END].concat();
        assert_eq!(kinds(&Reply::call("f", json!({}))), call);
        let slow = Reply::Slow { text: "a b".into(), pause_ms: 2 };
        let words = ["content_part.added", "Pause(2ms)", TEXT[1], "Pause(2ms)", TEXT[1]];
        assert_eq!(kinds(&slow), [&BEGIN[..], &words, &done, &END].concat());
        assert_eq!(kinds(&Reply::Hang), ["Silence"]);
    }

    #[test]
    fn a_stream_breaks_in_its_middle() {
        for (breaks, rest) in [
            (Break::Cut, &["output_text.delta", "Cut"][..]),
            (Break::Silence, &["output_text.delta", "Silence"]),
            (Break::Garbage, &["output_text.delta"]),
            (Break::Overloaded, &["failed"]),
        ] {
            let expected = [&BEGIN[..], &["content_part.added"; 1]].concat();
            let words = ["output_text.delta"; 2];
            assert_eq!(kinds(&Reply::Broken(breaks)), [&expected, &words[..], rest].concat());
        }
    }

    #[test]
    fn without_a_stream_the_answer_is_one_value() {
        let usage = Usage { input: 3, output: 4, cache_read: 2, cache_write: 0 };
        let conversation = Conversation { prompt: "x".into(), ..Conversation::default() };
        let call = Reply::call("mcp__s.f", json!({"task": "{{prompt}}"}));
        let response = answer(&call, &conversation, usage, 7, false);
        let [Part::Bytes(text)] = &response.parts[..] else { panic!("{response:?}") };
        let whole: Value = serde_json::from_str(text).expect("JSON");
        let call = &whole["output"][0];
        assert_eq!((&call["namespace"], &call["name"]), (&"mcp__s".into(), &"f".into()));
        assert_eq!(call["arguments"], r#"{"task":"x"}"#);
        assert_eq!(whole["usage"]["input_tokens"], 5);
        assert_eq!(whole["usage"]["total_tokens"], 9);
    }

    #[test]
    fn an_error_is_told_as_openai_does() {
        let response =
            answer(&Reply::unauthorized(), &Conversation::default(), Usage::default(), 1, true);
        assert_eq!(response.status, 401);
        let [Part::Bytes(text)] = &response.parts[..] else { panic!("{response:?}") };
        assert!(text.contains(r#""type":"authentication_error""#), "{text}");
    }
}
