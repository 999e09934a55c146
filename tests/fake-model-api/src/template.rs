//! Text with places for what the conversation says.

use serde_json::Value;

use crate::Conversation;

/// Fills a text. A place that is not known stays as it stands, so that a test shows it.
pub(crate) fn fill(template: &str, conversation: &Conversation) -> String {
    let mut filled = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, place, after)) = next_place(rest) {
        filled.push_str(before);
        match value(place, conversation) {
            Some(value) => filled.push_str(&value),
            None => filled.push_str(&rest[before.len()..rest.len() - after.len()]),
        }
        rest = after;
    }
    filled.push_str(rest);
    filled
}

/// Fills every string of a value.
pub(crate) fn fill_value(template: &Value, conversation: &Conversation) -> Value {
    match template {
        Value::String(text) => Value::String(fill(text, conversation)),
        Value::Array(items) => {
            items.iter().map(|item| fill_value(item, conversation)).collect::<Vec<_>>().into()
        }
        Value::Object(fields) => {
            let filled =
                fields.iter().map(|(name, value)| (name.clone(), fill_value(value, conversation)));
            Value::Object(filled.collect())
        }
        other => other.clone(),
    }
}

fn next_place(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once("{{")?;
    let (place, after) = rest.split_once("}}")?;
    Some((before, place.trim(), after))
}

fn value(place: &str, conversation: &Conversation) -> Option<String> {
    match place.split_once(':') {
        Some(("result", pointer)) => inside(conversation.tool_results.first()?, pointer),
        Some(("results", pointer)) => {
            let all: Option<Vec<_>> =
                conversation.tool_results.iter().map(|result| inside(result, pointer)).collect();
            all.map(|all| all.join(" "))
        }
        Some(_) => None,
        None => match place {
            "prompt" => Some(conversation.prompt.clone()),
            "result" => Some(conversation.tool_results.join("\n")),
            "tools" => Some(conversation.tools.join(" ")),
            "model" => Some(conversation.model.clone()),
            "turn" => Some(conversation.turn.to_string()),
            "step" => Some(conversation.step.to_string()),
            _ => None,
        },
    }
}

/// One value of the JSON in a text: a string as it is, anything else as JSON.
fn inside(json: &str, pointer: &str) -> Option<String> {
    json_in(json)?.pointer(pointer).map(|value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    })
}

/// The JSON that a text is, or around which a client has put words of its own.
fn json_in(text: &str) -> Option<Value> {
    let whole = serde_json::from_str(text).ok();
    whole.or_else(|| serde_json::from_str(text.get(text.find('{')?..=text.rfind('}')?)?).ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn places_are_filled() {
        let conversation = Conversation {
            prompt: "do {{turn}}".into(),
            tool_results: vec![r#"{"runs": ["a", 2]}"#.into(), "two".into()],
            tools: vec!["Bash".into(), "Read".into()],
            turn: 1,
            step: 2,
            ..Conversation::default()
        };
        let check = |template: &str, expected: &str| {
            assert_eq!(fill(template, &conversation), expected, "{template}");
        };
        check("plain", "plain");
        check("[{{prompt}}]", "[do {{turn}}]");
        check("{{ turn }}.{{step}}", "1.2");
        check("{{tools}}", "Bash Read");
        check("{{result}}", "{\"runs\": [\"a\", 2]}\ntwo");
        check("{{result:/runs/0}} {{result:/runs/1}}", "a 2");
        check("{{result:/none}} {{unknown}} {{open", "{{result:/none}} {{unknown}} {{open");
        let both = Conversation {
            tool_results: vec![r#"{"a": "x"}"#.into(), r#"{"a": 1}"#.into()],
            ..Conversation::default()
        };
        assert_eq!(fill("{{results:/a}} {{results:/b}}", &both), "x 1 {{results:/b}}");
        let wrapped = Conversation {
            tool_results: vec!["Output:\n{\"a\": [1]}\n(end)".into()],
            ..Conversation::default()
        };
        assert_eq!(fill("{{result:/a/0}}", &wrapped), "1");
        let input = json!({"ids": ["{{result:/runs/0}}"], "n": 1});
        assert_eq!(fill_value(&input, &conversation), json!({"ids": ["a"], "n": 1}));
    }
}
