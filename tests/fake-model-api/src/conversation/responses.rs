//! What a request of the Responses API says.

use serde_json::Value;

use super::{Conversation, is_reminder, texts};

impl Conversation {
    /// Reads the body of a request for a response. A tool of a namespace is called `{namespace}.{name}`.
    pub(crate) fn of_responses(body: &Value) -> Self {
        let mut found = Self {
            model: body["model"].as_str().unwrap_or_default().to_owned(),
            system: texts(&body["instructions"]).join("\n"),
            tools: body["tools"].as_array().into_iter().flatten().flat_map(names).collect(),
            ..Self::default()
        };
        if let Some(prompt) = body["input"].as_str() {
            found.said(vec![prompt.to_owned()]);
        }
        let items = body["input"].as_array().map_or(&[][..], Vec::as_slice);
        let mut of_model = false;
        for item in items {
            let followed = std::mem::take(&mut of_model);
            let content = || texts(&item["content"]);
            match (item["type"].as_str(), item["role"].as_str()) {
                (Some("function_call_output"), _) => {
                    found.tool_results.push(texts(&item["output"]).join("\n"));
                }
                (_, Some("system" | "developer")) => found.instructed(&content()),
                (_, Some("user")) => {
                    found.said(content().into_iter().filter(|text| !is_reminder(text)).collect());
                }
                // A message, a thought or a call: all that follow each other are one answer.
                _ => {
                    of_model = true;
                    if !followed {
                        found.answered();
                    }
                }
            }
        }
        found.step += 1;
        found
    }
}

fn names(tool: &Value) -> Vec<String> {
    let name = tool["name"].as_str();
    match tool["tools"].as_array() {
        Some(tools) => {
            let within = tools.iter().filter_map(|tool| tool["name"].as_str());
            within.map(|tool| format!("{}.{tool}", name.unwrap_or_default())).collect()
        }
        None => name.map(str::to_owned).into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_of_one_answer_are_one_step() {
        let said = |role: &str, text: &str| json!({"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]});
        let call = json!({"type": "function_call", "name": "f", "arguments": "{}"});
        let result = |output: Value| json!({"type": "function_call_output", "output": output});
        let found = Conversation::of_responses(&json!({
            "model": "m",
            "instructions": "be",
            "tools": [
                {"type": "function", "name": "shell"},
                {"type": "namespace", "name": "mcp__s", "tools": [{"name": "f"}, {"name": "g"}]},
                {"type": "web_search"},
            ],
            "input": [
                said("developer", "brief"),
                said("user", "<environment_context>here</environment_context>"),
                said("user", "count"),
                {"type": "reasoning"}, call,
                result("zero".into()),
                call, call,
                result("one".into()), result(json!([{"type": "input_text", "text": "two"}])),
            ],
        }));
        let expected = Conversation {
            model: "m".into(),
            system: "be\nbrief".into(),
            tools: ["shell", "mcp__s.f", "mcp__s.g"].map(str::to_owned).into(),
            prompt: "count".into(),
            tool_results: vec!["one".into(), "two".into()],
            turn: 1,
            step: 3,
        };
        assert_eq!(found, expected);
        let short = Conversation::of_responses(&json!({"input": "hello"}));
        assert_eq!((short.prompt.as_str(), short.turn, short.step), ("hello", 1, 1));
    }
}
