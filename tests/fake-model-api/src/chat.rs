//! Replies as a chat endpoint gives them. Pure.

use std::time::Duration;

use serde_json::{Value, json};

use crate::template::{fill, fill_value};
use crate::wire::{self, Part, Response, json_of, stream_of};
use crate::{ApiError, Break, Conversation, Reply, Usage};

/// Streams are cut into pieces of so many bytes: few enough to fall into the middle of most lines and many characters.
const PIECE: usize = 7;

/// Arguments of calls come in fragments of so many characters.
const FRAGMENT: usize = 5;

/// The response to a request for a further message of a chat.
pub(crate) fn answer(
    reply: &Reply,
    conversation: &Conversation,
    usage: Usage,
    serial: usize,
    stream: bool,
    says_usage: bool,
) -> Response {
    match reply {
        Reply::Error(wrong) => return error(wrong),
        Reply::Hang => return Response { parts: vec![Part::Silence], ..stream_of(Vec::new()) },
        _ => {}
    }
    let chat = Chat { reply, conversation, serial };
    let used = json!({
        "prompt_tokens": usage.input + usage.cache_read,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.cache_read + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
    });
    if !stream {
        let mut whole = chat.chunk(Value::Null, Some(chat.finish()));
        whole["choices"][0]["message"] = chat.message();
        whole["usage"] = used;
        return json_of(200, &whole);
    }
    let mut parts = chat.begin();
    match reply {
        Reply::Broken(breaks) => parts.extend(break_parts(*breaks)),
        _ => {
            parts.extend(pieces(&chat.chunk(json!({}), Some(chat.finish()))));
            if says_usage {
                let mut last = chat.chunk(json!({}), None);
                last["choices"] = json!([]);
                last["usage"] = used;
                parts.extend(pieces(&last));
            }
            parts.push(Part::Bytes("data: [DONE]\n\n".to_owned()));
        }
    }
    stream_of(parts)
}

struct Chat<'r> {
    reply: &'r Reply,
    conversation: &'r Conversation,
    serial: usize,
}

impl Chat<'_> {
    fn finish(&self) -> &'static str {
        if matches!(self.reply, Reply::Calls(_)) { "tool_calls" } else { "stop" }
    }

    fn text(&self) -> String {
        match self.reply {
            Reply::Text(text) | Reply::Slow { text, .. } => fill(text, self.conversation),
            Reply::Broken(_) => "half of".to_owned(),
            Reply::Calls(_) | Reply::Error(_) | Reply::Hang => String::new(),
        }
    }

    fn calls(&self) -> Vec<Value> {
        let Reply::Calls(calls) = self.reply else { return Vec::new() };
        let serial = self.serial;
        let call = |(index, call): (usize, &crate::ToolCall)| {
            let arguments = fill_value(&call.input, self.conversation).to_string();
            json!({
                "index": index,
                "id": format!("call_{serial:04}_{index}"),
                "type": "function",
                "function": {"name": call.name, "arguments": arguments},
            })
        };
        calls.iter().enumerate().map(call).collect()
    }

    fn message(&self) -> Value {
        let mut message = json!({"role": "assistant", "content": self.text()});
        if let calls @ [_, ..] = &self.calls()[..] {
            message["content"] = Value::Null;
            message["tool_calls"] = calls.into();
        }
        message
    }

    fn chunk(&self, delta: Value, finish: Option<&str>) -> Value {
        json!({
            "id": format!("chatcmpl-{:04}", self.serial),
            "object": "chat.completion.chunk",
            "created": 0,
            "model": self.conversation.model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        })
    }

    /// All but the end.
    fn begin(&self) -> Vec<Part> {
        let mut parts = vec![Part::Bytes(": the model is loaded\n\n".to_owned())];
        let delta = |delta| pieces(&self.chunk(delta, None));
        parts.extend(delta(json!({"role": "assistant", "content": ""})));
        let text = self.text();
        for word in text.split_inclusive(' ') {
            if let Reply::Slow { pause_ms, .. } = self.reply {
                parts.push(Part::Pause(Duration::from_millis(*pause_ms)));
            }
            parts.extend(delta(json!({ "content": word })));
        }
        for mut call in self.calls() {
            let arguments = call["function"]["arguments"].take();
            let arguments: Vec<_> = arguments.as_str().unwrap_or_default().chars().collect();
            call["function"]["arguments"] = "".into();
            let index = call["index"].clone();
            parts.extend(delta(json!({"tool_calls": [call]})));
            for fragment in arguments.chunks(FRAGMENT) {
                let fragment: String = fragment.iter().collect();
                let bit = json!({"index": index, "function": {"arguments": fragment}});
                parts.extend(delta(json!({"tool_calls": [bit]})));
            }
        }
        parts
    }
}

