//! `sessions_spawn`.

use offshoot_door::{Client, ContextGrant, Outcome, Spawn, Wait};
use offshoot_model::{AgentId, BudgetRequest, JsonText, MicroUsd, Rights, RunId, SessionKey};
use rmcp::schemars::{self, JsonSchema};
use serde::{Deserialize, Serialize};

use crate::answer::{CallFailure, json};
use crate::patience::Patience;

pub(super) const WORDS: &str = "\
Start a child session on a task of its own. Answers `accepted` at once, and sessions_wait brings the result; with \
`wait: true` it blocks until the child has ended.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    /// What the child is to do. It knows nothing else of this session.
    task: String,
    /// Which agent runs it; this session's own where absent.
    agent_id: Option<String>,
    /// A short name for people.
    label: Option<String>,
    /// Values of this session that the child may read.
    #[serde(default)]
    context: Vec<Grant>,
    /// Another model than the configured one.
    model: Option<String>,
    /// Another thinking level than the configured one.
    thinking: Option<String>,
    /// A shorter time limit.
    run_timeout_seconds: Option<u64>,
    /// Fewer rights than this session has.
    tools: Option<ToolRights>,
    /// How much of this session's budget to reserve for the child.
    budget: Option<Reservation>,
    /// Block until the child has ended, or until it is time to answer `pending`.
    #[serde(default)]
    wait: bool,
}

/// One value that a child may read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Grant {
    /// The name by which the child knows it.
    name: String,
    /// The name by which this session knows it; the same where absent.
    from: Option<String>,
}

/// `read`, `write`, `exec`, `search`, `fetch`, `spawn`, `mcp:{server}/{tool}` and names of the runtime.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ToolRights {
    /// Only these; all that are not denied where absent.
    allow: Option<Vec<String>>,
    /// Never these.
    #[serde(default)]
    deny: Vec<String>,
}

/// Tokens, dollars, or both.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Reservation {
    /// Tokens of all kinds together.
    tokens: Option<u64>,
    /// Dollars.
    usd: Option<f64>,
}

/// What became of the child so far.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    status: &'static str,
    run_id: RunId,
    session_key: SessionKey,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
}

pub(super) async fn call(
    client: &Client,
    arguments: Arguments,
    patience: &Patience,
) -> Result<JsonText, CallFailure> {
    let wait = arguments.wait;
    let spawned = client.call(arguments.spawn()?).await?;
    let (run_id, session_key) = (spawned.run_id, spawned.session_key);
    if !wait {
        return Ok(json(&Answer { status: "accepted", run_id, session_key, outcome: None }));
    }
    let wait = Wait { runs: vec![run_id.into()], ..Wait::default() };
    let outcome = patience.wait(client, wait, None).await?.ended.pop();
    let status = if outcome.is_some() { "ended" } else { "pending" };
    Ok(json(&Answer { status, run_id, session_key, outcome }))
}

impl Arguments {
    fn spawn(self) -> Result<Spawn, CallFailure> {
        let agent = self.agent_id.as_deref().map(AgentId::parse).transpose();
        let budget = self.budget.map(Reservation::request).transpose()?;
        let context = self.context.into_iter();
        Ok(Spawn {
            task: self.task,
            agent: agent.map_err(|error| CallFailure::invalid("agentId", error))?,
            label: self.label,
            context: context.map(|Grant { name, from }| ContextGrant { name, from }).collect(),
            model: self.model,
            thinking: self.thinking,
            run_timeout_seconds: self.run_timeout_seconds,
            tools: self.tools.map(|tools| Rights {
                allow: tools.allow.map(|allow| allow.into_iter().collect()),
                deny: tools.deny.into_iter().collect(),
            }),
            budget,
            ..Spawn::default()
        })
    }
}

impl Reservation {
    fn request(self) -> Result<BudgetRequest, CallFailure> {
        let usd = self.usd.map(|usd| {
            MicroUsd::from_f64(usd)
                .ok_or_else(|| CallFailure::invalid("budget.usd", "not an amount of dollars"))
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
            let arguments: Arguments = serde_json::from_str(arguments).expect("arguments");
            let found = match arguments.spawn() {
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
            r#"{"task":"x","agentId":"scout","label":"l","context":[{"name":"a"},{"name":"b","from":"c"}],"wait":true}"#,
            r#"{"task":"x","agent":"scout","label":"l","context":[{"name":"a"},{"name":"b","from":"c"}]}"#,
        );
        check(
            r#"{"task":"x","model":"m","thinking":"low","runTimeoutSeconds":9,"tools":{"allow":["read"]}}"#,
            r#"{"task":"x","model":"m","thinking":"low","runTimeoutSeconds":9,"tools":{"allow":["read"],"deny":[]}}"#,
        );
        check(r#"{"task":"x","agentId":"no such: name"}"#, "invalid_request: agentId");
        check(r#"{"task":"x","budget":{"usd":-1}}"#, "invalid_request: budget.usd");
    }

    #[test]
    fn what_is_not_known_is_not_ignored() {
        let error = serde_json::from_str::<Arguments>(r#"{"task":"x","timeout":3}"#).unwrap_err();
        assert!(error.to_string().starts_with("unknown field `timeout`"), "{error}");
    }
}
