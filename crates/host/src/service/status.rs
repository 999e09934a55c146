//! The caller itself: where it stands, and what it may do.

use std::time::Duration;

use offshoot_door::{Activities, BudgetLeft, CallError, CallerWord, RunActivity, StatusAnswer};
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
        Ok(StatusAnswer {
            caller: CallerWord::Run,
            run_id: Some(caller),
            session_key: Some(asking.key),
            agent: Some(asking.agent),
            depth: asking.depth,
            delegation: Some(asking.delegation),
            max_depth: grant.max_depth,
            may_spawn,
            budget: left(budget),
            tools: Some(Rights::clone(&grant.tools)),
            agents: if may_spawn { agents } else { Vec::new() },
        })
    }

    /// Returns how long the runs that hold a slot have been silent.
    pub(super) async fn activity(&self) -> Result<Activities, CallError> {
        let silent_ms = |silence: Duration| u64::try_from(silence.as_millis()).unwrap_or(u64::MAX);
        let runs = self.agents.silences().await?.into_iter();
        let runs =
            runs.map(|(run_id, silence)| RunActivity { run_id, silent_ms: silent_ms(silence) });
        Ok(Activities { runs: runs.collect() })
    }
}

/// Returns the remaining budget; none where there is no budget at all.
fn left(budget: BudgetGrant) -> Option<BudgetLeft> {
    let BudgetGrant { tokens, usd } = budget;
    (tokens.is_some() || usd.is_some()).then_some(BudgetLeft { tokens, usd })
}
