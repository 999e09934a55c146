//! The caller itself: where it stands, and what it may do.

use offshoot_door::{AgentSummary, BudgetLeft, CallError, CallerWord, StatusAnswer};
use offshoot_model::{BudgetGrant, Rights, RunId};
use offshoot_spawner::SpawnAllowance;

use super::TreeService;

impl TreeService {
    /// Returns the status of a session.
    pub(super) async fn status(&self, caller: RunId) -> Result<StatusAnswer, CallError> {
        let asking = self.agents.session(caller).await?;
        let SpawnAllowance { budget, agents } = self.agents.spawn_allowance(caller).await?;
        let grant = &asking.grant;
        let may_spawn =
            grant.may_spawn && asking.depth < grant.max_depth && grant.tools.permits("spawn");
        let summary = |(id, description)| AgentSummary { id, description };
        Ok(StatusAnswer {
            caller: CallerWord::Run,
            run_id: Some(caller),
            session_key: Some(asking.key),
            agent: Some(asking.agent),
            depth: asking.depth,
            max_depth: grant.max_depth,
            may_spawn,
            budget: left(budget),
            tools: Some(Rights::clone(&grant.tools)),
            agents: if may_spawn { agents.into_iter().map(summary).collect() } else { Vec::new() },
        })
    }
}

/// Returns the remaining budget; none where there is no budget at all.
fn left(budget: BudgetGrant) -> Option<BudgetLeft> {
    let BudgetGrant { tokens, usd } = budget;
    (tokens.is_some() || usd.is_some()).then_some(BudgetLeft { tokens, usd })
}
