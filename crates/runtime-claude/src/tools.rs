//! Rights in the words of Claude Code's tools. Pure.

use std::collections::BTreeSet;

use offshoot_model::Rights;

/// The name under which our own tools are attached.
pub const OWN_SERVER: &str = "offshoot";

/// The tools as the program is told of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tools {
    /// The only ones of its own that it offers to the model; none leaves it to the program.
    pub built_in: Option<BTreeSet<String>>,
    /// The tools that need no permission. In print mode there is no user to give one.
    pub allowed: BTreeSet<String>,
    /// Never to be used.
    pub denied: BTreeSet<String>,
}

/// The program's own ways to start agents, to talk to agents that are not ours, and to come back after its turn: the tree
/// would grow where no limit counts.
const INNER_AGENTS: &[&str] = &[
    "Agent",
    "Task",
    "Workflow",
    "SendMessage",
    "ListAgents",
    "CronCreate",
    "CronDelete",
    "CronList",
    "ScheduleWakeup",
    "Monitor",
];

/// The vocabulary of rights, and the tools that each needs. `spawn` needs none of the program's.
const VOCABULARY: &[(&str, &[&str])] = &[
    ("read", &["Read"]),
    ("search", &["Glob", "Grep"]),
    ("write", &["Edit", "NotebookEdit", "Write"]),
    ("exec", &["Bash"]),
    ("fetch", &["WebFetch", "WebSearch"]),
    ("spawn", &[]),
];

impl Tools {
    /// Converts these rights. Tools that are granted by name need no permission; where everything is permitted because nothing
    /// was said, the user's own settings decide what does.
    ///
    /// A right of the vocabulary that is denied is taken away by naming what is left: the program has more tools than one
    /// that can do the same, and gets new ones.
    pub fn of(rights: &Rights, own_server: bool) -> Self {
        let mut tools = Self::default();
        tools.denied.extend(INNER_AGENTS.iter().map(ToString::to_string));
        for right in rights.deny.iter().filter(|right| known(right).is_none()) {
            tools.denied.insert(name(right));
        }
        match &rights.allow {
            Some(allow) => {
                let mut built_in = BTreeSet::new();
                for right in allow.iter().filter(|right| !rights.deny.contains(*right)) {
                    tools.grant(right, &mut built_in);
                }
                tools.built_in = Some(built_in);
            }
            None if rights.deny.iter().any(|right| known(right).is_some()) => {
                let left = VOCABULARY.iter().filter(|(right, _)| !rights.deny.contains(*right));
                let names = left.flat_map(|(_, names)| *names).map(ToString::to_string);
                tools.built_in = Some(names.collect());
            }
            None => {}
        }
        if own_server {
            tools.allowed.insert(format!("mcp__{OWN_SERVER}"));
        }
        tools
    }

    fn grant(&mut self, right: &str, built_in: &mut BTreeSet<String>) {
        if let Some(names) = known(right) {
            built_in.extend(names.iter().map(ToString::to_string));
            self.allowed.extend(names.iter().map(ToString::to_string));
            return;
        }
        let name = name(right);
        // `Bash(git *)` permits some uses of the tool `Bash`.
        let tool = name.split('(').next().unwrap_or_default();
        if INNER_AGENTS.contains(&tool) {
            return;
        }
        if !tool.starts_with("mcp__") {
            built_in.insert(tool.to_owned());
        }
        self.allowed.insert(name);
    }
}

/// The rights by which a tool of the program can be permitted, of which any will do: its own name, and the word of the
/// vocabulary. None for its own ways to start agents, which are never.
pub fn rights_of(tool: &str) -> Vec<String> {
    if INNER_AGENTS.contains(&tool) {
        return Vec::new();
    }
    let of_server = tool.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
    if let Some((server, tool)) = of_server {
        return vec![format!("mcp:{server}/{tool}"), format!("mcp:{server}")];
    }
    let word = VOCABULARY.iter().find(|(_, names)| names.contains(&tool)).map(|(word, _)| *word);
    [Some(tool), word].into_iter().flatten().map(str::to_owned).collect()
}

