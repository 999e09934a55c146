//! `offshoot mcp`, driven by the official client libraries inside real trees. What holds for one library holds for
//! both: every test is a plan that both carry out.

mod place;

mod calls;
mod errors;
mod many;
mod roots;
mod schemas;
mod waits;

use offshoot_mcp_clients::Library;
use place::{Place, answer};
use serde_json::{Value, json};

/// Agents for the trees: one that answers with its task, one with what it may read, one that never ends, one
/// that fails half way.
const AGENTS: &str = r#"
[agents.defaults.subagents]
allowAgents = ["*"]
[[agents.list]]
id = "main"
[[agents.list]]
id = "echo"
command = ["cat"]
[[agents.list]]
id = "reader"
command = ["sh", "-c", "sed -n 's/^Read //p' | xargs cat"]
[[agents.list]]
id = "slow"
command = ["sleep", "1000"]
[[agents.list]]
id = "half"
command = ["sh", "-c", "echo half; exit 7"]
"#;

/// Carries out the steps with both libraries, each as the root of a tree of its own, and hands over the reports.
fn both(test: &str, flags: &[&str], steps: &Value, check: impl Fn(Library, &Value)) {
    served(test, flags, &["mcp"], steps, check);
}

/// The same with words of its own for the server.
fn served(
    test: &str,
    flags: &[&str],
    server: &[&str],
    steps: &Value,
    check: impl Fn(Library, &Value),
) {
    for library in Library::ALL {
        let Some(client) = library.install(test) else { continue };
        let place = Place::new(AGENTS);
        let words = client.words(&json!({ "server": place.server(server), "steps": steps }));
        let report = place.tree(flags, &words);
        check(library, &report);
    }
}

/// Names of the tools of a list.
fn names(list: &Value) -> Vec<&str> {
    let tools = list["tools"].as_array().expect("a list of tools");
    tools.iter().map(|tool| tool["name"].as_str().expect("a name")).collect()
}
