//! Tools that the provider runs itself, which cost more than tokens. Pure.

use serde_json::Value;

use crate::protocol::Protocol;

/// A tool that the provider runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTool {
    /// The name of its kind, as the request says it.
    pub kind: String,
    /// The most uses; none where the request sets no bound.
    pub uses: Option<u64>,
}

/// Kinds that the program itself runs, by their beginnings: the provider only knows how they are described.
const ANTHROPIC_CLIENT: [&str; 4] = ["bash_", "text_editor_", "computer_", "memory_"];

const OPENAI_CLIENT: [&str; 8] = [
    "function",
    "custom",
    "local_shell",
    "apply_patch",
    "computer",
    "computer_use_preview",
    "namespace",
    "tool_search",
];

const GEMINI_CLIENT: [&str; 3] = ["functionDeclarations", "function_declarations", "computerUse"];

impl ServerTool {
    /// The family by which it has a price.
    pub(crate) fn family(&self) -> &str {
        let families = ["web_search", "web_fetch", "file_search"];
        families.into_iter().find(|family| self.kind.starts_with(family)).unwrap_or(&self.kind)
    }

    pub(crate) fn named(kind: impl Into<String>) -> Self {
        Self { kind: kind.into(), uses: None }
    }

    /// Returns the tools of one entry of the list of tools.
    pub(crate) fn of(protocol: Protocol, tool: &Value) -> Vec<Self> {
        let kind = tool.get("type").and_then(Value::as_str);
        match protocol {
            Protocol::Messages => match kind {
                None | Some("custom") => Vec::new(),
                Some(kind) if ANTHROPIC_CLIENT.iter().any(|client| kind.starts_with(client)) => {
                    Vec::new()
                }
                Some(kind) => vec![Self { kind: kind.to_owned(), uses: tool["max_uses"].as_u64() }],
            },
            Protocol::Responses | Protocol::Chat => match kind {
                Some(kind) if OPENAI_CLIENT.contains(&kind) => {
                    let inner = tool.get("tools").and_then(Value::as_array).into_iter().flatten();
                    inner.flat_map(|tool| Self::of(protocol, tool)).collect()
                }
                Some(kind) => vec![Self::named(kind)],
                None => Vec::new(),
            },
            Protocol::Gemini => {
                let keys = tool.as_object().into_iter().flat_map(|tool| tool.keys());
                let foreign = keys.filter(|key| !GEMINI_CLIENT.contains(&key.as_str()));
                foreign.map(Self::named).collect()
            }
        }
    }
}

/// True for a tool whose description the provider adds by itself, so that it has tokens without bytes.
pub(crate) fn is_described_by_provider(tool: &Value) -> bool {
    tool.get("type").is_some_and(|kind| kind != "custom" && kind != "function")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tools_of_the_provider_are_told_from_those_of_the_program() {
        let check = |protocol, tool: Value, expected: &[(&str, Option<u64>)]| {
            let found = ServerTool::of(protocol, &tool);
            let found: Vec<_> = found.iter().map(|tool| (tool.kind.as_str(), tool.uses)).collect();
            assert_eq!(found, expected, "{tool}");
        };
        use Protocol::{Chat, Gemini, Messages, Responses};
        check(Messages, json!({"name": "f", "input_schema": {}}), &[]);
        check(Messages, json!({"type": "custom", "name": "f"}), &[]);
        check(Messages, json!({"type": "bash_20250124", "name": "bash"}), &[]);
        check(Messages, json!({"type": "text_editor_20250728"}), &[]);
        check(
            Messages,
            json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 5}),
            &[("web_search_20250305", Some(5))],
        );
        check(Messages, json!({"type": "advisor_20260301"}), &[("advisor_20260301", None)]);
        check(
            Messages,
            json!({"type": "code_execution_20250825"}),
            &[("code_execution_20250825", None)],
        );
        check(Responses, json!({"type": "function", "name": "f"}), &[]);
        check(Responses, json!({"type": "web_search"}), &[("web_search", None)]);
        check(Responses, json!({"type": "shell"}), &[("shell", None)]);
        check(Responses, json!({"type": "mcp"}), &[("mcp", None)]);
        check(
            Responses,
            json!({"type": "namespace", "tools": [{"type": "function"}, {"type": "image_generation"}]}),
            &[("image_generation", None)],
        );
        check(Chat, json!({"type": "function", "function": {}}), &[]);
        check(Gemini, json!({"functionDeclarations": []}), &[]);
        check(Gemini, json!({"googleSearch": {}}), &[("googleSearch", None)]);
        check(
            Gemini,
            json!({"functionDeclarations": [], "urlContext": {}}),
            &[("urlContext", None)],
        );
        assert_eq!(ServerTool::named("web_search_20250305").family(), "web_search");
        assert_eq!(ServerTool::named("shell").family(), "shell");
    }
}
