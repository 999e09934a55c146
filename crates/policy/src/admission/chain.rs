//! Does the chain go round in circles?

use std::sync::Arc;

use offshoot_config::AgentId;
use offshoot_model::{Refusal, RefusalCode, SpawnRequest};

use super::Question;
use crate::lineage::Cycle;
use crate::{Lineage, Terms};

/// True if an agent may follow at the end of a chain under these terms: it closes no cycle that they forbid.
pub fn may_follow(terms: &Terms, lineage: &Arc<Lineage>, agent: &AgentId) -> bool {
    let chain = lineage.child(agent.clone(), &SpawnRequest::default());
    chain.cycle().is_none_or(|cycle| forbids(terms, &cycle).is_none())
}

/// Returns the setting that forbids a cycle.
fn forbids(terms: &Terms, cycle: &Cycle) -> Option<&'static str> {
    if !terms.allow_cycles() {
        Some("allowCycles")
    } else if cycle.returns > terms.max_identical_delegations() {
        Some("maxIdenticalDelegations")
    } else {
        None
    }
}

/// `lineage` ends with the child that is asked for.
pub(super) fn check(question: &Question<'_>, lineage: &Lineage) -> Result<(), Refusal> {
    let terms = question.caller.terms;
    let most = terms.max_identical_delegations();
    if let Some(cycle) = lineage.cycle()
        && let Some(key) = forbids(terms, &cycle)
    {
        let path: Vec<&str> = cycle.path.iter().map(AgentId::as_str).collect();
        let message = format!("Cycle detected: {}", path.join(" → "));
        let hint = "do the work in this session, or name an agent that does not stand above it";
        return question.refuse(RefusalCode::Cycle, message, hint, key);
    }
    let identical = lineage.repeats();
    if identical >= most {
        let message = format!(
            "the same task for `{}` with the same context stands above this session too often \
             ({identical})",
            question.target
        );
        let hint = "do the work in this session, or ask for a part of it";
        let key = "maxIdenticalDelegations";
        return question.refuse(RefusalCode::RepeatLimit, message, hint, key);
    }
    Ok(())
}
