//! One answer of the model, put together from its bits. Pure.

use offshoot_model::ToolUse;
use offshoot_runtime::Secrets;
use serde_json::Value;

use crate::chunk::{CallDelta, Delta};
use crate::failure::Failure;
use crate::meter::Tokens;

/// An answer, as far as it has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// The text of the answer.
    pub text: String,
    /// Tools that it calls, in its order.
    pub calls: Vec<Call>,
    /// The reason why it ended, in the endpoint's words; none while it continues.
    pub finish: Option<String>,
    /// The usage of the call, where the endpoint reports it.
    pub usage: Option<Tokens>,
}

/// One call of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The name that its result goes by.
    pub id: String,
    /// The tool.
    pub name: String,
    /// JSON, if the model got it right.
    pub arguments: String,
    /// The place that the endpoint gave it.
    index: Option<u64>,
}

impl Call {
    /// The use of the tool, as it is told, without these secrets. Arguments that are no JSON are told as a text.
    pub(crate) fn used(&self, secrets: &Secrets) -> ToolUse {
        let arguments = serde_json::from_str(&self.arguments);
        secrets.tool_use(&self.name, arguments.unwrap_or_else(|_| Value::from(&*self.arguments)))
    }
}

/// An answer beyond this is no answer; an endpoint that never ends must not take the memory of the tree.
const LONGEST: usize = 64 * 1024 * 1024;

impl Reply {
    /// Takes a further bit.
    pub fn take(&mut self, delta: Delta) -> Result<(), Failure> {
        let Delta { text, calls, finish, usage, odd_usage: _ } = delta;
        self.text.push_str(&text);
        calls.into_iter().for_each(|call| self.take_call(call));
        self.finish = finish.or(self.finish.take());
        self.usage = usage.or(self.usage.take());
        if self.size() > LONGEST { Err(Failure::TooLong) } else { Ok(()) }
    }

    /// Returns the number of its bytes that have come.
    pub(crate) fn size(&self) -> usize {
        let of_calls = self.calls.iter().map(|call| call.name.len() + call.arguments.len());
        self.text.len() + of_calls.sum::<usize>()
    }

    /// The answer, now that nothing more comes. `done` is whether the endpoint said so.
    pub fn end(mut self, done: bool) -> Result<Self, Failure> {
        match self.finish.as_deref() {
            None if !done => return Err(Failure::Cut { source: None }),
            None if self.text.is_empty() && self.calls.is_empty() => return Err(Failure::Nothing),
            Some("length") => return Err(Failure::Length),
            Some("content_filter") => return Err(Failure::Filtered),
            _ => {}
        }
        for (number, call) in (1..).zip(&mut self.calls) {
            if call.id.is_empty() {
                call.id = format!("call_{number}");
            }
        }
        Ok(self)
    }

