//! May it spawn this agent?

use offshoot_config::{AgentDefinition, AgentId, AllowAgents};
use offshoot_model::{Refusal, RefusalCode};

use super::Question;
use crate::term::governed_by;

pub(super) fn check(question: &Question<'_>) -> Result<(), Refusal> {
    let terms = question.caller.terms;
    let (caller, target) = (terms.agent(), question.target);
    // The caller's own agent exists, defined or not: it is running.
    if target != caller && !question.config.is_defined(target) {
        let message = format!("the agent `{target}` is not defined; {}", allowed(question));
        let nearest = question.config.nearest_agent(target).filter(|id| is_allowed(question, id));
        let hint = match nearest {
            Some(nearest) => format!("name one of the allowed agents; the nearest is `{nearest}`"),
            None => "name one of the allowed agents".to_owned(),
        };
        return Err(Refusal::new(RefusalCode::UnknownAgent, message).with_hint(hint));
    }
    if is_allowed(question, target) {
        return Ok(());
    }
    let message = format!("the agent `{caller}` may not spawn `{target}`; {}", allowed(question));
    let refusal = Refusal::new(RefusalCode::AgentNotAllowed, message).with_hint(format!(
        "name one of the allowed agents; the operator can add `{target}` to \
         subagents.allowAgents of `{caller}`"
    ));
    // Where no list is set, the built-in rule is the agent itself.
    let itself = AllowAgents::List(vec![caller.clone()]);
    let setting = governed_by("subagents.allowAgents", terms.allow_agents.as_ref(), Some(&itself));
    Err(refusal.governed_by(setting))
}

fn is_allowed(question: &Question<'_>, target: &AgentId) -> bool {
    let terms = question.caller.terms;
    match terms.allow_agents.as_ref().map(|term| &term.value) {
        None => target == terms.agent(),
        Some(agents) => agents.allows(target),
    }
}

/// The agents that would have been allowed.
fn allowed(question: &Question<'_>) -> String {
    let terms = question.caller.terms;
    let ids: Vec<&AgentId> = match terms.allow_agents.as_ref().map(|term| &term.value) {
        None => vec![terms.agent()],
        Some(AllowAgents::List(ids)) => ids.iter().collect(),
        Some(AllowAgents::Any) => question.config.agents().map(AgentDefinition::id).collect(),
    };
    if ids.is_empty() {
        return "none is allowed".to_owned();
    }
    let ids: Vec<String> = ids.iter().map(|id| format!("`{id}`")).collect();
    format!("allowed: {}", ids.join(", "))
}
