//! The tools for people: what each is for and what it takes, from the same schemas that models get.

use std::fmt::Write;

use offshoot_model::JsonText;
use serde_json::Value;

use crate::Options;
use crate::answer::json;
use crate::tool::ToolKind;

/// Of English words and JSON, a token has a little more than four bytes: 4.2 with the tokenizer `o200k_base`, by which these tools
/// were measured once. Whole bytes are near enough to see that the tools have grown, and need no tokenizer.
const BYTES_PER_TOKEN: usize = 4;

/// All tools as a model is told of them: a list of `name`, `description` and `inputSchema`.
pub fn tools_json() -> JsonText {
    json(&for_models().map(ToolKind::definition).collect::<Vec<_>>())
}

/// All tools as Markdown.
pub fn tools_markdown() -> String {
    let size = size();
    let tokens = size.div_ceil(BYTES_PER_TOKEN);
    let mut page = format!(
        "Names, words and schemas together: {size} bytes in each prompt, about {tokens} tokens at {BYTES_PER_TOKEN} bytes each.\n\n"
    );
    for tool in for_models() {
        let definition = tool.definition();
        let schema = definition.schema_as_json_value();
        let words = definition.description.unwrap_or_default();
        let rows = rows(&schema, "");
        write!(page, "## `{}`\n\n{words}\n\n", tool.name()).expect("a string has room");
        if rows.is_empty() {
            page.push_str("Takes nothing.\n\n");
            continue;
        }
        page.push_str("| takes | is | |\n|---|---|---|\n");
        for [path, kind, words] in rows {
            writeln!(page, "| `{path}` | {kind} | {words} |").expect("a string has room");
        }
        page.push('\n');
    }
    page
}

/// The bytes that clients put into each prompt, where they show all tools: names, words and schemas.
pub(crate) fn size() -> usize {
    let size = |tool: ToolKind| {
        let definition = tool.definition();
        let words = definition.description.as_deref().unwrap_or_default();
        tool.name().len() + words.len() + definition.schema_as_json_value().to_string().len()
    };
    for_models().map(size).sum()
}

fn for_models() -> impl Iterator<Item = ToolKind> {
    ToolKind::ALL.iter().copied().filter(|tool| tool.is_there(&Options::default()))
}

/// The fields of an object, each followed by its own: path, kind and words.
fn rows(object: &Value, above: &str) -> Vec<[String; 3]> {
    let required = object["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut found = Vec::new();
    for (name, field) in object["properties"].as_object().into_iter().flatten() {
        let path = format!("{above}{name}");
        let needed = if required.iter().any(|it| it == name) { ", needed" } else { "" };
        let words = field["description"].as_str().unwrap_or_default().to_owned();
        found.push([path.clone(), kind(field) + needed, words]);
        let (inner, mark) = match field.get("items") {
            // The arguments of one child stand with the tool that starts one.
            Some(items) if items["properties"]["task"].is_object() => continue,
            Some(items) => (items, "[]."),
            None => (field, "."),
        };
        found.extend(rows(inner, &format!("{path}{mark}")));
    }
    found
}

/// A type in words.
fn kind(schema: &Value) -> String {
    if let Some(names) = schema["enum"].as_array() {
        let names = names.iter().filter_map(Value::as_str).map(|name| format!("`{name}`"));
        return names.collect::<Vec<_>>().join(" or ");
    }
    match schema["type"].as_str().expect("each has a type") {
        "array" => format!("list of {}", kind(&schema["items"])),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_argument_is_a_row_with_its_type() {
        let page = tools_markdown();
        for row in [
            "## `sessions_spawn`",
            "| `task` | string, needed | All that it is told. |",
            "| `context[].name` | string, needed |  |",
            "| `cleanup` | `keep` or `delete` | Of its session at its end. |",
            "| `budget.usd` | number |  |",
            "| `tools.allow` | list of string |  |",
            "| `tasks` | list of object, needed | Each with what sessions_spawn takes. |",
            "| `results[].value` | string, needed | As JSON. |",
            "| `mode` | `all` or `any` |  |",
            "Takes nothing.",
        ] {
            assert!(page.lines().any(|line| line == row), "{row}\n{page}");
        }
        assert_eq!(page.matches("## `").count(), for_models().count());
    }

    #[test]
    fn models_and_people_read_the_same() {
        let tools: Vec<Value> = serde_json::from_str(tools_json().as_str()).expect("JSON");
        let page = tools_markdown();
        for tool in tools {
            assert!(
                page.contains(tool["description"].as_str().expect("the message is not text")),
                "{tool}"
            );
            assert_eq!(tool["inputSchema"]["type"], "object");
        }
    }
}
