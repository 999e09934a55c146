//! The rights that a child gets.

use std::sync::Arc;

use offshoot_config::AgentDefinition;
use offshoot_model::{Origin, Refusal, RefusalCode, Rights, SpawnRequest};

use super::{Question, is_operators_command};
use crate::rights::{EXEC, ToolRule, grantable, missing, spelled_out, unenforceable};
use crate::term::governed_by as governed_by_term;
use crate::{RuntimeFacts, Terms};

/// Returns the rights of the child: those that its caller holds, narrowed by the chain, by its depth, by its own definition and
/// by the request.
pub(super) fn check(question: &Question<'_>) -> Result<Arc<Rights>, Refusal> {
    let Question { caller, request, origin, .. } = *question;
    let depth = caller.depth + 1;
    let rights = match known(question) {
        Some(rights) => rights,
        None => Arc::new(given(question, depth)?),
    };
    if !is_operators_command(question.definition, request, origin) {
        check_enforceable(&rights, question.runtime)
            .map_err(|(refusal, right)| governed_by(caller.terms, depth, refusal, &right))?;
    }
    Ok(rights)
}

/// The rights of the last child, where the same were asked for: they depend on nothing but the caller, the agent and the tools
/// that the request names.
fn known(question: &Question<'_>) -> Option<Arc<Rights>> {
    let Question { caller, request, target, origin, .. } = *question;
    let last = caller.last_child?;
    let is_alike = last.agent == *target && !last.named_tools;
    // A command of the caller's own choosing needs a right of its own.
    let names_command = origin == Origin::Agent && request.command.is_some();
    let is_plain = request.tools.is_none() && !names_command;
    (is_alike && is_plain).then(|| Arc::clone(&last.grant.tools))
}

fn given(question: &Question<'_>, depth: u32) -> Result<Rights, Refusal> {
    let Question { caller, request, origin, .. } = *question;
    let grantable = grantable(&caller.grant.tools, &caller.terms.rules, depth);
    if let Some(asked) = &request.tools {
        let missing = missing(asked, &grantable);
        if let Some(first) = missing.first() {
            let message = format!("this session cannot grant {}", list(&missing));
            let refusal = Refusal::new(RefusalCode::ToolsNotGrantable, message)
                .with_hint("ask for fewer tools, or for none in particular");
            return Err(governed_by(caller.terms, depth, refusal, first));
        }
    }
    // A command of the caller's own choosing can do whatever the user may do.
    if origin == Origin::Agent && request.command.is_some() && !grantable.permits(EXEC) {
        let message =
            format!("a command needs the right `{EXEC}`, which this session cannot grant");
        let refusal = Refusal::new(RefusalCode::ToolsNotGrantable, message)
            .with_hint("name an agent that the operator has defined with a command");
        return Err(governed_by(caller.terms, depth, refusal, EXEC));
    }
    let own = question.definition.and_then(ToolRule::of_definition);
    Ok(narrow(grantable, own.as_ref(), request))
}

/// Returns the rights of a root: those of its definition, narrowed by the rules for depth 0 and by the request.
pub(super) fn of_root(
    terms: &Terms,
    definition: Option<&AgentDefinition>,
    request: &SpawnRequest,
    runtime: Option<&RuntimeFacts>,
) -> Result<Arc<Rights>, Refusal> {
    let rights = narrow(grantable(&Rights::all(), &terms.rules, 0), None, request);
    if let Some(runtime) = runtime
        && !is_operators_command(definition, request, Origin::Root)
    {
        check_enforceable(&rights, runtime)
            .map_err(|(refusal, right)| governed_by(terms, 0, refusal, &right))?;
    }
    Ok(Arc::new(rights))
}

/// Names the first rule of the chain that denies this right at this depth. Where there is none, an earlier request has
/// given it away, or no run below a root ever has it.
pub(super) fn governed_by(terms: &Terms, depth: u32, refusal: Refusal, right: &str) -> Refusal {
    let denies = |rule: &&ToolRule| rule.holds_at(depth) && !rule.rights().permits(right);
    let rule = terms.rules.iter().find(denies);
    refusal.governed_by(rule.and_then(|it| governed_by_term(&it.key(), Some(&it.term), None)))
}

fn narrow(mut rights: Rights, own: Option<&ToolRule>, request: &SpawnRequest) -> Rights {
    if let Some(own) = own {
        rights = rights.narrowed_by(own.rights());
    }
    if let Some(asked) = &request.tools {
        rights = rights.narrowed_by(&spelled_out(asked.clone()));
    }
    rights
}

/// On refusal also the first right that is not kept away.
pub(super) fn check_enforceable(
    rights: &Rights,
    runtime: &RuntimeFacts,
) -> Result<(), (Refusal, String)> {
    let loose = unenforceable(rights, runtime);
    let Some(&first) = loose.first() else { return Ok(()) };
    let message = format!("the runtime `{}` cannot withhold {}", runtime.name, list(&loose));
    let able = runtime.others.iter().filter(|other| other.can_withhold(&loose));
    let able: Vec<&str> = able.map(|other| &*other.name).collect();
    let able = if able.is_empty() { String::new() } else { format!(" ({})", list(&able)) };
    let refusal = Refusal::new(RefusalCode::ToolsNotGrantable, message).with_hint(format!(
        "use a runtime that can{able}, or an agent that the operator has defined with a command"
    ));
    Err((refusal, first.to_owned()))
}

fn list(rights: &[&str]) -> String {
    rights.iter().map(|right| format!("`{right}`")).collect::<Vec<_>>().join(", ")
}
