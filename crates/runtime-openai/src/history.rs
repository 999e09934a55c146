//! The conversation so far, in the protocol's words. Pure.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::reply::{Call, Reply};

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum Message {
    /// The system prompt.
    System {
        /// The text.
        content: Arc<str>,
    },
    /// A prompt.
    User {
        /// The text.
        content: Arc<str>,
    },
    /// An answer of the model, and its calls of tools.
    Assistant {
        /// The text; null where it said nothing.
        content: Option<Arc<str>>,
        /// The calls.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall>,
    },
    /// The answer of a tool.
    Tool {
        /// Of which call.
        tool_call_id: Arc<str>,
        /// The answer.
        content: Arc<str>,
    },
}

/// A call as it stands in a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ToolCall {
    id: Arc<str>,
    r#type: &'static str,
    function: Function,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Function {
    name: String,
    arguments: String,
}

/// A conversation.
#[derive(Clone, Debug)]
pub(crate) struct History {
    pub(crate) messages: Vec<Message>,
    /// The position of the prompt of the current turn.
    turn: usize,
    /// The text of that prompt, before a summary was put behind it.
    prompt: Arc<str>,
    /// The tokens of the first so many messages, from the last answer that said so.
    counted: Option<(u64, usize)>,
}

/// Bytes of text to a token, where the endpoint gave no count: near enough to see a limit coming.
const BYTES_PER_TOKEN: u64 = 4;

impl History {
    pub(crate) fn new(system: Option<String>, prompt: String) -> Self {
        let system = system.map(|content| Message::System { content: content.into() });
        let mut history = Self {
            messages: system.into_iter().collect(),
            turn: 0,
            prompt: "".into(),
            counted: None,
        };
        history.begin_turn(prompt);
        history
    }

    /// A further prompt.
    pub(crate) fn begin_turn(&mut self, prompt: String) {
        self.turn = self.messages.len();
        self.prompt = prompt.into();
        self.messages.push(Message::User { content: Arc::clone(&self.prompt) });
    }

    /// Something that was sent into the turn that is under way.
    pub(crate) fn say(&mut self, letter: Arc<str>) {
        self.messages.push(Message::User { content: letter });
    }

    /// Adds the answer of the model.
    pub(crate) fn answered(&mut self, reply: &Reply) {
        let content = (!reply.text.is_empty()).then(|| reply.text.as_str().into());
        let tool_calls = reply.calls.iter().map(ToolCall::of).collect();
        self.messages.push(Message::Assistant { content, tool_calls });
        self.counted =
            reply.usage.map(|usage| (usage.context(), self.messages.len())).or(self.counted);
    }

    /// Adds the answer of a tool.
    pub(crate) fn tool_answered(&mut self, call: &Call, answer: String) {
        let tool_call_id = call.id.as_str().into();
        self.messages.push(Message::Tool { tool_call_id, content: answer.into() });
    }

    /// Returns the number of tokens: counted as far as the service did, else estimated.
    pub(crate) fn tokens(&self) -> u64 {
        let (tokens, counted) = self.counted.unwrap_or_default();
        let bytes: u64 = self.messages[counted..].iter().map(Message::bytes).sum();
        tokens.saturating_add(bytes.div_ceil(BYTES_PER_TOKEN))
    }

    /// Returns the messages that a summary would replace: all before the prompt that is still to be answered. Empty where there
    /// are none.
    pub(crate) fn to_sum_up(&self) -> &[Message] {
        let end = if self.is_unanswered() { self.turn } else { self.messages.len() };
        let past = &self.messages[..end];
        let has_answer = past.iter().any(|message| matches!(message, Message::Assistant { .. }));
        if has_answer { past } else { &[] }
    }

    /// Puts a summary in the place of what it stands for; the prompt stays as it was.
    pub(crate) fn sum_up(&mut self, summary: &str) {
        let prompt = &self.prompt;
        let text = if self.is_unanswered() {
            format!("What was said before, summed up by you:\n{summary}\n\nNow:\n{prompt}")
        } else {
            format!(
                "{prompt}\n\nWhat you have done about this so far, summed up by you:\n{summary}"
            )
        };
        let system = |message: &Message| matches!(message, Message::System { .. });
        self.messages.retain(system);
        self.turn = self.messages.len();
        self.messages.push(Message::User { content: text.into() });
        self.counted = None;
    }

    fn is_unanswered(&self) -> bool {
        self.turn + 1 == self.messages.len()
    }
}

