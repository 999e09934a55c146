//! The tools for people: what each is for and what it takes, from the same schemas that models get.

use std::fmt::Write;

use offshoot_model::JsonText;
use serde_json::Value;

use crate::Options;
use crate::answer::json;
use crate::tool::ToolKind;

/// All tools as a model is told of them: a list of `name`, `description` and `inputSchema`.
pub fn tools_json() -> JsonText {
    json(&for_models().map(ToolKind::definition).collect::<Vec<_>>())
}

/// All tools as Markdown.
pub fn tools_markdown() -> String {
    let mut page = String::new();
    for tool in for_models() {
        let definition = tool.definition();
        let schema = definition.schema_as_json_value();
        let words = definition.description.unwrap_or_default();
        let rows = rows(&schema, &schema, "");
        write!(page, "## `{}`\n\n{words}\n\n", tool.name()).expect("a string has room");
        if rows.is_empty() {
            page.push_str("Takes nothing.\n\n");
            continue;
        }
        page.push_str("| takes | is | |\n|---|---|---|\n");
        for Row { path, kind, words } in rows {
            writeln!(page, "| `{path}` | {kind} | {words} |").expect("a string has room");
        }
        page.push('\n');
    }
    page
}

fn for_models() -> impl Iterator<Item = ToolKind> {
    ToolKind::ALL.iter().copied().filter(|tool| tool.is_there(&Options::default()))
}

/// One argument, or a field of one.
struct Row {
    path: String,
    kind: String,
    words: String,
}

/// The fields of an object, each followed by its own.
fn rows(whole: &Value, object: &Value, above: &str) -> Vec<Row> {
    let required = object["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut found = Vec::new();
    for (name, field) in object["properties"].as_object().into_iter().flatten() {
        let path = format!("{above}{name}");
        let meant = meant(whole, field);
        let needed = if required.iter().any(|it| it == name) { ", needed" } else { "" };
        let words = field["description"].as_str().unwrap_or_default().replace('\n', " ");
        found.push(Row { path: path.clone(), kind: kind(whole, meant) + needed, words });
        let (inner, mark) = match meant["type"].as_str() {
            Some("array") => (self::meant(whole, &meant["items"]), "[]."),
            _ => (meant, "."),
        };
        found.extend(rows(whole, inner, &format!("{path}{mark}")));
    }
    found
}

/// What stands behind a reference or beside `null`, which is how something that may be absent is written.
fn meant<'a>(whole: &'a Value, schema: &'a Value) -> &'a Value {
    if let Some(reference) = schema["$ref"].as_str() {
        let pointer = reference.trim_start_matches('#');
        return whole.pointer(pointer).expect("a schema refers to what it holds");
    }
    let present = |it: &&Value| it["type"] != "null";
    match schema["anyOf"].as_array().and_then(|several| several.iter().find(present)) {
        Some(one) => meant(whole, one),
        None => schema,
    }
}

/// A type in words.
fn kind(whole: &Value, schema: &Value) -> String {
    let words = |list: &Vec<Value>| {
        let words = list.iter().filter_map(|it| it["const"].as_str().or(it.as_str()));
        words.map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" or ")
    };
    if let Some(list) = schema["oneOf"].as_array().or(schema["enum"].as_array()) {
        return words(list);
    }
    let name = match &schema["type"] {
        Value::Array(several) => several.iter().find(|it| *it != "null").and_then(Value::as_str),
        one => one.as_str(),
    };
    match name {
        Some("array") => format!("list of {}", kind(whole, meant(whole, &schema["items"]))),
        Some(name) => name.to_owned(),
        None => "any JSON".to_owned(),
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
            "| `task` | string, needed | What the child is to do. It knows nothing else of this session. |",
            "| `context[].name` | string, needed | The name by which the child knows it. |",
            "| `cleanup` | `keep` or `delete` | What becomes of its session when it is over. |",
            "| `budget.usd` | number | Dollars. |",
            "| `tools.allow` | list of string | Only these; all that are not denied where absent. |",
            "| `wait` | boolean | Block until the child has ended, or until it is time to answer `pending`. |",
            "| `tasks[].label` | string | A short name for people, and for its result in a merge. |",
            "| `results[].value` | any JSON, needed | The value: any JSON. |",
            "| `mode` | `all` or `any` | Until all have ended, or until one has. |",
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
            assert!(page.contains(tool["description"].as_str().expect("words")), "{tool}");
            assert_eq!(tool["inputSchema"]["type"], "object");
        }
    }
}
