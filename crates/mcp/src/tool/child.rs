//! The description of a child, for `sessions_spawn` and for each child of `sessions_spawn_many`.

use offshoot_door::{Cleanup, ContextGrant, Spawn};
use offshoot_model::{AgentId, BudgetRequest, Isolation, JsonText, MicroUsd, Rights};
use rmcp::schemars::{self, JsonSchema};
use serde::Deserialize;
use serde_json::Value;

use crate::answer::{CallFailure, json};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Child {
    /// All that it is told.
    task: String,
    /// (Which agent runs it; this session's own where absent.)
    agent_id: Option<String>,
    /// (A short name for people, and for its result in a merge.)
    label: Option<String>,
    /// Values it may read.
    #[serde(default)]
    context: Vec<Grant>,
    /// (Another model than the configured one.)
    model: Option<String>,
    /// (Another thinking level than the configured one.)
    thinking: Option<String>,
    /// (A shorter time limit.)
    run_timeout_seconds: Option<u64>,
    /// Of its session at its end.
    cleanup: Option<Cleanup>,
    /// Fewer rights: read, write, exec, search, fetch, spawn, mcp:{server}/{tool}, runtime names.
    tools: Option<ToolRights>,
    /// (A folder of its own: worktree, worktree:{commit} or copy.)
    #[schemars(with = "Option<String>")]
    isolation: Option<Isolation>,
    /// JSON Schema.
    #[schemars(with = "Option<String>")]
    schema: Option<Value>,
    /// (To reserve for it.)
    budget: Option<Reservation>,
}

/// One value that a child may read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Grant {
    /// (The child's name for it.)
    name: String,
    /// Name here, if another.
    from: Option<String>,
}

/// Fewer rights.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ToolRights {
    /// (Only these.)
    allow: Option<Vec<String>>,
    /// (Never these.)
    #[serde(default)]
    deny: Vec<String>,
}

/// Tokens, dollars, or both.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Reservation {
    /// (Tokens of all kinds together.)
    tokens: Option<u64>,
    /// (In dollars.)
    usd: Option<f64>,
}

impl Grant {
    /// As the door is asked for it.
    pub(super) fn request(self) -> ContextGrant {
        let Self { name, from } = self;
        ContextGrant { name, from }
    }
}

impl Child {
    /// As the door is asked for it.
    pub(super) fn request(self) -> Result<Spawn, CallFailure> {
        let agent = self.agent_id.as_deref().map(AgentId::parse).transpose();
        let budget = self.budget.map(Reservation::request).transpose()?;
        let context = self.context.into_iter();
        Ok(Spawn {
            task: self.task,
            agent: agent.map_err(|error| CallFailure::invalid("agentId", error))?,
            label: self.label,
            context: context.map(Grant::request).collect(),
            model: self.model,
            thinking: self.thinking,
            run_timeout_seconds: self.run_timeout_seconds,
            cleanup: self.cleanup,
            tools: self.tools.map(|tools| Rights {
                allow: tools.allow.map(|allow| allow.into_iter().collect()),
                deny: tools.deny.into_iter().collect(),
            }),
            budget,
            isolation: self.isolation,
            schema: self.schema.map(schema).transpose()?,
            ..Spawn::default()
        })
    }
}

/// Returns a schema from its text. One that is no text is taken too: models write both.
fn schema(schema: Value) -> Result<JsonText, CallFailure> {
    match schema {
        Value::String(text) => {
            JsonText::parse(text).map_err(|error| CallFailure::invalid("schema", error))
        }
        other => Ok(json(&other)),
    }
}

impl Reservation {
    fn request(self) -> Result<BudgetRequest, CallFailure> {
        let usd = self.usd.map(|usd| {
            MicroUsd::from_f64(usd).ok_or_else(|| {
                let message = format!("not an amount from 0 to {} dollars", MicroUsd::MAX);
                CallFailure::invalid("budget.usd", message)
            })
        });
        Ok(BudgetRequest { tokens: self.tokens, usd: usd.transpose()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_become_a_request_of_the_door() {
        #[track_caller]
        fn check(arguments: &str, expected: &str) {
            let child: Child = serde_json::from_str(arguments).expect("arguments");
            let found = match child.request() {
                Ok(spawn) => json(&spawn).as_str().to_owned(),
                Err(CallFailure::Refused(refused)) => {
                    format!("{}: {}", refused.code, refused.field.unwrap_or_default())
                }
                Err(other) => panic!("{other:?}"),
            };
            assert_eq!(found, expected);
        }
        check(r#"{"task":"x"}"#, r#"{"task":"x"}"#);
        check(
            r#"{"task":"x","agentId":"scout","label":"l","context":[{"name":"a"},{"name":"b","from":"c"}]}"#,
            r#"{"task":"x","agent":"scout","label":"l","context":[{"name":"a"},{"name":"b","from":"c"}]}"#,
        );
        check(
            r#"{"task":"x","model":"m","thinking":"low","runTimeoutSeconds":9,"tools":{"allow":["read"]},"cleanup":"delete"}"#,
            r#"{"task":"x","model":"m","thinking":"low","runTimeoutSeconds":9,"tools":{"allow":["read"],"deny":[]},"cleanup":"delete"}"#,
        );
        check(
            r#"{"task":"x","schema":{"type":"object"}}"#,
            r#"{"task":"x","schema":{"type":"object"}}"#,
        );
        check(
            r#"{"task":"x","schema":"{\"type\":\"object\"}"}"#,
            r#"{"task":"x","schema":{"type":"object"}}"#,
        );
        check(
            r#"{"task":"x","isolation":"worktree:main"}"#,
            r#"{"task":"x","isolation":"worktree:main"}"#,
        );
        check(r#"{"task":"x","schema":"{"}"#, "invalid_request: schema");
        check(r#"{"task":"x","agentId":"no such: name"}"#, "invalid_request: agentId");
        check(r#"{"task":"x","budget":{"usd":-1}}"#, "invalid_request: budget.usd");
    }
}
