//! The system prompt that tells an agent its position in the tree. Pure.

use std::fmt::Write;

use crate::Launch;
use offshoot_model::{AgentId, BudgetGrant};

/// The text that goes behind the program's own instructions; none where there is nothing to say.
pub fn system_prompt(launch: &Launch, may_spawn: bool) -> Option<String> {
    let mut parts = Vec::new();
    parts.extend(launch.system_prompt.as_deref().map(str::to_owned));
    if launch.depth > 0 {
        parts.push(CHILD.to_owned());
    }
    let lines = position(launch, may_spawn);
    if !lines.is_empty() {
        parts.push(lines.join("\n"));
    }
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

const CHILD: &str = "\
You are a sub-agent: another agent has started you for one task, which is the first message you get.
- Do this task and nothing beside it.
- You are short-lived. Nothing that you do not write down or say outlives your answer.
- Your last message is your result. Only the agent that started you gets it, so it must be complete without anything else.
- You cannot ask back. Where something is missing, do what can be done and say what could not.";

fn position(launch: &Launch, may_spawn: bool) -> Vec<String> {
    let (depth, most) = (launch.depth, launch.grant.max_depth);
    let mut lines = Vec::new();
    if depth >= 2 || may_spawn {
        lines.push(format!("You are at depth {depth} of at most {most}."));
    }
    if may_spawn {
        lines.push(
            "You may start sub-agents with the tools named sessions_*; their results come back to you alone."
                .to_owned(),
        );
        // One call after the other is how most programs work, and a call that waits would hold up the next.
        lines.push(
            "For several at once, start each without `wait`, then call sessions_wait.".to_owned(),
        );
        let agents: Vec<&str> = launch.grant.agents.iter().map(AgentId::as_str).collect();
        if !agents.is_empty() {
            lines.push(format!("Agents you may start: {}.", agents.join(", ")));
        }
    } else if depth > 0 && depth >= most {
        lines.push("This is the deepest level: you cannot start sub-agents.".to_owned());
    }
    lines.extend(budget(launch.grant.budget, may_spawn));
    lines
}

fn budget(budget: BudgetGrant, may_spawn: bool) -> Option<String> {
    let mut amounts = Vec::new();
    amounts.extend(budget.tokens.map(|tokens| format!("{tokens} tokens")));
    amounts.extend(budget.usd.map(|usd| format!("{usd} US dollars")));
    if amounts.is_empty() {
        return None;
    }
    let mut line = format!("You have {} to spend", amounts.join(" and "));
    if may_spawn {
        line.push_str(", what your sub-agents use included");
    }
    write!(line, ".").expect("writing into a string cannot fail");
    Some(line)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::{Input, OutputFormat};
    use offshoot_model::{AgentId, Grant, MicroUsd, RootId, RunId, SessionKey};
    use uuid::Uuid;

    use super::*;

    fn launch(depth: u32, budget: BudgetGrant) -> Launch {
        let run = RunId::from_uuid(Uuid::nil());
        Launch {
            continues: false,
            run,
            root: RootId::new(run),
            key: SessionKey::parse("agent:main:main").expect("a key"),
            agent: AgentId::main(),
            depth,
            task: "t".into(),
            context: Vec::new(),
            context_manifest: None,
            input: Input::Prompt,
            command: None,
            ok_exit: Arc::from([]),
            output: OutputFormat::Text,
            working_folder: Arc::new("/".into()),
            run_folder: "/r".into(),
            spool_folder: Arc::new("/s".into()),
            model: None,
            thinking: None,
            system_prompt: None,
            grant: Arc::new(Grant { max_depth: 3, budget, ..Grant::unbounded() }),
            pass: None,
        }
    }

    /// Checks the text behind the words for every child.
    fn check(depth: u32, may_spawn: bool, budget: BudgetGrant, expected: Option<&str>) {
        let text = system_prompt(&launch(depth, budget), may_spawn);
        let text = text.map(|text| text.replace(CHILD, "CHILD").replace("\n\n", "\n"));
        assert_eq!(text.as_deref(), expected, "depth {depth}, may spawn: {may_spawn}");
    }

    const SPAWN: &str = "You may start sub-agents with the tools named sessions_*; their results come back to you alone.\n\
        For several at once, start each without `wait`, then call sessions_wait.";

    #[test]
    fn where_it_stands() {
        let none = BudgetGrant::default();
        check(0, false, none, None);
        check(0, true, none, Some(&format!("You are at depth 0 of at most 3.\n{SPAWN}")));
        check(1, false, none, Some("CHILD"));
        check(1, true, none, Some(&format!("CHILD\nYou are at depth 1 of at most 3.\n{SPAWN}")));
        check(2, false, none, Some("CHILD\nYou are at depth 2 of at most 3."));
        let deepest = "CHILD\nYou are at depth 3 of at most 3.\n\
                       This is the deepest level: you cannot start sub-agents.";
        check(3, false, none, Some(deepest));
    }

    #[test]
    fn what_it_may_spend_and_whom_it_may_start() {
        let tokens = BudgetGrant { tokens: Some(9000), usd: None };
        check(0, false, tokens, Some("You have 9000 tokens to spend."));
        let both = BudgetGrant { usd: Some(MicroUsd::from_micros(250_000)), ..tokens };
        let mut launch = launch(0, both);
        Arc::make_mut(&mut launch.grant).agents =
            ["scout", "critic"].map(|id| AgentId::parse(id).expect("an id")).into();
        let text = system_prompt(&launch, true);
        let text = text.expect("there is something to say");
        assert!(text.contains("\nAgents you may start: scout, critic.\n"), "{text}");
        let spend =
            "You have 9000 tokens and 0.25 US dollars to spend, what your sub-agents use included.";
        assert!(text.ends_with(spend), "{text}");
    }

    #[test]
    fn its_own_instructions_come_first() {
        let mut launch = launch(1, BudgetGrant::default());
        launch.system_prompt = Some("Be a critic.".into());
        let text = system_prompt(&launch, false).expect("there is something to say");
        assert_eq!(text, format!("Be a critic.\n\n{CHILD}"));
    }
}
