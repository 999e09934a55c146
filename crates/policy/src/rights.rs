//! The rights of a session: the intersection along its chain, then the rules for its depth.

use std::collections::BTreeSet;

use offshoot_config::{AgentDefinition, ToolList};
use offshoot_model::{NEVER_FOR_SUB_AGENTS, Rights};

use crate::RuntimeFacts;
use crate::term::Term;

/// To ask for children.
pub(crate) const SPAWN: &str = "spawn";
/// To start programs, and with them everything that the user may do.
pub(crate) const EXEC: &str = "exec";
/// Rights that a program has anyway.
const IMPLIED_BY_EXEC: [&str; 4] = ["read", "write", "search", "fetch"];

/// One list of tools of a chain.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolRule {
    pub(crate) scope: Scope,
    pub(crate) term: Term<ToolList>,
    rights: Rights,
}

/// For whom a list of tools holds, besides everything below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The agent itself.
    Own,
    /// The sub-agents.
    Below,
    /// The sessions at this depth.
    Depth(u8),
}

impl ToolRule {
    pub(crate) fn new(scope: Scope, term: Term<ToolList>) -> Self {
        let rights = spelled_out(term.value.rights());
        Self { scope, term, rights }
    }

    /// Returns the rule of an agent's definition for the agent itself.
    pub(crate) fn of_definition(definition: &AgentDefinition) -> Option<Self> {
        let tools = definition.tools.as_ref()?;
        let term = Term::new(tools.clone(), Some(definition.id().clone()));
        let mut rule = Self::new(Scope::Own, term);
        // An agent that may delegate has the right to spawn, whether its tools name it or not.
        let delegates = definition.can_delegate.as_ref().is_some_and(|may| may.value);
        if let (true, Some(allow)) = (delegates, &mut rule.rights.allow) {
            allow.insert(SPAWN.to_owned());
        }
        Some(rule)
    }

    /// True if this rule of a chain holds at this depth. An agent's own list binds it and everything below it, because no agent
    /// grants a right that it does not hold.
    pub(crate) fn holds_at(&self, depth: u32) -> bool {
        match self.scope {
            Scope::Own => true,
            Scope::Below => depth > 0,
            Scope::Depth(own) => u32::from(own) == depth,
        }
    }

    pub(crate) fn rights(&self) -> &Rights {
        &self.rights
    }

    /// The key within the agent.
    pub(crate) fn key(&self) -> String {
        match self.scope {
            Scope::Own => "tools".to_owned(),
            Scope::Below => "subagents.tools".to_owned(),
            Scope::Depth(depth) => format!("subagents.toolsByDepth.{depth}"),
        }
    }
}

/// A list that permits `exec` permits what `exec` implies, unless it denies that by name. Without this, narrowing
/// `exec` to `read` would leave nothing.
pub(crate) fn spelled_out(mut rights: Rights) -> Rights {
    if let Some(allow) = &mut rights.allow
        && allow.contains(EXEC)
        && !rights.deny.contains(EXEC)
    {
        allow.extend(IMPLIED_BY_EXEC.map(str::to_owned));
    }
    rights
}

/// Returns the most rights that a child at this depth can be given.
pub(crate) fn grantable(held: &Rights, rules: &[ToolRule], depth: u32) -> Rights {
    let mut rights = spelled_out(held.clone());
    for rule in rules.iter().filter(|rule| rule.holds_at(depth)) {
        rights = rights.narrowed_by(&rule.rights);
    }
    if depth > 0 {
        rights.deny.extend(NEVER_FOR_SUB_AGENTS.map(str::to_owned));
    }
    rights
}

/// Returns the rights that were asked for by name and cannot be given.
pub(crate) fn missing<'a>(asked: &'a Rights, grantable: &Rights) -> Vec<&'a str> {
    let named = asked.allow.iter().flatten().filter(|right| !asked.deny.contains(*right));
    named.filter(|right| !grantable.permits(right)).map(String::as_str).collect()
}

