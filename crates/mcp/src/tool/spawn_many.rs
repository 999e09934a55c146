//! `sessions_spawn_many`.

use offshoot_door::{
    ChildAnswer, Client, Merged, Outcome, SpawnMany, Split, Wait, WaitMode, Waited,
};
use offshoot_model::{JsonText, RunId};
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};

use super::child::Child;
use super::merging::Merging;
use crate::answer::{CallFailure, json};
use crate::patience::Patience;

pub(super) const WORDS: &str = "\
Start several children at once, which share what is left of the budget: either `tasks`, one child for each, or one \
`template` for each piece of a value, cut by `split`. One that is refused is named in the answer and hurts no other. \
With `wait: true` it blocks until they have ended, and `merge` makes their results one.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    /// One child for each.
    #[serde(default)]
    tasks: Vec<Child>,
    /// The same child for each piece.
    template: Option<Child>,
    /// The value and how it is cut.
    split: Option<Cut>,
    /// Block until they have ended, or until it is time to answer `pending`.
    #[serde(default)]
    wait: bool,
    /// With `wait`: their results as one answer.
    merge: Option<Merging>,
}

/// A value in pieces. Each child finds its piece under the value's name.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Cut {
    /// This session's name for the value.
    name: String,
    /// `lines:N` (N lines a piece), `chunks:N` (N pieces), `bytes:N`, `bytes:N@lines`, `paragraphs:N` or `jsonl:N`.
    by: String,
}

/// What became of the children so far, in the order asked.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    status: &'static str,
    children: Vec<ChildAnswer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<Vec<Outcome>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pending: Option<Vec<RunId>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    merged: Option<Merged>,
}

pub(super) async fn call(
    client: &Client,
    arguments: Arguments,
    patience: &Patience,
) -> Result<JsonText, CallFailure> {
    let many = arguments.request()?;
    let offshoot_door::SpawnedMany { children, waited } = patience.spawn_many(client, many).await?;
    let admitted = children.iter().any(|child| child.run_id.is_some());
    let status = match &waited {
        _ if !admitted && !children.is_empty() => "refused",
        None => "accepted",
        Some(waited) if waited.pending.is_empty() => "ended",
        Some(_) => "pending",
    };
    let (ended, pending, merged) = match waited {
        Some(Waited { ended, pending, merged }) => (Some(ended), Some(pending), merged),
        None => (None, None, None),
    };
    Ok(json(&Answer { status, children, ended, pending, merged }))
}

impl Arguments {
    fn request(self) -> Result<SpawnMany, CallFailure> {
        let Self { tasks, template, split, wait, merge } = self;
        match (tasks.is_empty(), &template, &split) {
            (false, None, None) | (true, Some(_), Some(_)) => {}
            _ => {
                let message = "takes either `tasks`, or `template` with `split`";
                return Err(CallFailure::invalid("tasks", message));
            }
        }
        if merge.is_some() && !wait {
            let message = "results are merged when they are waited for: with `wait: true`, by \
                sessions_wait, or by sessions_merge";
            return Err(CallFailure::invalid("merge", message));
        }
        Ok(SpawnMany {
            children: tasks.into_iter().map(Child::request).collect::<Result<_, _>>()?,
            template: template.map(Child::request).transpose()?,
            split: split.map(|Cut { name, by }| Split { name, by }),
            wait: wait.then(|| Wait {
                mode: Some(WaitMode::All),
                merge: merge.map(Merging::order),
                ..Wait::default()
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_become_a_request_of_the_door() {
        #[track_caller]
        fn check(arguments: &str, expected: &str) {
            let arguments: Arguments = serde_json::from_str(arguments).expect("arguments");
            let found = match arguments.request() {
                Ok(many) => json(&many).as_str().to_owned(),
                Err(CallFailure::Refused(refused)) => {
                    format!("{}: {}", refused.code, refused.field.unwrap_or_default())
                }
                Err(other) => panic!("{other:?}"),
            };
            assert_eq!(found, expected);
        }
        let two = r#""children":[{"task":"a"},{"task":"b"}]"#;
        check(r#"{"tasks":[{"task":"a"},{"task":"b"}]}"#, &format!("{{{two}}}"));
        check(
            r#"{"tasks":[{"task":"a"},{"task":"b"}],"wait":true,"merge":{"strategy":"sum","onFailure":"skip"}}"#,
            &format!(
                r#"{{{two},"wait":{{"mode":"all","merge":{{"strategy":"sum","onFailure":"skip"}}}}}}"#
            ),
        );
        check(
            r#"{"template":{"task":"count"},"split":{"name":"log","by":"lines:9"}}"#,
            r#"{"template":{"task":"count"},"split":{"name":"log","by":"lines:9"}}"#,
        );
        check("{}", "invalid_request: tasks");
        check(r#"{"template":{"task":"count"}}"#, "invalid_request: tasks");
        check(
            r#"{"tasks":[{"task":"a"}],"split":{"name":"log","by":"lines:9"}}"#,
            "invalid_request: tasks",
        );
        check(r#"{"tasks":[{"task":"a"}],"merge":{"strategy":"sum"}}"#, "invalid_request: merge");
    }
}
