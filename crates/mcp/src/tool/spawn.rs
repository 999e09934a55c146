//! The tool `sessions_spawn`.

use offshoot_door::{Client, Spawned, Wait, WireEnvelope};
use offshoot_model::{JsonText, LoweredLimit, RunId, SessionKey};
use rmcp::schemars::{self, JsonSchema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::child::Child;
use crate::answer::{CallFailure, json};
use crate::patience::Patience;

pub(super) const WORDS: &str = "\
Start a child session. sessions_wait brings its result; `wait: true` blocks until it ends.";

/// A child, and one argument more.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    #[schemars(flatten)]
    child: Child,
    /// (Block until it has ended, or until it is time to answer `pending`.)
    #[schemars(default)]
    wait: bool,
}

/// The state of the child so far.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    status: &'static str,
    run_id: RunId,
    session_key: SessionKey,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lowered: Vec<LoweredLimit>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changed: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<WireEnvelope>,
}

pub(super) async fn call(
    client: &Client,
    arguments: Arguments,
    patience: &Patience<'_>,
) -> Result<JsonText, CallFailure> {
    let Arguments { child, wait } = arguments;
    let Spawned { run_id, session_key, lowered, changed } = client.call(child.request()?).await?;
    let (mut status, mut outcome) = ("accepted", None);
    if wait {
        let wait = Wait { runs: vec![run_id.into()], ..Wait::default() };
        outcome = patience.wait(client, wait, None).await?.ended.pop();
        status = if outcome.is_some() { "ended" } else { "pending" };
    }
    Ok(json(&Answer { status, run_id, session_key, lowered, changed, outcome }))
}

/// By hand, because a flattened field accepts unknown arguments, and a mistyped argument must not be passed over.
impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = Map::deserialize(deserializer)?;
        let wait = fields.shift_remove("wait").map(bool::deserialize).transpose();
        let child = Child::deserialize(Value::Object(fields)).map_err(Error::custom)?;
        let wait = wait.map_err(|error| Error::custom(format_args!("wait: {error}")))?;
        Ok(Self { child, wait: wait.unwrap_or(false) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_not_ignored() {
        #[track_caller]
        fn check(arguments: &str, expected: &str) {
            let error = serde_json::from_str::<Arguments>(arguments).unwrap_err();
            assert!(error.to_string().starts_with(expected), "{error}");
        }
        check(r#"{"task":"x","timeout":3}"#, "unknown field `timeout`");
        check(r#"{"wait":true}"#, "missing field `task`");
        check(r#"{"task":"x","wait":"yes"}"#, "wait: invalid type: string \"yes\"");
    }
}
