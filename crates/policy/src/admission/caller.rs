//! May this session spawn at all?

use offshoot_model::{Refusal, RefusalCode};

use super::Question;
use crate::rights::SPAWN;
use crate::term::governed_by;

/// The hint for a session that gets no child.
const DO_IT_YOURSELF: &str = "do the work in this session";

pub(super) fn check_alive(question: &Question<'_>) -> Result<(), Refusal> {
    if question.caller.over {
        let message = "this session is over and cannot spawn";
        let hint = "ask from a session that is not over";
        return Err(Refusal::new(RefusalCode::CallerEnded, message).with_hint(hint));
    }
    if question.caller.out_of_time {
        let message = "the time for what is below this session has passed";
        let key = "deadlineSeconds";
        return question.refuse(RefusalCode::CallerEnded, message, DO_IT_YOURSELF, key);
    }
    Ok(())
}

pub(super) fn check_may_spawn(question: &Question<'_>) -> Result<(), Refusal> {
    check_recursion(question)?;
    check_depth(question)?;
    check_delegation(question)
}

/// The line of a shell by which the operator allows agents below the root to spawn. A model that runs it changes nothing.
const ALLOW: &str = "export OFFSHOOT__AGENTS__DEFAULTS__SUBAGENTS__ALLOWRECURSIVESPAWN=true";

fn check_recursion(question: &Question<'_>) -> Result<(), Refusal> {
    let caller = question.caller;
    if caller.depth == 0 || caller.terms.allow_recursive_spawn() {
        return Ok(());
    }
    question.refuse(
        RefusalCode::RecursionDisabled,
        "Recursive spawning is not enabled for this agent. Set subagents.allowRecursiveSpawn: true in config.",
        format!("{DO_IT_YOURSELF}; only the operator can allow it, by --allow-recursive-spawn or by this line in the shell before the tree begins: {ALLOW}"),
        "allowRecursiveSpawn",
    )
}

fn check_depth(question: &Question<'_>) -> Result<(), Refusal> {
    let by_terms = question.caller.terms.max_depth();
    // Its requester may have given it less.
    let max_depth = by_terms.min(question.caller.grant.max_depth);
    if question.caller.depth < max_depth {
        return Ok(());
    }
    let refusal = Refusal::new(
        RefusalCode::DepthLimit,
        format!("Maximum subagent depth reached ({max_depth}). Cannot spawn deeper."),
    )
    .with_hint(format!("{DO_IT_YOURSELF}, or hand a smaller part of it back to the parent"));
    let setting = question.caller.terms.governing("maxDepth");
    Err(refusal.governed_by(setting.filter(|_| max_depth == by_terms)))
}

fn check_delegation(question: &Question<'_>) -> Result<(), Refusal> {
    let terms = question.caller.terms;
    let agent = terms.agent();
    if let Some(may) = terms.can_delegate.as_ref().filter(|may| !may.value) {
        let message = format!("the agent `{agent}` may not delegate");
        let refusal = Refusal::new(RefusalCode::CannotDelegate, message).with_hint(DO_IT_YOURSELF);
        return Err(refusal.governed_by(governed_by("canDelegate", Some(may), None)));
    }
    if !question.caller.grant.tools.permits(SPAWN) {
        let message = format!("the right `{SPAWN}` is not among the tools of this session");
        let refusal = Refusal::new(RefusalCode::CannotDelegate, message).with_hint(DO_IT_YOURSELF);
        return Err(super::tools::governed_by(terms, question.caller.depth, refusal, SPAWN));
    }
    Ok(())
}
