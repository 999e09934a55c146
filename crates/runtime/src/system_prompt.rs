//! The system prompt that tells an agent its position in the tree. Pure.

use crate::Launch;
use offshoot_model::{AgentId, AgentSummary, BudgetGrant, DelegationContext, TraceStep};

/// The text that goes behind the program's own instructions; none where there is nothing to say.
pub fn system_prompt(launch: &Launch, may_spawn: bool) -> Option<String> {
    let (same, own) = system_prompt_in_parts(launch, may_spawn);
    match (same, own) {
        (Some(same), Some(own)) if launch.depth > 0 || may_spawn => Some(format!("{same}\n{own}")),
        (Some(same), Some(own)) => Some(format!("{same}\n\n{own}")),
        (same, own) => same.or(own),
    }
}

/// The same in two parts: the one that all children of a run with one agent have in common, and what the run has to spend. A runtime that
/// sends values in front of the task puts the second part behind them, so that a service that keeps prompts in a cache finds them there.
pub fn system_prompt_in_parts(
    launch: &Launch,
    may_spawn: bool,
) -> (Option<String>, Option<String>) {
    let mut parts = Vec::new();
    parts.extend(launch.system_prompt.as_deref().map(str::to_owned));
    if launch.depth > 0 {
        parts.push(CHILD.to_owned());
        parts.extend(descent(launch));
    }
    let lines = position(launch, may_spawn.then_some(Means::Tools));
    if !lines.is_empty() {
        parts.push(lines.join("\n"));
    }
    let same = (!parts.is_empty()).then(|| parts.join("\n\n"));
    (same, budget(launch.grant.budget, may_spawn))
}

const CHILD: &str = "\
You are a sub-agent: another agent has started you for one task, which is the first message you get.
- Do this task and nothing beside it.
- You are short-lived. Nothing that you do not write down or say outlives your answer.
- Your last message is your result. Only the agent that started you gets it, so it must be complete without anything else.
- You cannot ask back. Where something is missing, do what can be done and say what could not.";

/// The runs above it, and the request at the top where that is not its own task.
fn descent(launch: &Launch) -> Option<String> {
    let DelegationContext { parent_agent, parent_task_id, root_user_request, trace, .. } =
        &launch.delegation;
    let (parent, task) = (parent_agent.as_ref()?, parent_task_id.as_ref()?);
    let mut text = format!("The agent `{parent}` has started you, in its run {task}.");
    // Of two, the one line says it all.
    if trace.len() > 2 {
        text += &format!(" The agents from the first down to you: {}.", path(trace));
    }
    let request = one_line(root_user_request, MOST_OF_A_REQUEST);
    if !request.is_empty() && **root_user_request != *launch.task {
        text += "\nThe request that all of this is for, to understand your task by: ";
        text += &request;
    }
    Some(text)
}

/// The runs from the first one down, of a long chain the first and the last ones. The run itself has no id here: what is the same
/// for all children of a run stays in the caches of models.
fn path(trace: &[TraceStep]) -> String {
    let Some((own, above)) = trace.split_last() else { return String::new() };
    let step = |step: &TraceStep| format!("{} ({})", step.agent, step.run_id);
    let left_out = above.len().saturating_sub(MOST_STEPS);
    let mut steps: Vec<String> = above.iter().take(1).map(step).collect();
    if left_out > 0 {
        steps.push(format!("{left_out} more"));
    }
    steps.extend(above.iter().skip(1 + left_out).map(step));
    steps.push(own.agent.to_string());
    steps.join(" → ")
}

/// The same for a program, which asks with the command in place of tools: its position, and the agents that it may start. None where
/// it may start no agent by name.
pub fn guidance(launch: &Launch) -> Option<String> {
    let may_name = launch.may_spawn() && !launch.sub_agents.is_empty();
    may_name.then(|| {
        let lines = position(launch, Some(Means::Command)).into_iter();
        lines.chain(budget(launch.grant.budget, true)).collect::<Vec<_>>().join("\n") + "\n"
    })
}

/// The means by which an agent asks for children.
#[derive(Clone, Copy)]
enum Means {
    Tools,
    Command,
}

/// At most this many agents are described; others are named.
const MOST_DESCRIBED: usize = 30;