impl Message {
    fn bytes(&self) -> u64 {
        let length = match self {
            Self::System { content } | Self::User { content } | Self::Tool { content, .. } => {
                content.len()
            }
            Self::Assistant { content, tool_calls } => {
                let calls = tool_calls
                    .iter()
                    .map(|call| call.function.arguments.len() + call.function.name.len());
                content.as_ref().map_or(0, |content| content.len()) + calls.sum::<usize>()
            }
        };
        length as u64
    }
}

impl ToolCall {
    fn of(call: &Call) -> Self {
        // Some endpoints read the arguments of earlier calls, and fail on what is no JSON.
        let valid =
            serde_json::from_str::<Value>(&call.arguments).is_ok_and(|value| value.is_object());
        let arguments = if valid { call.arguments.clone() } else { "{}".to_owned() };
        let function = Function { name: call.name.clone(), arguments };
        Self { id: call.id.as_str().into(), r#type: "function", function }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::chunk::{Chunk, parse};

    fn reply(message: Value, tokens: Option<u64>) -> Reply {
        let usage = tokens.map(|tokens| json!({"prompt_tokens": tokens, "completion_tokens": 0}));
        let line =
            json!({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage});
        let Chunk::Delta(delta) = parse(&line.to_string()) else { panic!("{line}") };
        let mut reply = Reply::default();
        reply.take(delta).expect("the answer is too long");
        reply.end(true).expect("the answer is not whole")
    }

    fn call(arguments: &str) -> Reply {
        let call = json!({"id": "a", "function": {"name": "f", "arguments": arguments}});
        reply(json!({"content": null, "tool_calls": [call]}), None)
    }

    fn say(text: &str) -> Reply {
        reply(json!({ "content": text }), None)
    }

    #[track_caller]
    fn check(history: &History, expected: Value) {
        assert_eq!(serde_json::to_value(&history.messages).expect("messages"), expected);
    }

    #[test]
    fn a_conversation_with_tools() {
        let mut history = History::new(Some("be".into()), "go".into());
        let called = call(r#"{"x":1}"#);
        history.answered(&called);
        history.tool_answered(&called.calls[0], "done".into());
        history.answered(&say("ok"));
        check(
            &history,
            json!([
                {"role": "system", "content": "be"},
                {"role": "user", "content": "go"},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"x\":1}"}}
                ]},
                {"role": "tool", "tool_call_id": "a", "content": "done"},
                {"role": "assistant", "content": "ok"},
            ]),
        );
    }

    #[test]
    fn arguments_that_are_no_json_do_not_go_back() {
        for (arguments, expected) in
            [(r#"{"x":"#, "{}"), ("[1]", "{}"), ("", "{}"), (r#"{"a":2}"#, r#"{"a":2}"#)]
        {
            let mut history = History::new(None, "go".into());
            history.answered(&call(arguments));
            let Some(Message::Assistant { tool_calls, .. }) = history.messages.last() else {
                panic!("{history:?}")
            };
            assert_eq!(tool_calls[0].function.arguments, expected);
        }
    }

    #[test]
    fn what_it_takes_up() {
        let mut history = History::new(Some("12345678".into()), "1234".into());
        assert_eq!(history.tokens(), 3);
        history.answered(&reply(json!({"content": "x"}), Some(50)));
        assert_eq!(history.tokens(), 50, "as the service counted");
        history.begin_turn("12345".into());
        assert_eq!(history.tokens(), 52);
        history.answered(&reply(json!({"content": "1234"}), None));
        assert_eq!(history.tokens(), 53);
    }

    #[test]
    fn a_summary_in_the_middle_of_a_turn() {
        let mut history = History::new(Some("be".into()), "go".into());
        assert!(history.to_sum_up().is_empty(), "there is nothing to sum up yet");
        for summary in ["S1", "S2"] {
            let called = call("{}");
            history.answered(&called);
            history.tool_answered(&called.calls[0], "long".into());
            assert_eq!(history.to_sum_up().len(), 4);
            history.sum_up(summary);
        }
        check(
            &history,
            json!([
                {"role": "system", "content": "be"},
                {"role": "user", "content":
                    "go\n\nWhat you have done about this so far, summed up by you:\nS2"},
            ]),
        );
    }

    #[test]
    fn a_summary_before_a_turn() {
        let mut history = History::new(None, "one".into());
        history.answered(&say("first"));
        history.begin_turn("two".into());
        assert_eq!(history.to_sum_up().len(), 2);
        history.sum_up("S");
        let text = "What was said before, summed up by you:\nS\n\nNow:\ntwo";
        check(&history, json!([{"role": "user", "content": text}]));
        assert!(history.to_sum_up().is_empty());
    }
}
