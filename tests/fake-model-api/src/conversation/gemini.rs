//! What a request to Gemini says.

use serde_json::Value;

use super::{Conversation, is_reminder, texts};

impl Conversation {
    /// Reads the body of a request for content of this model.
    pub(crate) fn of_contents(model: &str, body: &Value) -> Self {
        let declared = |tool: &Value| {
            let tools = tool["functionDeclarations"].as_array().cloned().unwrap_or_default();
            tools.into_iter().filter_map(|tool| Some(tool["name"].as_str()?.to_owned()))
        };
        let mut found = Self {
            model: model.to_owned(),
            system: texts(&body["systemInstruction"]["parts"]).join("\n"),
            tools: body["tools"].as_array().into_iter().flatten().flat_map(declared).collect(),
            ..Self::default()
        };
        for content in body["contents"].as_array().into_iter().flatten() {
            if content["role"] == "model" {
                found.answered();
                continue;
            }
            let parts = content["parts"].as_array().map_or(&[][..], Vec::as_slice);
            let responses = parts.iter().filter(|part| part["functionResponse"].is_object());
            found.tool_results.extend(responses.map(|part| result(&part["functionResponse"])));
            let said = texts(&content["parts"]).into_iter().filter(|text| !is_reminder(text));
            found.said(said.collect());
        }
        found.step += 1;
        found
    }
}

/// What a function answered: clients put it into a field, and may add others.
fn result(response: &Value) -> String {
    let response = &response["response"];
    let field = ["output", "error"].into_iter().find_map(|name| response[name].as_str());
    field.map_or_else(|| response.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn contents_say_the_same() {
        let answered = |response: Value| json!({"functionResponse": {"response": response}});
        let found = Conversation::of_contents(
            "m",
            &json!({
                "systemInstruction": {"parts": [{"text": "be brief"}]},
                "tools": [{"functionDeclarations": [{"name": "f"}, {"name": "g"}]}],
                "contents": [
                    {"role": "user", "parts": [
                        {"text": "<session_context>\nhere\n</session_context>"}, {"text": "count"},
                    ]},
                    {"role": "model", "parts": [{"functionCall": {"name": "f"}}]},
                    {"role": "user", "parts": [
                        answered(json!({"output": "one"})), answered(json!({"error": "two"})),
                        answered(json!({"n": 3})),
                    ]},
                ],
            }),
        );
        let expected = Conversation {
            model: "m".into(),
            system: "be brief".into(),
            tools: vec!["f".into(), "g".into()],
            prompt: "count".into(),
            tool_results: vec!["one".into(), "two".into(), r#"{"n":3}"#.into()],
            turn: 1,
            step: 2,
        };
        assert_eq!(found, expected);
    }
}
