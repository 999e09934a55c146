//! A child as it is admitted, compared with what is above it.

use std::sync::Arc;

use offshoot_model::{Admitted, AgentId, Event, Origin, Rules, RunId, RunStatus};

use super::Audit;
use crate::run::says_all;
use crate::run::{Run, SlotState};
use crate::{Rule, rights, time};

impl Audit {
    /// Compares a child with its parent; the rules that the parent's spawns are held to.
    pub(super) fn check_child(
        &mut self,
        event: &Event,
        admitted: &Admitted,
        parent: RunId,
        broken: &mut Vec<(Rule, String)>,
    ) -> Option<Arc<Rules>> {
        let Some(above) = self.runs.get_mut(&parent) else {
            broken.push((Rule::Lineage, format!("has a parent {parent} that does not exist")));
            return None;
        };
        let (origin, grant) = (admitted.origin, Arc::clone(&above.admitted.grant));
        let rules = above.rules.clone();
        above.has_acted |= origin == Origin::Agent;
        let mut wrong = |rule, message: String| broken.push((rule, message));
        if admitted.depth != above.admitted.depth + 1 {
            let message =
                format!("is at depth {} below one at {}", admitted.depth, above.admitted.depth);
            wrong(Rule::Lineage, message);
        }
        if above.admitted.depth > 0 && admitted.key.parent().as_ref() != Some(&above.admitted.key) {
            wrong(Rule::Lineage, format!("has the key of another parent, {}", admitted.key));
        }
        match (above.state, &above.stopping) {
            (SlotState::Ended, _) => wrong(Rule::Lineage, "has a parent that was over".to_owned()),
            (SlotState::Queued, _) => {
                wrong(Rule::Lineage, "has a parent that had not started".to_owned());
            }
            (_, Some(_)) => {
                wrong(Rule::Lineage, "has a parent that was asked to stop".to_owned());
            }
            _ => {}
        }
        let (most, own) =
            (rules.as_ref().and_then(|rules| rules.max_depth), admitted.grant.max_depth);
        if let Some(most) = most.filter(|most| own > *most) {
            wrong(
                Rule::Depth,
                format!("may have children down to {own} below one that may to {most}"),
            );
        }
        let held_to = above.parent;
        let granted = (admitted.grant.run_timeout_seconds, grant.run_timeout_seconds);
        if let Some(message) = rights::gained(&grant.tools, &admitted.grant.tools) {
            wrong(Rule::Rights, message);
        }
        if let Some(right) = rights::of_roots(&admitted.grant.tools) {
            wrong(Rule::Rights, format!("holds `{right}`, which is for roots alone"));
        }
        if let Some(message) = rights::more_of_host(&grant, &admitted.grant) {
            wrong(Rule::Rights, message);
        }
        match origin {
            Origin::Root => wrong(Rule::Lineage, "is a root with a parent".to_owned()),
            Origin::Piece if above.admitted.origin != Origin::Root => {
                wrong(Rule::Lineage, "is a piece of something that is no root".to_owned());
            }
            Origin::Piece => {}
            Origin::Agent => {
                if admitted.depth > grant.max_depth {
                    let (depth, most) = (admitted.depth, grant.max_depth);
                    wrong(Rule::Depth, format!("is at depth {depth}, and {most} is the deepest"));
                }
                if !grant.may_spawn {
                    wrong(Rule::Rights, "has a parent that may not spawn".to_owned());
                }
                // An older version wrote no list where a session may name others.
                let may_name = !says_all(rules.as_deref())
                    || admitted.agent == above.admitted.agent
                    || grant.agents.contains(&admitted.agent);
                if !may_name {
                    let message =
                        format!("runs `{}`, which its parent may not name", admitted.agent);
                    wrong(Rule::Agents, message);
                }
                let counted = self.spawns.count(event.at, above.live_children, rules.as_deref());
                broken.extend(counted);
                let tired = self.breakers.check(&admitted.agent, event.at);
                broken.extend(tired.map(|message| (Rule::Breaker, message)));
            }
        }
        above.live_children += 1;
        let held_to = match held_to {
            Some(above) => self.runs.get(&above).and_then(|above| above.rules.clone()),
            None => rules.clone(),
        };
        let longer = time::longer(granted, rules.as_deref(), held_to.as_deref());
        broken.extend(longer.map(|message| (Rule::Time, message)));
        if origin == Origin::Agent {
            broken.extend(self.check_cycle(&admitted.agent, parent, rules.as_deref()));
            broken.extend(self.check_deadline(Some(parent)));
        }
        rules
    }

    /// Checks that a piece has its place alone, or takes the place of one that is over without an answer, and names it.
    pub(super) fn check_place(
        &mut self,
        run: RunId,
        admitted: &Admitted,
    ) -> Option<(Rule, String)> {
        let before = admitted.place.and_then(|place| self.places.insert(place, run));
        let named = admitted.instead;
        if before == named {
            let completed = |before: &RunId| {
                self.runs.get(before).is_none_or(|run| run.ended.is_none_or(RunStatus::is_success))
            };
            let before = before.filter(completed)?;
            return Some((
                Rule::States,
                format!("runs instead of {before}, which has an answer or runs"),
            ));
        }
        let message = match (before, named) {
            (Some(before), _) => format!("has the place of {before}, and does not name it"),
            (None, _) => "runs instead of another, which had another place".to_owned(),
        };
        Some((Rule::States, message))
    }

    /// Checks if a chain of sessions returns to this agent, with another in between, more often than it may. A run that only
    /// holds pieces is no session.
    fn check_cycle(
        &self,
        agent: &AgentId,
        parent: RunId,
        rules: Option<&Rules>,
    ) -> Option<(Rule, String)> {
        let most = rules?.max_returns?;
        let above = |run: &&Run| run.parent.and_then(|parent| self.runs.get(&parent));
        let chain = std::iter::successors(self.runs.get(&parent), above);
        let agents = chain.filter(|run| run.admitted.runtime.is_some());
        let agents: Vec<&AgentId> = agents.map(|run| &run.admitted.agent).collect();
        if agents.first() == Some(&agent) {
            return None;
        }
        // Each time that another follows this agent it is left, and so returned to.
        let below = std::iter::once(agent).chain(agents.iter().copied());
        let left = agents.iter().zip(below).filter(|(at, next)| **at == agent && *next != agent);
        let returns = left.count();
        (returns > most as usize).then(|| {
            let message = format!("returns to `{agent}` {returns} times, and {most} times it may");
            (Rule::Cycles, message)
        })
    }
}
