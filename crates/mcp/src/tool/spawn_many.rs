//! The tool `sessions_spawn_many`.

use offshoot_door::{
    ChildAnswer, Client, Merged, SpawnMany, Split, Wait, WaitMode, Waited, WireEnvelope,
};
use offshoot_model::{JsonText, RunId};
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};

use super::child::Child;
use super::merging::Merging;
use crate::answer::{CallFailure, json};
use crate::patience::Patience;

pub(super) const WORDS: &str = "\
Start children that share the rest of the budget: one for each of `tasks`, or with `split` one task for each piece of a value.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    /// Each with what sessions_spawn takes.
    #[schemars(with = "Vec<Brief>")]
    tasks: Vec<Child>,
    /// Each child finds its piece under the name of the value.
    split: Option<Cut>,
    /// (As for sessions_spawn, until all have ended.)
    #[serde(default)]
    wait: bool,
    /// With `wait`.
    merge: Option<Merging>,
}

/// A value in pieces.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Cut {
    /// (The name of the value.)
    name: String,
    /// `lines:N` (N each), `chunks:N` (N in all), `bytes:N`, `bytes:N@lines`, `paragraphs:N`, `jsonl:N`.
    by: String,
}

/// The states of the children so far, in the order asked.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    status: &'static str,
    children: Vec<ChildAnswer>,
    ended: Option<Vec<WireEnvelope>>,
    pending: Option<Vec<RunId>>,
    merged: Option<Merged>,
}

/// A child in the schema: what is usual. The rest stands with sessions_spawn, and would be paid for twice.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "it is read as a child, and only described by this")]
struct Brief {
    /// (As for sessions_spawn.)
    task: String,
    /// (As for sessions_spawn.)
    agent_id: Option<String>,
    /// (As for sessions_spawn.)
    label: Option<String>,
}

pub(super) async fn call(
    client: &Client,
    arguments: Arguments,
    patience: &Patience<'_>,
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
        let Self { tasks, split, wait, merge } = self;
        let mut children: Vec<_> =
            tasks.into_iter().map(Child::request).collect::<Result<_, _>>()?;
        let template = match (&split, children.len()) {
            (_, 0) => return Err(CallFailure::invalid("tasks", "there is no task")),
            (None, _) => None,
            (Some(_), 1) => children.pop(),
            (Some(_), several) => {
                let message =
                    format!("with `split` there is one task for all pieces, not {several}");
                return Err(CallFailure::invalid("tasks", message));
            }
        };
        if merge.is_some() && !wait {
            let message = "results are merged when they are waited for: with `wait: true`, by \
                sessions_wait, or by sessions_merge";
            return Err(CallFailure::invalid("merge", message));
        }
        Ok(SpawnMany {
            children,
            template,
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
            r#"{"tasks":[{"task":"count"}],"split":{"name":"log","by":"lines:9"}}"#,
            r#"{"template":{"task":"count"},"split":{"name":"log","by":"lines:9"}}"#,
        );
        check(r#"{"tasks":[]}"#, "invalid_request: tasks");
        check(
            r#"{"tasks":[{"task":"a"},{"task":"b"}],"split":{"name":"log","by":"lines:9"}}"#,
            "invalid_request: tasks",
        );
        check(r#"{"tasks":[{"task":"a"}],"merge":{"strategy":"sum"}}"#, "invalid_request: merge");
    }
}