/// Returns the rights that are denied and that this runtime cannot keep from a session.
pub(crate) fn unenforceable<'a>(rights: &'a Rights, runtime: &RuntimeFacts) -> Vec<&'a str> {
    let Some(enforced) = &runtime.enforces else { return Vec::new() };
    // A list of what is allowed denies the rest of the vocabulary; what a runtime calls its own is denied by name.
    let withheld = IMPLIED_BY_EXEC.into_iter().chain([EXEC]).filter(|right| !rights.permits(right));
    let denied = rights.deny.iter().map(String::as_str).filter(|right| !is_ours(right));
    let missing: BTreeSet<&str> =
        withheld.chain(denied).filter(|right| !enforced.contains(*right)).collect();
    missing.into_iter().collect()
}

/// Rights that are exercised by asking us, and that no runtime needs to withhold.
fn is_ours(right: &str) -> bool {
    right == SPAWN || right.starts_with("mcp:") || NEVER_FOR_SUB_AGENTS.contains(&right)
}

#[cfg(test)]
mod tests {
    use super::*;
    use offshoot_config::{Origin, Valued};

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn rights(allow: Option<&[&str]>, deny: &[&str]) -> Rights {
        Rights { allow: allow.map(set), deny: set(deny) }
    }

    fn rule(scope: Scope, allow: Option<&[&str]>, deny: &[&str]) -> ToolRule {
        let words = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let tools = ToolList { allow: allow.map(words), deny: words(deny) };
        ToolRule::new(scope, Term::new(Valued::new(tools, Origin::BuiltIn), None))
    }

    #[test]
    fn exec_implies_what_a_program_can_do() {
        let check = |held: Rights, right: &str, expected: bool| {
            assert_eq!(spelled_out(held.clone()).permits(right), expected, "{held:?} {right}");
        };
        check(rights(Some(&["exec"]), &[]), "read", true);
        check(rights(Some(&["exec"]), &["read"]), "read", false);
        check(rights(Some(&["exec"]), &["exec"]), "read", false);
        check(rights(Some(&["exec"]), &[]), "spawn", false);
        check(rights(Some(&["read"]), &[]), "exec", false);
    }

    #[test]
    fn rules_narrow_at_their_depth() {
        let rules =
            [rule(Scope::Below, None, &["fetch"]), rule(Scope::Depth(2), Some(&["read"]), &[])];
        let check = |depth: u32, right: &str, expected: bool| {
            let found = grantable(&rights(Some(&["exec"]), &[]), &rules, depth).permits(right);
            assert_eq!(found, expected, "{right} at {depth}");
        };
        check(1, "read", true);
        check(1, "exec", true);
        check(1, "fetch", false);
        check(2, "read", true);
        check(2, "exec", false);
        check(0, "fetch", true);
    }

    #[test]
    fn some_tools_are_for_roots_alone() {
        for tool in NEVER_FOR_SUB_AGENTS {
            assert!(grantable(&Rights::all(), &[], 0).permits(tool));
            assert!(!grantable(&Rights::all(), &[], 1).permits(tool));
            let held = rights(Some(&[tool]), &[]);
            assert!(!grantable(&held, &[rule(Scope::Below, Some(&[tool]), &[])], 3).permits(tool));
        }
    }

    #[test]
    fn what_a_runtime_cannot_keep_away_is_named() {
        let check = |held: Rights, enforces: Option<&[&str]>, expected: &[&str]| {
            let enforces = enforces.map(set);
            let runtime = RuntimeFacts { enforces, ..RuntimeFacts::of_a_command("x") };
            assert_eq!(unenforceable(&held, &runtime), expected, "{held:?} {runtime:?}");
        };
        check(Rights::all(), Some(&[]), &[]);
        check(rights(None, &["write"]), Some(&[]), &["write"]);
        check(rights(None, &["write"]), Some(&["write"]), &[]);
        check(rights(None, &["write"]), None, &[]);
        check(rights(None, &["spawn", "mcp:files/read", "cron"]), Some(&[]), &[]);
        check(rights(None, &["WebSearch"]), Some(&[]), &["WebSearch"]);
        check(rights(Some(&["read"]), &[]), Some(&["write", "exec"]), &["fetch", "search"]);
    }
}
