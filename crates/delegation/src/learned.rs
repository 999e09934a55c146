//! The choice for a task with a type, where earlier tasks of the type decide too.
//!
//! ```text
//!   fewer than ten on one side ──▶ as the words say
//!   better done directly       ──▶ directly
//!   better delegated           ──▶ as the words say; where they name no agent, the one that has done best
//! ```

use offshoot_model::AgentId;

use crate::choice::{Choice, Decision};
use crate::experience::{Advice, AgentSide, ENOUGH, TypeSummary};
use crate::observation::Way;

impl Decision {
    /// Decides again, with the numbers of earlier tasks of the same type. `candidates` are those that were compared.
    ///
    /// Before ten observations on both sides nothing changes but that [`Decision::learned`] says how many are missing.
    #[must_use]
    pub fn learn<'a>(
        mut self,
        summary: &TypeSummary,
        candidates: impl IntoIterator<Item = &'a AgentId>,
    ) -> Self {
        self.learned = Some(summary.to_string());
        match summary.advice {
            Advice::Unknown { .. } => {}
            Advice::Prefer { way: Way::Directly, .. } => {
                self.choice = Choice::Directly(summary.reason());
            }
            Advice::Prefer { way: Way::Delegated, .. } => {
                let open: Vec<&AgentId> = match &self.choice {
                    Choice::Tie(agents) => agents.iter().collect(),
                    Choice::NoMatch => candidates.into_iter().collect(),
                    Choice::Agent(_) | Choice::NoCandidates | Choice::Directly(_) => Vec::new(),
                };
                if let Some(best) = best(&open, summary) {
                    let AgentSide { agent, side, .. } = best;
                    self.learned =
                        Some(format!("{summary}; `{agent}` has done best of those: {side}"));
                    self.choice = Choice::Agent(agent.clone());
                }
            }
        }
        self
    }
}

/// The one of these agents that is better than each other one that has enough observations. None where two are equal.
fn best<'a>(among: &[&AgentId], summary: &'a TypeSummary) -> Option<&'a AgentSide> {
    let is_known = |it: &&AgentSide| {
        it.way == Way::Delegated && it.side.observations >= ENOUGH && among.contains(&&it.agent)
    };
    let known: Vec<&AgentSide> = summary.agents.iter().filter(is_known).collect();
    let beats = |it: &AgentSide, other: &AgentSide| {
        let advice = Advice::of(&other.side, &it.side);
        matches!(advice, Advice::Prefer { way: Way::Delegated, .. })
    };
    let beats_all =
        |it: &AgentSide| known.iter().all(|other| other.agent == it.agent || beats(it, other));
    known.iter().copied().find(|it| beats_all(it))
}