/// At most this many agents are named without a description; the others are counted.
const MOST_NAMED: usize = 30;

/// At most this many runs of the chain above stand in a prompt.
const MOST_STEPS: usize = 8;

/// At most this many characters of a description, and of a reason, stand in a prompt.
const MOST_CHARACTERS: usize = 200;

/// At most this many characters of the request at the top stand in a prompt.
const MOST_OF_A_REQUEST: usize = 600;

fn position(launch: &Launch, means: Option<Means>) -> Vec<String> {
    let (depth, most) = (launch.depth, launch.grant.max_depth);
    let mut lines = Vec::new();
    if depth > 0 || means.is_some() {
        lines.push(format!("You are at depth {depth} of at most {most}."));
    }
    if let Some(means) = means {
        lines.extend(means.words().map(str::to_owned));
        lines.extend(agents(launch, means));
    } else if depth > 0 && depth >= most {
        lines.push("This is the deepest level: you cannot start sub-agents.".to_owned());
    }
    lines
}

impl Means {
    const fn words(self) -> [&'static str; 2] {
        match self {
            Self::Tools => [
                "You may start sub-agents with the tools named sessions_*; their results come back to you alone.",
                // One call after the other is how most programs work, and a call that waits would hold up the next.
                "For several at once, start each without `wait`, then call sessions_wait.",
            ],
            Self::Command => [
                "You may start sub-agents: `\"$OFFSHOOT\" spawn --agent ID TASK`; `\"$OFFSHOOT\" wait` brings their results.",
                "`\"$OFFSHOOT\" delegate --wait TASK` chooses the agent by the words of the task, or prints `execute_directly`.",
            ],
        }
    }
}

/// The agents that may be named, and when to start one.
fn agents(launch: &Launch, means: Means) -> Vec<String> {
    let is_described = |agent: &AgentSummary| agent.description.is_some() || agent.why.is_some();
    let mut lines = Vec::new();
    if launch.sub_agents.iter().any(is_described) {
        lines.push("Agents you may start:".to_owned());
        // The preferred ones first: those are meant.
        let (preferred, others): (Vec<_>, Vec<_>) =
            launch.sub_agents.iter().partition(|agent| agent.why.is_some());
        let all: Vec<_> = preferred.into_iter().chain(others).collect();
        let (described, more) = all.split_at(all.len().min(MOST_DESCRIBED));
        lines.extend(described.iter().map(|agent| describe(agent)));
        if !more.is_empty() {
            lines.push(format!("- and {}", names(more.iter().map(|agent| &agent.id), means)));
        }
    } else if !launch.grant.agents.is_empty() {
        let names = names(launch.grant.agents.iter(), means);
        lines.push(format!("Agents you may start: {names}."));
    }
    let choice = match means {
        _ if lines.is_empty() => "",
        Means::Tools => {
            "Start one where the task, or a part of it, is what that agent is for, and where parts can be done at the same time. "
        }
        Means::Command => {
            "Start one where a part of the task is what that agent is for, and where parts can be done at the same time. "
        }
    };
    lines.push(format!(
        "{choice}Do small and closely connected work yourself: a sub-agent knows nothing but its task."
    ));
    lines
}

/// The names of agents, as many as a prompt has room for.
fn names<'a>(agents: impl ExactSizeIterator<Item = &'a AgentId>, means: Means) -> String {
    let more = agents.len().saturating_sub(MOST_NAMED);
    let mut names: Vec<String> = agents.take(MOST_NAMED).map(AgentId::to_string).collect();
    if more > 0 {
        names.push(match means {
            Means::Tools => {
                format!("{more} more, of which sessions_delegate finds the one that fits")
            }
            Means::Command => format!("{more} more: `\"$OFFSHOOT\" agents list` lists them"),
        });
    }
    names.join(", ")
}

fn describe(agent: &AgentSummary) -> String {
    let AgentSummary { id, description, why } = agent;
    let parts =
        [description, why].into_iter().flatten().map(|text| one_line(text, MOST_CHARACTERS));
    let parts: Vec<String> = parts.collect();
    match parts.is_empty() {
        true => format!("- {id}"),
        false => format!("- {id}: {}", parts.join(" — ")),
    }
}

