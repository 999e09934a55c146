//! Rules: the first that holds says what the model does.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Conversation, Reply, Usage};

/// Rules in their order, with how often each has been used.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Script {
    rules: Vec<Rule>,
    #[serde(skip)]
    used: Vec<u32>,
}

/// What the model does, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rule {
    /// All of them must hold.
    #[serde(default)]
    pub when: Vec<Condition>,
    /// What the model does.
    pub reply: Reply,
    /// The numbers that come with it.
    #[serde(default)]
    pub usage: Usage,
    /// After so many uses the rule holds no longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// The part of the five hours of a subscription that is used, in percent, and the seconds until the reset: told in headers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_used: Option<(u8, u64)>,
}

/// Something about a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Condition {
    /// The prompt contains this.
    Prompt(String),
    /// The system prompt contains this.
    System(String),
    /// The model has exactly this name.
    Model(String),
    /// A tool of this name is on offer.
    Offers(String),
    /// A tool has just answered something that contains this; empty for any answer.
    Result(String),
    /// It is about the n-th prompt.
    Turn(usize),
    /// It asks for the n-th answer to the prompt.
    Step(usize),
    /// That does not hold.
    Not(Box<Self>),
}

impl Script {
    /// These rules.
    pub fn new(rules: impl IntoIterator<Item = Rule>) -> Self {
        Self { rules: rules.into_iter().collect(), used: Vec::new() }
    }

    /// The first rule that holds, by its number. It counts as used.
    pub fn choose(&mut self, conversation: &Conversation) -> Option<(usize, &Rule)> {
        self.used.resize(self.rules.len(), 0);
        let holds = |(rule, used): (&Rule, &u32)| {
            rule.times.is_none_or(|times| *used < times)
                && rule.when.iter().all(|condition| condition.holds(conversation))
        };
        let number = self.rules.iter().zip(&self.used).position(holds)?;
        self.used[number] += 1;
        Some((number, &self.rules[number]))
    }
}

impl Rule {
    /// Holds in every conversation.
    pub fn always(reply: Reply) -> Self {
        Self { when: Vec::new(), reply, usage: Usage::default(), times: None, quota_used: None }
    }

    /// Holds where this does.
    pub fn when(condition: Condition, reply: Reply) -> Self {
        Self::always(reply).and(condition)
    }

    /// Holds only where this does too.
    #[must_use]
    pub fn and(mut self, condition: Condition) -> Self {
        self.when.push(condition);
        self
    }

    /// Holds so many times.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// With headers that say how much of the five hours of a subscription is used, in percent.
    #[must_use]
    pub fn quota_used(mut self, percent: u8, resets_in: Duration) -> Self {
        self.quota_used = Some((percent, resets_in.as_secs()));
        self
    }

    /// With these numbers.
    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }
}

impl Condition {
    /// Whether it holds.
    pub fn holds(&self, conversation: &Conversation) -> bool {
        match self {
            Self::Prompt(text) => conversation.prompt.contains(text),
            Self::System(text) => conversation.system.contains(text),
            Self::Model(name) => conversation.model == *name,
            Self::Offers(tool) => conversation.tools.contains(tool),
            Self::Result(text) => {
                conversation.tool_results.iter().any(|result| result.contains(text))
            }
            Self::Turn(turn) => conversation.turn == *turn,
            Self::Step(step) => conversation.step == *step,
            Self::Not(other) => !other.holds(conversation),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_a_table() {
        let conversation = Conversation {
            model: "m".into(),
            system: "be brief".into(),
            tools: vec!["Bash".into()],
            prompt: "count lines".into(),
            tool_results: vec!["12".into()],
            turn: 1,
            step: 2,
        };
        for (script, expected) in [
            (r#"{"prompt": "lines"}"#, true),
            (r#"{"prompt": "words"}"#, false),
            (r#"{"system": "brief"}"#, true),
            (r#"{"system": "long"}"#, false),
            (r#"{"model": "m"}"#, true),
            (r#"{"model": "mm"}"#, false),
            (r#"{"offers": "Bash"}"#, true),
            (r#"{"offers": "Ba"}"#, false),
            (r#"{"result": ""}"#, true),
            (r#"{"result": "13"}"#, false),
            (r#"{"turn": 1}"#, true),
            (r#"{"turn": 2}"#, false),
            (r#"{"step": 2}"#, true),
            (r#"{"step": 1}"#, false),
            (r#"{"not": {"offers": "Write"}}"#, true),
            (r#"{"not": {"offers": "Bash"}}"#, false),
        ] {
            let condition: Condition = serde_json::from_str(script).expect("a condition");
            assert_eq!(condition.holds(&conversation), expected, "{script}");
        }
    }

    #[test]
    fn the_first_rule_that_holds_and_is_not_used_up() {
        let mut script = Script::new([
            Rule::always(Reply::overloaded()).times(1),
            Rule::when(Condition::Prompt("b".into()), Reply::text("for b")),
            Rule::when(Condition::Step(1), Reply::text("any")).and(Condition::Turn(0)),
        ]);
        let mut choose = |prompt: &str| {
            let conversation =
                Conversation { prompt: prompt.into(), step: 1, ..Conversation::default() };
            script.choose(&conversation).map(|(number, _)| number)
        };
        assert_eq!([choose("a"), choose("a"), choose("b")], [Some(0), Some(2), Some(1)]);
        let elsewhere = Conversation { step: 2, ..Conversation::default() };
        assert_eq!(script.choose(&elsewhere), None);
    }

    #[test]
    fn a_script_is_a_file() {
        let text = r#"{"rules": [
            {"when": [{"prompt": "go"}, {"step": 1}], "times": 1, "usage": {"input": 7},
             "reply": {"calls": [{"name": "Bash", "input": {"command": "ls"}}]}},
            {"reply": {"error": {"status": 529, "kind": "overloaded_error", "message": "x"}}},
            {"reply": {"slow": {"text": "a b", "pauseMs": 5}}},
            {"reply": {"broken": "cut"}},
            {"reply": "hang"}
        ]}"#;
        let script: Script = serde_json::from_str(text).expect("a script");
        let input = serde_json::json!({"command": "ls"});
        let first = Rule::when(Condition::Prompt("go".into()), Reply::call("Bash", input))
            .and(Condition::Step(1))
            .times(1)
            .usage(Usage { input: 7, ..Usage::default() });
        assert_eq!(script.rules[0], first);
        assert_eq!(script.rules[4].reply, Reply::Hang);
    }
}
