//! Loose JSON in, a sound limit out: for programs that hold a configuration object instead of files.
//!
//! Files are strict; these are lenient, in the manner programs expect of such helpers: a value of the wrong type counts
//! as absent, a number is rounded down and brought into range, and what is absent falls back from the agent to the
//! defaults to the built-in value.
//!
//! ```
//! use offshoot_config::resolve;
//! use serde_json::json;
//!
//! let config = json!({ "agents": {
//!     "defaults": { "subagents": { "maxDepth": 4.9 } },
//!     "list": [{ "id": "scout", "subagents": { "allowRecursiveSpawn": true, "maxDepth": 99 } }],
//! }});
//! assert!(resolve::resolve_allow_recursive_spawn(&config, "scout"));
//! assert_eq!(resolve::resolve_max_depth(&config, "scout").get(), 10);
//! assert_eq!(resolve::resolve_max_depth(&config, "other").get(), 4);
//! ```

use serde_json::Value;

use crate::built_in;
use crate::setting::MaxDepth;

/// Returns whether sub-agents of this agent may spawn.
pub fn resolve_allow_recursive_spawn(config: &Value, agent: &str) -> bool {
    find(config, agent, "allowRecursiveSpawn", Value::as_bool)
        .unwrap_or(built_in::ALLOW_RECURSIVE_SPAWN)
}

/// Returns the depth that a tree of this agent may reach.
pub fn resolve_max_depth(config: &Value, agent: &str) -> MaxDepth {
    find(config, agent, "maxDepth", |value| clamp_max_depth(value.as_f64()?))
        .unwrap_or(built_in::MAX_DEPTH)
}

/// A number as a depth: rounded down and brought into 1 to 10. `None` for what is no number, or infinite.
pub fn clamp_max_depth(levels: f64) -> Option<MaxDepth> {
    let (least, most) = (MaxDepth::MIN.get(), MaxDepth::MAX.get());
    // After the clamp the number is one of ten, so the cast cuts nothing off.
    let levels =
        levels.is_finite().then(|| levels.floor().clamp(least.into(), most.into()) as u8)?;
    MaxDepth::new(levels)
}

/// The agent's own value, else that of the defaults.
fn find<T>(
    config: &Value,
    agent: &str,
    key: &str,
    read: impl Fn(&Value) -> Option<T>,
) -> Option<T> {
    let agents = &config["agents"];
    let is_it = |entry: &&Value| {
        entry["id"].as_str().is_some_and(|id| id.trim().eq_ignore_ascii_case(agent.trim()))
    };
    let own = agents["list"].as_array().and_then(|list| list.iter().find(is_it));
    own.and_then(|entry| read(&entry["subagents"][key]))
        .or_else(|| read(&agents["defaults"]["subagents"][key]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_agent_comes_before_the_defaults_and_these_before_the_built_in() {
        let check = |own: Value, default: Value, expected: u8| {
            let config = json!({ "agents": {
                "defaults": { "subagents": { "maxDepth": default } },
                "list": [{ "id": " Scout ", "subagents": { "maxDepth": own } }],
            }});
            assert_eq!(resolve_max_depth(&config, "scout").get(), expected, "{config}");
        };
        check(json!(2), json!(5), 2);
        check(json!(null), json!(5), 5);
        check(json!("2"), json!(5), 5);
        check(json!(null), json!(null), 3);
        check(json!(0), json!(5), 1);
        check(json!(-7.5), json!(5), 1);
        check(json!(2.999), json!(5), 2);
        check(json!(1e300), json!(5), 10);
        for config in [json!(null), json!([]), json!({ "agents": 1 })] {
            assert_eq!(resolve_max_depth(&config, "scout"), built_in::MAX_DEPTH);
            assert!(!resolve_allow_recursive_spawn(&config, "scout"));
        }
    }

    #[test]
    fn what_is_no_number_is_no_depth() {
        for levels in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(clamp_max_depth(levels), None);
        }
    }

    #[test]
    fn only_true_is_true() {
        let config = json!({ "agents": { "list": [
            { "id": "a", "subagents": { "allowRecursiveSpawn": "true" } },
            { "id": "b", "subagents": { "allowRecursiveSpawn": false } },
        ], "defaults": { "subagents": { "allowRecursiveSpawn": true } } } });
        assert!(resolve_allow_recursive_spawn(&config, "a"), "a wrong type counts as absent");
        assert!(!resolve_allow_recursive_spawn(&config, "b"));
    }
}
