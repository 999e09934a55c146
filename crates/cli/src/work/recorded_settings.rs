//! The recorded settings of a tree, beside those of today: of two limits the stricter holds.

use std::collections::{BTreeMap, BTreeSet};

use offshoot_config::{AgentId, Config, Loader, Origin, SubagentSettings};
use offshoot_policy::{Difference, Terms};
use serde_json::Value;

use crate::failure::Failure;
use crate::load;

/// The explicit settings for a root of an agent, by key.
pub(crate) type RecordedSettings = BTreeMap<String, Value>;

/// A setting that is not what it was, and the value that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// The key within `subagents`.
    pub(crate) key: String,
    was: Option<Value>,
    is: Option<Value>,
    /// The value that holds, where that is not the one of today.
    pub(crate) holds: Option<Value>,
}

/// The section with the settings of all agents.
const SECTION: &str = "agents.defaults.subagents";

/// Names the agents that may be asked for.
const ALLOW_AGENTS: &str = "allowAgents";

/// The setting for interrupted runs, whose default differs by their origin.
const ON_INTERRUPT: &str = "onInterrupt";

/// The full name of a setting.
pub(crate) fn name(key: &str) -> String {
    format!("{SECTION}.{key}")
}

/// Returns the explicit settings for an agent.
pub(crate) fn recorded_settings(config: &Config, agent: &AgentId) -> RecordedSettings {
    let settings = config.resolve(agent);
    let set = settings.filter(|(_, set)| set.origin != Origin::BuiltIn && !set.value.is_null());
    set.map(|(key, set)| (key, set.value)).collect()
}

/// Returns the settings that differ today.
pub(crate) fn changes(
    was: &RecordedSettings,
    config: &Config,
    agent: &AgentId,
) -> Result<Vec<Change>, Failure> {
    let is = recorded_settings(config, agent);
    let mut changes = Vec::new();
    let limits = SubagentSettings::limits();
    let limit = |key: &&String| limits.contains(key);
    let recorded = was
        .iter()
        .filter(|(key, _)| limit(key))
        .fold(Loader::new(), |loader, it| loader.set(name(it.0), it.1.clone()));
    let recorded = Terms::root(&load::finish(recorded)?, agent);
    for Difference { key, was: before, is: now, was_stricter } in
        recorded.differences(&Terms::root(config, agent))
    {
        if key == ON_INTERRUPT && !was.contains_key(&key) {
            continue;
        }
        let holds = before.clone().filter(|_| was_stricter);
        changes.push(Change { key, was: before, is: now, holds });
    }
    let keys: BTreeSet<&String> = was.keys().chain(is.keys()).filter(|key| !limit(key)).collect();
    for key in keys {
        let (was, is) = (was.get(key), is.get(key));
        if was == is {
            continue;
        }
        let holds = (key == ALLOW_AGENTS).then(|| allowed(was, is, agent));
        let holds = holds.filter(|holds| Some(holds) != is);
        changes.push(Change { key: key.clone(), was: was.cloned(), is: is.cloned(), holds });
    }
    Ok(changes)
}

/// The agents that both allow. Where the setting is absent, that is the agent itself.
fn allowed(was: Option<&Value>, is: Option<&Value>, agent: &AgentId) -> Value {
    let ids = |value: Option<&Value>| match value.and_then(Value::as_array) {
        Some(ids) => ids.clone(),
        None => vec![agent.as_str().into()],
    };
    let (was, is) = (ids(was), ids(is));
    let any = Value::from("*");
    match (was.contains(&any), is.contains(&any)) {
        (true, _) => is.into(),
        (false, true) => was.into(),
        (false, false) => is.into_iter().filter(|id| was.contains(id)).collect(),
    }
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let word = |value: &Option<Value>| match value {
            None => "unset".to_owned(),
            Some(Value::String(word)) => word.clone(),
            Some(other) => other.to_string(),
        };
        let (was, is) = (word(&self.was), word(&self.is));
        let holds = if self.holds.is_some() { word(&self.holds) } else { is.clone() };
        write!(f, "{} was {was} and is {is} now: {holds} holds", self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(settings: &Value) -> Config {
        let settings = settings.as_object().expect("settings by key");
        let set = |loader: Loader, (key, value): (&String, &Value)| {
            loader.flag(name(key), value.clone(), "test")
        };
        settings.iter().fold(Loader::new(), set).load().expect("settings of a test")
    }

    #[track_caller]
    fn check(was: Value, is: Value, expected: &[&str]) {
        let agent = AgentId::main();
        let was = recorded_settings(&config(&was), &agent);
        let found = changes(&was, &config(&is), &agent).expect("both can be read");
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn of_two_settings_the_stricter_holds() {
        use serde_json::json;
        check(json!({}), json!({}), &[]);
        check(json!({ "maxDepth": 2 }), json!({ "maxDepth": 2 }), &[]);
        check(
            json!({ "onParentEnd": "cascade", "budget.usd": 2.5, "idleTimeoutSeconds": 0 }),
            json!({ "maxDepth": 2 }),
            &[
                "maxDepth was 3 and is 2 now: 2 holds",
                "idleTimeoutSeconds was 0 and is 600 now: 600 holds",
                "onParentEnd was cascade and is letFinish now: cascade holds",
                "budget.usd was 2.5 and is unset now: 2.5 holds",
            ],
        );
        check(json!({}), json!({ "onInterrupt": "rerun" }), &[]);
        let lost = "onInterrupt was lost and is rerun now: lost holds";
        check(json!({ "onInterrupt": "lost" }), json!({ "onInterrupt": "rerun" }), &[lost]);
        let thinking = "thinking was unset and is high now: high holds";
        check(json!({}), json!({ "thinking": "high" }), &[thinking]);
    }

    #[test]
    fn agents_are_those_that_both_allow() {
        use serde_json::json;
        let unset = "allowAgents was unset and is [\"a\"] now: [] holds";
        check(json!({}), json!({ "allowAgents": ["a"] }), &[unset]);
        let both = "allowAgents was [\"a\",\"b\"] and is [\"b\",\"c\"] now: [\"b\"] holds";
        check(json!({ "allowAgents": ["a", "b"] }), json!({ "allowAgents": ["b", "c"] }), &[both]);
        let fewer = "allowAgents was [\"a\"] and is [\"*\"] now: [\"a\"] holds";
        check(json!({ "allowAgents": ["a"] }), json!({ "allowAgents": ["*"] }), &[fewer]);
    }
}
