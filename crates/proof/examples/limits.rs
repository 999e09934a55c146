//! Prints the page of limits: `cargo run --example limits`.

#![expect(clippy::print_stdout, reason = "the page is its output")]

use offshoot_config::schema;
use offshoot_proof::{AtLimit, LIMITS, Limit, Proof};
use serde_json::Value;

const HEAD: &str = "\
# Limits

Made by `cargo xtask regenerate` from the table of limits. Keys stand below `agents.defaults.subagents`, or below `subagents` of one
agent; along a chain of agents the strictest value holds. Those of `host` stand in the user's or the system's file alone. `offshoot config resolve` shows the values that hold and where each was set, those of `host` too;
[refusals.md](refusals.md) says what to do about a refusal.

Each limit is proved in three ways. From outside, under your own configuration and at any time, by built-in agents that ask for more than it allows:

```sh
offshoot doctor --prove
```

A limit that is not set has nothing to prove. `allowCycles` is tried where there are two agents, and `maxIdenticalDelegations` where it lies
below `maxDepth`; where one cannot be tried, the result says why. Those of `host`, but for `host.memoryKeep`, are tried by two trees and by
reservations that count apart from all others.

After the fact, from the record of a tree, by code that shares nothing with the engine (the column *audit* names its rule):

```sh
offshoot run \"a task\" -- true
offshoot audit last
```

And by tests, of which the last column names one where no probe can try the limit.

| key | what it limits | built in | at the limit | audit | proof |
|---|---|---|---|---|---|
";

fn main() {
    let schema = schema();
    print!("{HEAD}");
    for limit in LIMITS {
        println!("{}", row(&schema, limit));
    }
}

fn row(schema: &Value, limit: &Limit) -> String {
    let (words, built_in) = facts(schema, limit.key);
    let at = match limit.at {
        AtLimit::Refused(code) => format!("refused: `{code}`"),
        AtLimit::Waits => "waits in line".to_owned(),
        AtLimit::Ended(code) => format!("ended: `{code}`"),
        AtLimit::Manner(words) => words.to_owned(),
    };
    let audit = limit.audited.map_or_else(String::new, |rule| format!("`{rule}`"));
    let proof = match limit.proof {
        Proof::Probe(_) | Proof::Trees => "`doctor --prove`".to_owned(),
        Proof::Test(test) => link(test),
    };
    format!("| `{}` | {words} | {built_in} | {at} | {audit} | {proof} |", limit.key)
}

/// Returns the description of a key and its built-in value, from the schema.
fn facts(schema: &Value, key: &str) -> (String, String) {
    let (mut section, key) = match key.strip_prefix("host.") {
        Some(key) => ("HostSettings".to_owned(), key),
        None => ("SubagentSettings".to_owned(), key),
    };
    let mut names = key.split('.').peekable();
    while let Some(name) = names.next() {
        let property = &schema["$defs"][&section]["properties"][name];
        if names.peek().is_none() {
            let words = property["description"].as_str().unwrap_or_default().replace('|', "\\|");
            let built_in = &property["default"];
            let built_in = if built_in.is_null() { String::new() } else { format!("`{built_in}`") };
            return (words, built_in);
        }
        section = reference(property).unwrap_or_default();
    }
    unreachable!("a key has at least one name")
}

/// Returns the name of the section that a property refers to, at whatever depth the reference stands.
fn reference(property: &Value) -> Option<String> {
    match property {
        Value::Object(fields) => match fields.get("$ref").and_then(Value::as_str) {
            Some(found) => found.strip_prefix("#/$defs/").map(str::to_owned),
            None => fields.values().find_map(reference),
        },
        Value::Array(items) => items.iter().find_map(reference),
        _ => None,
    }
}

/// Returns a link to a test, named `path::test` or by its file alone.
fn link(test: &str) -> String {
    let (path, name) = test.split_once("::").unwrap_or((test, ""));
    let file = path.rsplit('/').next().unwrap_or(path);
    match name {
        "" => format!("[`{file}`](../{path})"),
        name => format!("[`{file}::{name}`](../{path})"),
    }
}
