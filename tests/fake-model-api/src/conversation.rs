//! What a request says, as far as rules look at it.

use serde_json::Value;

mod gemini;
mod responses;

/// One request for a further message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conversation {
    /// The model that is asked.
    pub model: String,
    /// All system text: that of its own field, then what stands among the messages.
    pub system: String,
    /// The names of the tools on offer.
    pub tools: Vec<String>,
    /// What the user said last. Reminders that the client adds are not part of it.
    pub prompt: String,
    /// What the tools answered that were called last, in order.
    pub tool_results: Vec<String>,
    /// Which prompt of the conversation this is about; 1 for the first.
    pub turn: usize,
    /// Which answer to this prompt is asked for; 1 for the first, one more after each round of tools.
    pub step: usize,
}

/// Clients put their own words among those of the user, inside one of these elements.
const REMINDERS: [&str; 3] = ["<system-reminder>", "<environment_context>", "<session_context>"];

impl Conversation {
    /// Reads the body of a request, for a message or for a chat. What is missing or of another shape counts as empty.
    pub fn of(body: &Value) -> Self {
        let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let mut found = Self {
            model: body["model"].as_str().unwrap_or_default().to_owned(),
            system: texts(&body["system"]).join("\n"),
            tools: body["tools"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|tool| {
                    let name = tool["name"].as_str().or_else(|| tool["function"]["name"].as_str());
                    Some(name?.to_owned())
                })
                .collect(),
            ..Self::default()
        };
        for message in messages {
            let content = &message["content"];
            match message["role"].as_str() {
                Some("assistant") => found.answered(),
                Some("system") => found.instructed(&texts(content)),
                // Of a chat, where each result is a message.
                Some("tool") => found.tool_results.push(texts(content).join("\n")),
                _ => {
                    found.tool_results.extend(tool_results(content));
                    let said = texts(content).into_iter().filter(|text| !is_reminder(text));
                    found.said(said.collect());
                }
            }
        }
        found.step += 1;
        found
    }

    /// Adds to the system prompt.
    fn instructed(&mut self, texts: &[String]) {
        self.system.push('\n');
        self.system.push_str(&texts.join("\n"));
    }

    /// Counts an answer of the model.
    fn answered(&mut self) {
        self.step += 1;
        self.tool_results.clear();
    }

    /// Takes what the user said, if that was anything.
    fn said(&mut self, texts: Vec<String>) {
        if !texts.is_empty() {
            self.prompt = texts.join("\n");
            self.turn += 1;
            self.step = 0;
        }
    }
}

fn is_reminder(text: &str) -> bool {
    let text = text.trim_start();
    text.is_empty() || REMINDERS.iter().any(|reminder| text.starts_with(reminder))
}

/// The text of a content: a string, or blocks of which some are text.
fn texts(content: &Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![text.clone()],
        Value::Array(blocks) => {
            blocks.iter().filter_map(|block| Some(block["text"].as_str()?.to_owned())).collect()
        }
        _ => Vec::new(),
    }
}

fn tool_results(content: &Value) -> Vec<String> {
    let blocks = content.as_array().map_or(&[][..], Vec::as_slice);
    let results = blocks.iter().filter(|block| block["type"] == "tool_result");
    results.map(|result| texts(&result["content"]).join("\n")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_first_request() {
        let found = Conversation::of(&json!({
            "model": "m",
            "system": [{"type": "text", "text": "be"}, {"type": "text", "text": "brief"}],
            "tools": [{"name": "Bash"}, {"name": "Read"}],
            "messages": [
                {"role": "user", "content": [
                    {"type": "text", "text": "<system-reminder>\nnot said\n</system-reminder>"},
                    {"type": "text", "text": "count"},
                ]},
                {"role": "system", "content": "here"},
            ],
        }));
        let expected = Conversation {
            model: "m".into(),
            system: "be\nbrief\nhere".into(),
            tools: vec!["Bash".into(), "Read".into()],
            prompt: "count".into(),
            tool_results: Vec::new(),
            turn: 1,
            step: 1,
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_chat_says_the_same() {
        let found = Conversation::of(&json!({
            "model": "m",
            "tools": [{"type": "function", "function": {"name": "f"}}],
            "messages": [
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": "count"},
                {"role": "assistant", "content": null, "tool_calls": [{"id": "a"}, {"id": "b"}]},
                {"role": "tool", "tool_call_id": "a", "content": "one"},
                {"role": "tool", "tool_call_id": "b", "content": "two"},
            ],
        }));
        let expected = Conversation {
            model: "m".into(),
            system: "\nbe brief".into(),
            tools: vec!["f".into()],
            prompt: "count".into(),
            tool_results: vec!["one".into(), "two".into()],
            turn: 1,
            step: 2,
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn tools_and_turns_are_counted() {
        let used = json!({"role": "assistant", "content": [{"type": "tool_use", "name": "t"}]});
        let result = json!({"role": "user", "content": [
            {"type": "tool_result", "content": "one"},
            {"type": "tool_result", "content": [{"type": "text", "text": "two"}]},
        ]});
        let said = |text| json!({"role": "user", "content": text});
        let check = |messages: Value, turn, step, prompt: &str, results: &[&str]| {
            let found = Conversation::of(&json!({ "messages": messages }));
            assert_eq!((found.turn, found.step), (turn, step), "{messages}");
            assert_eq!(found.prompt, prompt, "{messages}");
            assert_eq!(found.tool_results, results, "{messages}");
        };
        check(json!([said("a")]), 1, 1, "a", &[]);
        check(json!([said("a"), used, result]), 1, 2, "a", &["one", "two"]);
        check(json!([said("a"), used, result, used, result]), 1, 3, "a", &["one", "two"]);
        check(json!([said("a"), used, result, used, said("b")]), 2, 1, "b", &[]);
        check(json!([]), 0, 1, "", &[]);
    }
}
