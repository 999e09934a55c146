//! `permission`: whether a program may use one of its own tools, for programs that ask a tool of MCP before they do.
//!
//! The words of the question and of the answer are those of Claude Code, which is told of the tool by
//! `--permission-prompt-tool`.

use offshoot_door::{Client, Status};
use offshoot_model::{JsonText, Rights};
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::answer::{CallFailure, json};

pub(super) const WORDS: &str = "\
Whether this session may use a tool of the program that it runs in, by the rights that its tree granted it. For the program \
itself, which asks before it uses a tool.";

/// Rights by which a tool of a program can be permitted, of which any will do; none where it is never.
pub type RightsOf = fn(&str) -> Vec<String>;

/// Fields that later versions add are no reason to refuse.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// The tool, by the program's own name.
    tool_name: String,
    /// The arguments of the call.
    #[serde(default)]
    #[schemars(with = "serde_json::Map<String, Value>")]
    input: Value,
}

#[derive(Debug, PartialEq, Serialize)]
#[serde(tag = "behavior", rename_all = "snake_case")]
enum Verdict {
    #[serde(rename_all = "camelCase")]
    Allow {
        updated_input: Value,
    },
    Deny {
        message: String,
    },
}

pub(super) async fn call(
    client: &Client,
    arguments: Arguments,
    rights_of: RightsOf,
) -> Result<JsonText, CallFailure> {
    let status = client.call(Status {}).await?;
    let rights = status.tools.unwrap_or_default();
    let names = rights_of(&arguments.tool_name);
    Ok(json(&verdict(&rights, &names, arguments)))
}

/// Denied by one name is denied; permitted by one name is enough.
fn verdict(rights: &Rights, names: &[String], arguments: Arguments) -> Verdict {
    let Arguments { tool_name, input } = arguments;
    let denied = names.iter().any(|name| rights.deny.contains(name));
    if !denied && names.iter().any(|name| rights.permits(name)) {
        return Verdict::Allow { updated_input: input };
    }
    let message = format!(
        "this session has no right to use {tool_name}; do it without, or say in your answer what is missing"
    );
    Verdict::Deny { message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_permitted_by_its_right_or_by_its_name() {
        #[track_caller]
        fn check(allow: Option<&[&str]>, deny: &[&str], names: &[&str], expected: bool) {
            let set = |names: &[&str]| names.iter().map(ToString::to_string).collect();
            let rights = Rights { allow: allow.map(set), deny: set(deny) };
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            let input = serde_json::json!({ "command": "ls" });
            let arguments = Arguments { tool_name: "Bash".into(), input: input.clone() };
            match verdict(&rights, &names, arguments) {
                Verdict::Allow { updated_input } => {
                    assert!(expected, "{rights:?} {names:?}");
                    assert_eq!(updated_input, input);
                }
                Verdict::Deny { message } => {
                    assert!(!expected, "{rights:?} {names:?}");
                    assert!(message.contains("no right to use Bash"), "{message}");
                }
            }
        }
        let bash = &["Bash", "exec"];
        check(None, &[], bash, true);
        check(Some(&["exec"]), &[], bash, true);
        check(Some(&["Bash"]), &[], bash, true);
        check(Some(&["read"]), &[], bash, false);
        check(Some(&[]), &[], bash, false);
        check(None, &["exec"], bash, false);
        check(None, &["Bash"], bash, false);
        check(Some(&["exec"]), &["Bash"], bash, false);
        // What is never permitted has no name.
        check(None, &[], &[], false);
    }

    #[test]
    fn the_answer_is_in_the_words_of_the_program() {
        let arguments: Arguments =
            serde_json::from_str(r#"{"tool_name":"Read","input":{"file":"x"},"tool_use_id":"t"}"#)
                .expect("a question of today");
        let verdict = verdict(&Rights::all(), &["read".to_owned()], arguments);
        let expected = r#"{"behavior":"allow","updatedInput":{"file":"x"}}"#;
        assert_eq!(json(&verdict).as_str(), expected);
        let denied = Verdict::Deny { message: "no".into() };
        assert_eq!(json(&denied).as_str(), r#"{"behavior":"deny","message":"no"}"#);
    }
}
