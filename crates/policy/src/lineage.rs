//! Who stands above whom, and with what task: the chain of delegations from the root down to one session.

use std::sync::Arc;

use offshoot_config::AgentId;
use offshoot_model::{ContentHash, SpawnRequest};

/// One delegation and everything above it. Children share what is above them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lineage {
    agent: AgentId,
    task: ContentHash,
    above: Option<Arc<Lineage>>,
}

/// A chain that returns to an agent with another in between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cycle {
    /// From the agent's last stand to its return.
    pub(crate) path: Vec<AgentId>,
    /// How often the chain returns to that agent, this time included.
    pub(crate) returns: u32,
}

impl Lineage {
    /// The top of a chain.
    pub fn root(agent: AgentId, request: &SpawnRequest) -> Arc<Self> {
        Arc::new(Self { agent, task: digest(request), above: None })
    }

    /// One further down.
    pub fn child(self: &Arc<Self>, agent: AgentId, request: &SpawnRequest) -> Arc<Self> {
        Arc::new(Self { agent, task: digest(request), above: Some(Arc::clone(self)) })
    }

    /// The agent of this session.
    pub fn agent(&self) -> &AgentId {
        &self.agent
    }

    /// The agents from the root down to this one.
    pub fn trace(&self) -> Vec<&AgentId> {
        let mut trace: Vec<_> = self.upwards().map(Self::agent).collect();
        trace.reverse();
        trace
    }

    /// The cycle that this target would close: it stands above, with another agent in between. An agent that follows
    /// itself closes none.
    pub(crate) fn cycle_to(&self, target: &AgentId) -> Option<Cycle> {
        if self.agent == *target || !self.upwards().any(|above| above.agent == *target) {
            return None;
        }
        let mut path = vec![target.clone()];
        for above in self.upwards() {
            path.push(above.agent.clone());
            if above.agent == *target {
                break;
            }
        }
        path.reverse();
        // Every stand of the target that something else follows is left again, and so returned to.
        let below = self.upwards();
        let stands = self.upwards().skip(1).zip(below);
        let returns = stands.filter(|(at, next)| at.agent == *target && next.agent != *target);
        Some(Cycle { path, returns: count(returns) })
    }

    /// How often this very delegation stands in the chain: the same agent, task, command and context.
    pub(crate) fn identical(&self, agent: &AgentId, request: &SpawnRequest) -> u32 {
        let task = digest(request);
        count(self.upwards().filter(|above| above.agent == *agent && above.task == task))
    }

    fn upwards(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |lineage| lineage.above.as_deref())
    }
}

fn count(items: impl Iterator) -> u32 {
    u32::try_from(items.count()).expect("a chain is at most as long as the greatest depth")
}

/// What is asked for, apart from who asks and under which limits. Parts are prefixed with their length, so that no two
/// requests read the same; the order of the context says nothing.
fn digest(request: &SpawnRequest) -> ContentHash {
    let mut bytes = Vec::with_capacity(request.task.len() + 64);
    let mut part = |text: &[u8]| {
        bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
        bytes.extend_from_slice(text);
    };
    part(request.task.as_bytes());
    let command = request.command.as_deref().unwrap_or_default();
    part(&(command.len() as u64).to_le_bytes());
    command.iter().for_each(|word| part(word.as_bytes()));
    let mut context: Vec<_> = request.context.iter().collect();
    context.sort_by(|a, b| a.name.cmp(&b.name));
    for entry in context {
        part(entry.name.as_bytes());
        part(entry.value.hash.as_bytes());
    }
    ContentHash::of(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use offshoot_model::{ContextEntry, ValueKind, VariableRef};

    fn agent(id: &str) -> AgentId {
        AgentId::parse(id).expect("an id")
    }

    fn chain(ids: &[&str]) -> Arc<Lineage> {
        let request = SpawnRequest::default();
        let (root, rest) = ids.split_first().expect("a root");
        rest.iter().fold(Lineage::root(agent(root), &request), |above, id| {
            above.child(agent(id), &request)
        })
    }

    #[test]
    fn only_a_return_with_another_in_between_is_a_cycle() {
        let check = |ids: &[&str], target: &str, expected: Option<(&str, u32)>| {
            let cycle = chain(ids).cycle_to(&agent(target));
            let found = cycle.map(|cycle| {
                let path: Vec<_> = cycle.path.iter().map(AgentId::as_str).collect();
                (path.join(" "), cycle.returns)
            });
            let expected = expected.map(|(path, returns)| (path.to_owned(), returns));
            assert_eq!(found, expected, "{ids:?} to {target}");
        };
        check(&["a"], "a", None);
        check(&["a"], "b", None);
        check(&["a", "a", "a"], "a", None);
        check(&["a", "b"], "a", Some(("a b a", 1)));
        check(&["a", "a", "b", "b"], "a", Some(("a b b a", 1)));
        check(&["main", "a", "b", "c"], "a", Some(("a b c a", 1)));
        check(&["main", "a", "b", "c"], "d", None);
        check(&["a", "b", "a", "b"], "a", Some(("a b a", 2)));
        check(&["a", "b", "a", "b"], "b", None);
        check(&["a", "b", "a", "c", "a", "a", "b"], "a", Some(("a b a", 3)));
    }

    #[test]
    fn a_delegation_is_the_same_only_as_a_whole() {
        let value = |text: &str| VariableRef {
            hash: ContentHash::of(text.as_bytes()),
            size: 1,
            kind: ValueKind::Text,
        };
        let entry = |name: &str, text: &str| ContextEntry { name: name.into(), value: value(text) };
        let request = SpawnRequest {
            task: "count".into(),
            context: vec![entry("a", "1"), entry("b", "2")],
            ..SpawnRequest::default()
        };
        let lineage = Lineage::root(agent("main"), &request).child(agent("main"), &request);
        let check = |agent_id: &str, change: &dyn Fn(&mut SpawnRequest), expected| {
            let mut changed = request.clone();
            change(&mut changed);
            assert_eq!(lineage.identical(&agent(agent_id), &changed), expected, "{changed:?}");
        };
        check("main", &|_| {}, 2);
        check("main", &|request| request.context.reverse(), 2);
        check("main", &|request| request.label = Some("x".into()), 2);
        check("other", &|_| {}, 0);
        check("main", &|request| request.task = "count again".into(), 0);
        check("main", &|request| request.context[0] = entry("a", "3"), 0);
        check("main", &|request| request.context.truncate(1), 0);
        check("main", &|request| request.command = Some(["wc".to_owned()].into()), 0);
        assert_eq!(lineage.trace().len(), 2);
    }
}