    fn take_call(&mut self, delta: CallDelta) {
        let CallDelta { index, id, name, arguments } = delta;
        let known = match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index),
            // Without a place it belongs to the call before, unless it begins one.
            None if name.is_none() => self.calls.len().checked_sub(1),
            None => None,
        };
        // Where each call has place 0, a second name or another id tells them apart.
        let known = known.filter(|&known| {
            let call = &self.calls[known];
            let other_id = id.as_ref().is_some_and(|id| *id != call.id && !call.id.is_empty());
            !(other_id && name.is_some())
        });
        let call = match known {
            Some(known) => &mut self.calls[known],
            None => {
                self.calls.push(Call { index, ..Call::default() });
                self.calls.last_mut().expect("one was just put there")
            }
        };
        if let Some(id) = id {
            call.id = id;
        }
        if let Some(name) = name {
            call.name = name;
        }
        call.arguments.push_str(&arguments);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::chunk::{Chunk, parse};

    fn reply(lines: &[&str]) -> Reply {
        let mut reply = Reply::default();
        for line in lines {
            let Chunk::Delta(delta) = parse(line) else { panic!("{line}") };
            reply.take(delta).expect("the answer is too long");
        }
        reply
    }

    fn calls(bits: &[&str]) -> Vec<(String, String, String)> {
        let lines: Vec<_> = bits
            .iter()
            .map(|bit| format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{bit}]}}}}]}}"#))
            .collect();
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        let reply = reply(&lines).end(true).expect("the answer is not whole");
        reply.calls.into_iter().map(|call| (call.id, call.name, call.arguments)).collect()
    }

    fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
        (id.into(), name.into(), arguments.into())
    }

    #[test]
    fn arguments_come_in_fragments() {
        let found = calls(&[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":""}}"#,
            r#"{"index":0,"function":{"arguments":"{\"x\""}}"#,
            r#"{"index":1,"id":"b","function":{"name":"g","arguments":"{"}}"#,
            r#"{"index":0,"function":{"arguments":":1}"}}"#,
            r#"{"index":1,"function":{"arguments":"}"}}"#,
        ]);
        assert_eq!(found, [call("a", "f", r#"{"x":1}"#), call("b", "g", "{}")]);
    }

    #[test]
    fn calls_that_all_have_place_0_are_told_apart() {
        let found = calls(&[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}"#,
            r#"{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}"#,
        ]);
        assert_eq!(found, [call("a", "f", "{}"), call("b", "f", "{}")]);
        // Some repeat name and id with each bit.
        let found = calls(&[
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}"#,
            r#"{"index":0,"id":"a","function":{"name":"f","arguments":"}"}}"#,
        ]);
        assert_eq!(found, [call("a", "f", "{}")]);
    }

    #[test]
    fn calls_without_place_or_id() {
        let found = calls(&[
            r#"{"function":{"name":"f","arguments":"{"}}"#,
            r#"{"function":{"arguments":"}"}}"#,
            r#"{"function":{"name":"g","arguments":{"a":1}}}"#,
        ]);
        assert_eq!(found, [call("call_1", "f", "{}"), call("call_2", "g", r#"{"a":1}"#)]);
    }

    #[test]
    fn an_answer_ends_when_its_endpoint_says_so() {
        let said = |finish: &str| {
            let line = format!(
                r#"{{"choices":[{{"delta":{{"content":"a"}},"finish_reason":{finish}}}]}}"#
            );
            reply(&[&line])
        };
        for (reply, done, expected) in [
            (said("null"), true, "a"),
            (said("\"stop\""), false, "a"),
            (said("\"eos\""), false, "a"),
            (said("null"), false, "the answer broke off"),
            (
                said("\"length\""),
                true,
                "the model came to the end of its tokens before that of its answer",
            ),
            (said("\"content_filter\""), true, "the service held the answer back"),
        ] {
            let found = reply.clone().end(done);
            let found = found.map_or_else(|failure| failure.to_string(), |reply| reply.text);
            assert_eq!(found, expected, "{reply:?} {done}");
        }
    }

    proptest! {
        /// Property: whatever an endpoint sends, no part of it is lost, and none of it makes the parser panic.
        #[test]
        fn bits_in_any_order_are_put_together(
            bits in prop::collection::vec(
                ("[a-zé]{0,3}", prop::option::of(0_u64..3), prop::option::of("[xy]"), prop::option::of("f|g")),
                0..20,
            ),
        ) {
            let mut reply = Reply::default();
            for (text, index, id, name) in &bits {
                let call = CallDelta { index: *index, id: id.clone(), name: name.clone(), arguments: text.clone() };
                let delta = Delta { text: text.clone(), calls: vec![call], ..Delta::default() };
                reply.take(delta).expect("the answer is too long");
            }
            let all: String = bits.iter().map(|(text, ..)| text.as_str()).collect();
            prop_assert_eq!(&reply.text, &all);
            if bits.is_empty() {
                prop_assert!(reply.end(true).is_err(), "nothing is no answer");
                return Ok(());
            }
            let reply = reply.end(true).expect("it says that it is over");
            let arguments: usize = reply.calls.iter().map(|call| call.arguments.len()).sum();
            prop_assert_eq!(arguments, all.len());
            prop_assert!(reply.calls.iter().all(|call| !call.id.is_empty()));
        }

        #[test]
        fn no_event_is_a_bug(data in "[\\[\\]{}\":,a-z0-9 ]{0,60}") {
            let _ = parse(&data);
            let _ = parse(&format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{data}]}}}}],"usage":{{}}}}"#));
        }
    }
}