/// The beginning of a text, in one line.
fn one_line(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
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
    line.push('.');
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
            meter: None,
            continues: false,
            run,
            root: RootId::new(run),
            key: SessionKey::parse("agent:main:main").expect("a key"),
            agent: AgentId::main(),
            depth,
            delegation: DelegationContext::default(),
            task: "t".into(),
            context: Vec::new(),
            context_manifest: None,
            input: Input::Prompt,
            command: None,
            ok_exit: Arc::from([]),
            output: OutputFormat::Text,
            schema: None,
            working_folder: Arc::new("/".into()),
            run_folder: "/r".into(),
            spool_folder: Arc::new("/s".into()),
            model: None,
            thinking: None,
            system_prompt: None,
            sub_agents: Arc::from([]),
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

    const ALONE: &str =
        "Do small and closely connected work yourself: a sub-agent knows nothing but its task.";

    const CHOICE: &str = "Start one where the task, or a part of it, is what that agent is for, and where parts can be done at the \
        same time.";

    #[test]
    fn where_it_stands() {
        let none = BudgetGrant::default();
        check(0, false, none, None);
        check(0, true, none, Some(&format!("You are at depth 0 of at most 3.\n{SPAWN}\n{ALONE}")));
        check(1, false, none, Some("CHILD\nYou are at depth 1 of at most 3."));
        let first = format!("CHILD\nYou are at depth 1 of at most 3.\n{SPAWN}\n{ALONE}");
        check(1, true, none, Some(&first));
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
            ["scout", "critic"].map(|id| AgentId::parse(id).expect("the text is no id")).into();
        let text = system_prompt(&launch, true);
        let text = text.expect("there is something to say");
        let named = format!("\nAgents you may start: scout, critic.\n{CHOICE} {ALONE}\n");
        assert!(text.contains(&named), "{text}");
        let spend =
            "You have 9000 tokens and 0.25 US dollars to spend, what your sub-agents use included.";
        assert!(text.ends_with(spend), "{text}");
    }

    #[test]
    fn what_siblings_have_in_common_stands_apart_from_what_each_may_spend() {
        let parts = |tokens| {
            let budget = BudgetGrant { tokens: Some(tokens), usd: None };
            system_prompt_in_parts(&launch(1, budget), false)
        };
        let (one, other) = (parts(9000), parts(100));
        assert_eq!(one.0, other.0);
        assert_eq!(one.1.as_deref(), Some("You have 9000 tokens to spend."));
        assert_eq!(other.1.as_deref(), Some("You have 100 tokens to spend."));
    }

    fn with_agents(
        agents: impl IntoIterator<Item = (String, Option<String>, Option<String>)>,
    ) -> Launch {
        let mut launch = launch(0, BudgetGrant::default());
        let summary =
            |(id, description, why): (String, Option<String>, Option<String>)| AgentSummary {
                id: AgentId::parse(&id).expect("the text is no id"),
                description: description.map(Into::into),
                why: why.map(Into::into),
            };
        launch.sub_agents = agents.into_iter().map(summary).collect();
        let ids = launch.sub_agents.iter().map(|agent| agent.id.clone()).collect();
        Arc::make_mut(&mut launch.grant).agents = ids;
        launch
    }

    #[test]
    fn agents_are_described_with_the_preferred_ones_first() {
        let text = |text: &str| Some(text.to_owned());
        let launch = with_agents([
            ("main".to_owned(), None, None),
            ("scout".to_owned(), text("Looks around\nand reports."), None),
            ("git".to_owned(), text("Knows git."), text("For commit formatting")),
        ]);
        let agents = "Agents you may start:\n\
            - git: Knows git. — For commit formatting\n\
            - main\n\
            - scout: Looks around and reports.\n";
        let tools = system_prompt(&launch, true).expect("there is something to say");
        let expected =
            format!("You are at depth 0 of at most 3.\n{SPAWN}\n{agents}{CHOICE} {ALONE}");
        assert_eq!(tools, expected);
        let command = guidance(&launch).expect("there is something to say");
        assert!(command.contains("`\"$OFFSHOOT\" delegate --wait TASK`"), "{command}");
        assert!(command.contains(agents), "{command}");
        assert!(!command.contains("sessions_"), "{command}");
        assert_eq!(guidance(&with_agents([])), None);
        let mut deepest = launch;
        deepest.depth = 3;
        assert_eq!(guidance(&deepest), None);
    }

    #[test]
    fn any_number_of_agents_stays_a_page() {
        let id = |n: usize| format!("a-name-of-an-agent-of-some-length-{n}");
        let check = |many: usize, words: Option<String>, end: &str, tokens: usize| {
            let launch = with_agents((0..many).map(|n| (id(n), words.clone(), words.clone())));
            for text in [system_prompt(&launch, true), guidance(&launch)] {
                let text = text.expect("there is something to say");
                assert!(text.contains(ALONE), "{text}");
                // About four bytes are a token.
                assert!(text.len() / 4 < tokens, "{} bytes of {many} agents", text.len());
            }
            let text = system_prompt(&launch, true).expect("there is something to say");
            assert!(text.contains(end), "{text}");
        };
        let long = Some("word ".repeat(1000));
        let more = |many: usize| {
            format!("-59, {many} more, of which sessions_delegate finds the one that fits\n")
        };
        check(30, long.clone(), "…\nStart one where", 4000);
        check(60, long.clone(), "-58, a-name-of-an-agent-of-some-length-59\n", 4500);
        check(100, long.clone(), &more(40), 4500);
        check(1000, long.clone(), &more(940), 4500);
        check(1000, Some("short".into()), &more(940), 1500);
        check(1000, None, "-29, 970 more, of which sessions_delegate finds", 600);
        check(10_000, long, &more(9940), 4500);
    }

    #[test]
    fn a_chain_of_any_length_stays_a_line() {
        let step = |agent: usize| TraceStep {
            agent: AgentId::parse(&format!("a{agent}")).expect("an id"),
            run_id: RunId::from_uuid(Uuid::nil()),
        };
        let mut launch = launch(1, BudgetGrant::default());
        launch.delegation = DelegationContext::new((0..500).map(step).collect(), "".into());
        let text = system_prompt(&launch, false).expect("there is something to say");
        let nil = Uuid::nil();
        assert!(text.contains(&format!("a0 ({nil}) → 491 more → a492 ({nil}) → ")), "{text}");
        assert!(text.contains(&format!("→ a498 ({nil}) → a499.")), "{text}");
    }

    #[test]
    fn a_child_is_told_of_those_above_it() {
        let step = |agent: &str| TraceStep {
            agent: AgentId::parse(agent).expect("the text is no id"),
            run_id: RunId::from_uuid(Uuid::nil()),
        };
        let check = |agents: &[&str], request: &str, expected: &str| {
            let mut launch = launch(1, BudgetGrant::default());
            let trace = agents.iter().map(|agent| step(agent)).collect();
            launch.delegation = DelegationContext::new(trace, request.into());
            let text = system_prompt(&launch, false).expect("there is something to say");
            let about = text.strip_prefix(CHILD).expect("the words for every child come first");
            assert_eq!(about, expected);
        };
        let request = "\nThe request that all of this is for, to understand your task by: ";
        // Its task is `t`.
        let nil = Uuid::nil();
        let by =
            |parent: &str| format!("\n\nThe agent `{parent}` has started you, in its run {nil}.");
        let by_main = by("main");
        let depth = "\n\nYou are at depth 1 of at most 3.";
        check(&["main", "a"], "t", &format!("{by_main}{depth}"));
        check(&["main", "a"], "", &format!("{by_main}{depth}"));
        let of_main = format!("{by_main}{request}ship it now{depth}");
        check(&["main", "a"], "ship it\nnow", &of_main);
        let of_flow = format!(
            "{} The agents from the first down to you: main ({nil}) → flow ({nil}) → git.{request}{}…{depth}",
            by("flow"),
            "x".repeat(MOST_OF_A_REQUEST)
        );
        check(&["main", "flow", "git"], &"x".repeat(10_000), &of_flow);
    }

    #[test]
    fn its_own_instructions_come_first() {
        let mut launch = launch(1, BudgetGrant::default());
        launch.system_prompt = Some("Be a critic.".into());
        let text = system_prompt(&launch, false).expect("there is something to say");
        assert_eq!(text, format!("Be a critic.\n\n{CHILD}\n\nYou are at depth 1 of at most 3."));
    }
}