/// True if these rights permit any tool of this server.
pub(crate) fn permits_server(rights: &Rights, server: &str) -> bool {
    let whole = format!("mcp:{server}");
    let of_server = |right: &String| {
        right.strip_prefix(&whole).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    !rights.deny.contains(&whole)
        && rights.allow.as_ref().is_none_or(|allow| allow.iter().any(of_server))
}

fn known(right: &str) -> Option<&'static [&'static str]> {
    VOCABULARY.iter().find(|(known, _)| *known == right).map(|(_, names)| *names)
}

/// A right outside the vocabulary in the program's notation.
fn name(right: &str) -> String {
    match right.strip_prefix("mcp:") {
        Some(server_and_tool) => format!("mcp__{}", server_and_tool.replacen('/', "__", 1)),
        None => right.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_has_its_name_and_its_word() {
        #[track_caller]
        fn check(tool: &str, expected: &[&str]) {
            assert_eq!(rights_of(tool), expected);
        }
        check("Bash", &["Bash", "exec"]);
        check("Grep", &["Grep", "search"]);
        check("Skill", &["Skill"]);
        check("mcp__db__query", &["mcp:db/query", "mcp:db"]);
        check("Agent", &[]);
    }

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(ToString::to_string).collect()
    }

    fn check(
        allow: Option<&[&str]>,
        deny: &[&str],
        built_in: Option<&[&str]>,
        allowed: &[&str],
        denied: &[&str],
    ) {
        let rights = Rights { allow: allow.map(set), deny: set(deny) };
        let mut expected = set(denied);
        expected.extend(set(INNER_AGENTS));
        let expected =
            Tools { built_in: built_in.map(set), allowed: set(allowed), denied: expected };
        assert_eq!(Tools::of(&rights, false), expected, "{rights:?}");
    }

    #[test]
    fn the_table_of_rights() {
        check(None, &[], None, &[], &[]);
        check(Some(&[]), &[], Some(&[]), &[], &[]);
        let read = ["Glob", "Grep", "Read"];
        check(Some(&["read", "search"]), &[], Some(&read), &read, &[]);
        let write = ["Edit", "NotebookEdit", "Write"];
        check(Some(&["write"]), &[], Some(&write), &write, &[]);
        check(Some(&["exec", "spawn"]), &[], Some(&["Bash"]), &["Bash"], &[]);
        let web = ["WebFetch", "WebSearch"];
        check(Some(&["fetch"]), &[], Some(&web), &web, &[]);
        check(Some(&["read", "exec"]), &["exec"], Some(&["Read"]), &["Read"], &[]);
        check(Some(&["Skill"]), &[], Some(&["Skill"]), &["Skill"], &[]);
        check(Some(&["Bash(git *)"]), &[], Some(&["Bash"]), &["Bash(git *)"], &[]);
        let mcp = ["mcp__db", "mcp__git__log"];
        check(Some(&["mcp:git/log", "mcp:db"]), &[], Some(&[]), &mcp, &[]);
        check(None, &["mcp:git/push"], None, &[], &["mcp__git__push"]);
        check(None, &["Bash(rm *)"], None, &[], &["Bash(rm *)"]);
    }

    #[test]
    fn what_is_denied_leaves_no_other_way() {
        let left =
            ["Edit", "Glob", "Grep", "NotebookEdit", "Read", "WebFetch", "WebSearch", "Write"];
        check(None, &["exec"], Some(&left), &[], &[]);
    }

    #[test]
    fn inner_agents_cannot_be_granted() {
        for right in ["Agent", "Task", "Task(*)", "Workflow"] {
            check(Some(&[right]), &[], Some(&[]), &[], &[]);
        }
    }

    #[test]
    fn our_own_tools_need_no_permission() {
        let tools = Tools::of(&Rights { allow: Some(set(&[])), ..Rights::all() }, true);
        assert_eq!(tools.allowed, set(&["mcp__offshoot"]));
    }

    #[test]
    fn a_server_is_started_where_any_of_its_tools_may_be_used() {
        let check = |allow: Option<&[&str]>, deny: &[&str], expected| {
            let rights = Rights { allow: allow.map(set), deny: set(deny) };
            assert_eq!(permits_server(&rights, "git"), expected, "{rights:?}");
        };
        check(None, &[], true);
        check(None, &["mcp:git/push"], true);
        check(None, &["mcp:git"], false);
        check(Some(&["read", "mcp:github/log"]), &[], false);
        check(Some(&["mcp:git/log"]), &[], true);
        check(Some(&["mcp:git"]), &[], true);
    }
}