fn pieces(data: &Value) -> Vec<Part> {
    let event = format!("data: {data}\n\n").into_bytes();
    event.chunks(PIECE).map(|piece| Part::Piece(piece.to_vec())).collect()
}

fn break_parts(breaks: Break) -> Vec<Part> {
    let half = || Part::Bytes("data: {\"choices\": [{\"del".to_owned());
    match breaks {
        Break::Cut => vec![half(), Part::Cut],
        Break::Silence => vec![half(), Part::Silence],
        Break::Garbage => vec![Part::Bytes("data: {not json\n\n".to_owned())],
        Break::Overloaded => {
            pieces(&error_json(&ApiError::new(529, "overloaded_error", "overloaded")))
        }
    }
}

/// An error of the service, in the words of OpenAI's protocols.
pub(crate) fn error(error: &ApiError) -> Response {
    Response { parts: vec![Part::Bytes(error_json(error).to_string())], ..wire::error(error) }
}

fn error_json(error: &ApiError) -> Value {
    json!({"error": {"message": error.message, "type": error.kind, "code": error.status}})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(response: &Response) -> String {
        let bytes = response.parts.iter().flat_map(|part| match part {
            Part::Bytes(text) => text.as_bytes().to_vec(),
            Part::Piece(bytes) => bytes.clone(),
            other => format!("{other:?}").into_bytes(),
        });
        String::from_utf8(bytes.collect()).expect("whole again")
    }

    fn stream(reply: &Reply, says_usage: bool) -> Vec<Value> {
        let conversation = Conversation::default();
        let response = answer(reply, &conversation, Usage::default(), 1, true, says_usage);
        let text = text_of(&response);
        let data = text.lines().filter_map(|line| line.strip_prefix("data: {"));
        data.map(|data| serde_json::from_str(&format!("{{{data}")).expect("an event is JSON"))
            .collect()
    }

    #[test]
    fn text_comes_in_words_and_arguments_in_fragments() {
        let events = stream(&Reply::text("grüße an alle"), true);
        let words: Vec<_> = events
            .iter()
            .filter_map(|event| event["choices"][0]["delta"]["content"].as_str())
            .collect();
        assert_eq!(words, ["", "grüße ", "an ", "alle"]);
        assert_eq!(events[4]["choices"][0]["finish_reason"], "stop");
        assert_eq!(events[5]["usage"]["completion_tokens"], 5);
        let events = stream(&Reply::call("f", json!({"task": "x"})), false);
        let fragments: Vec<_> = events
            .iter()
            .filter_map(|event| {
                event["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"].as_str()
            })
            .collect();
        assert_eq!(fragments, ["", "{\"tas", "k\":\"x", "\"}"]);
        assert_eq!(events.last().expect("some")["choices"][0]["finish_reason"], "tool_calls");
    }

    #[test]
    fn without_a_stream_the_answer_is_one_value() {
        let call = Reply::call("f", json!({}));
        let response = answer(&call, &Conversation::default(), Usage::default(), 7, false, false);
        let whole: Value = serde_json::from_str(&text_of(&response)).expect("JSON");
        assert_eq!(whole["choices"][0]["message"]["tool_calls"][0]["id"], "call_0007_0");
        assert_eq!(whole["usage"]["prompt_tokens"], 10);
    }

    #[test]
    fn errors_and_breaks() {
        let check = |reply: &Reply, end: &str| {
            let response = answer(reply, &Conversation::default(), Usage::default(), 1, true, true);
            let text = text_of(&response);
            assert!(text.ends_with(end), "{reply:?}: {text}");
        };
        check(&Reply::overloaded(), r#""type":"overloaded_error","code":529}}"#);
        check(&Reply::Broken(Break::Cut), "\"delCut");
        check(&Reply::Broken(Break::Silence), "\"delSilence");
        check(&Reply::Broken(Break::Garbage), "{not json\n\n");
        check(&Reply::Broken(Break::Overloaded), "\"code\":529}}\n\n");
        check(&Reply::Hang, "Silence");
    }
}
