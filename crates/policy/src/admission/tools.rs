//! Which rights?

use offshoot_config::AgentDefinition;
use offshoot_model::{Origin, Refusal, RefusalCode, Rights, SpawnRequest};

use super::{Question, is_operators_command};
use crate::rights::{EXEC, grantable, missing, spelled_out, unenforceable};
use crate::term::governed_by as governed_by_term;
use crate::{RuntimeFacts, Terms};

/// What the child gets: what its caller holds, narrowed by the chain, by its depth, by its own definition and by the
/// request.
pub(super) fn check(question: &Question<'_>) -> Result<Rights, Refusal> {
    let Question { caller, request, origin, .. } = *question;
    let grantable = grantable(&caller.grant.tools, &caller.terms.rules, caller.depth + 1);
    if let Some(asked) = &request.tools {
        let missing = missing(asked, &grantable);
        if let Some(first) = missing.first() {
            let message = format!("this session cannot grant {}", list(&missing));
            let refusal = Refusal::new(RefusalCode::ToolsNotGrantable, message)
                .with_hint("ask for fewer tools, or for none in particular");
            return Err(governed_by(question, refusal, first));
        }
    }
    // A command of the caller's own choosing can do whatever the user may do.
    if origin == Origin::Agent && request.command.is_some() && !grantable.permits(EXEC) {
        let message =
            format!("a command needs the right `{EXEC}`, which this session cannot grant");
        let refusal = Refusal::new(RefusalCode::ToolsNotGrantable, message)
            .with_hint("name an agent that the operator has defined with a command");
        return Err(governed_by(question, refusal, EXEC));
    }
    let rights = narrow(grantable, question.definition, request);
    if !is_operators_command(question.definition, request, origin) {
        check_enforceable(&rights, question.runtime)?;
    }
    Ok(rights)
}

/// What a root gets: what its definition lets it use, narrowed by the rules for depth 0 and by the request.
pub(super) fn of_root(
    terms: &Terms,
    definition: Option<&AgentDefinition>,
    request: &SpawnRequest,
    runtime: Option<&RuntimeFacts>,
) -> Result<Rights, Refusal> {
    // Rules without a depth are for sub-agents.
    let rules: Vec<_> = terms.rules.iter().filter(|rule| rule.depth == Some(0)).cloned().collect();
    let rights = narrow(grantable(&Rights::all(), &rules, 0), definition, request);
    if let Some(runtime) = runtime
        && !is_operators_command(definition, request, Origin::Root)
    {
        check_enforceable(&rights, runtime)?;
    }
    Ok(rights)
}

/// Names the rule of the caller's chain that denies this right, if one does: otherwise the caller does not hold it, or
/// nobody below a root ever does.
pub(super) fn governed_by(question: &Question<'_>, mut refusal: Refusal, right: &str) -> Refusal {
    let (terms, depth) = (question.caller.terms, question.caller.depth);
    let rule = terms.rules.iter().find(|rule| rule.holds_at(depth + 1) && !rule.permits(right));
    if let Some(rule) = rule {
        refusal.governed_by = governed_by_term(&rule.key(), Some(&rule.term), None);
    }
    refusal
}

fn narrow(rights: Rights, definition: Option<&AgentDefinition>, request: &SpawnRequest) -> Rights {
    let rights = rights.narrowed_by(&spelled_out(Terms::own_rights(definition)));
    match &request.tools {
        Some(asked) => rights.narrowed_by(&spelled_out(asked.clone())),
        None => rights,
    }
}

fn check_enforceable(rights: &Rights, runtime: &RuntimeFacts) -> Result<(), Refusal> {
    let loose = unenforceable(rights, runtime);
    if loose.is_empty() {
        return Ok(());
    }
    let message = format!("the runtime `{}` cannot withhold {}", runtime.name, list(&loose));
    Err(Refusal::new(RefusalCode::ToolsNotGrantable, message).with_hint(
        "use a runtime that can, or an agent that the operator has defined with a command",
    ))
}

fn list(rights: &[&str]) -> String {
    rights.iter().map(|right| format!("`{right}`")).collect::<Vec<_>>().join(", ")
}
