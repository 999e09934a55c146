//! The chain of delegations from the root down to one session: agents and their tasks.

use std::sync::{Arc, OnceLock};

use offshoot_config::AgentId;
use offshoot_model::{ContentHash, ContextEntry, SpawnRequest};

/// One delegation and everything above it. Children share what is above them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lineage {
    agent: AgentId,
    task: Task,
    above: Option<Arc<Lineage>>,
}

/// The work that a session was asked for, compared by a hash that is made when it is needed first: the pieces of a map are
/// compared with nothing.
#[derive(Clone, Debug)]
struct Task {
    task: Arc<str>,
    command: Option<Arc<[String]>>,
    context: Box<[ContextEntry]>,
    digest: OnceLock<Box<ContentHash>>,
}

/// A chain that returns to an agent with another in between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cycle {
    /// From the agent's last stand to its return.
    pub(crate) path: Vec<AgentId>,
    /// The number of times that the chain returns to that agent, this time included.
    pub(crate) returns: u32,
}

impl Lineage {
    /// The top of a chain.
    pub fn root(agent: AgentId, request: &SpawnRequest) -> Arc<Self> {
        Arc::new(Self { agent, task: Task::of(request), above: None })
    }

    /// One further down.
    pub fn child(self: &Arc<Self>, agent: AgentId, request: &SpawnRequest) -> Arc<Self> {
        Arc::new(Self { agent, task: Task::of(request), above: Some(Arc::clone(self)) })
    }

    /// The agent of this session.
    pub fn agent(&self) -> &AgentId {
        &self.agent
    }

    /// The task of this session, in words.
    pub fn task(&self) -> &Arc<str> {
        &self.task.task
    }

    /// The agents from the root down to this one.
    pub fn trace(&self) -> Vec<&AgentId> {
        let mut trace: Vec<_> = self.upwards().map(Self::agent).collect();
        trace.reverse();
        trace
    }

    /// The cycle that this delegation closes: its agent stands above, with another in between. An agent that follows
    /// itself closes none.
    pub(crate) fn cycle(&self) -> Option<Cycle> {
        let above = self.above.as_deref()?;
        if above.agent == self.agent || !above.upwards().any(|at| at.agent == self.agent) {
            return None;
        }
        let mut path = vec![self.agent.clone()];
        for at in above.upwards() {
            path.push(at.agent.clone());
            if at.agent == self.agent {
                break;
            }
        }
        path.reverse();
        // Every stand of this agent that another one follows is left again, and so returned to.
        let steps = above.upwards().zip(self.upwards());
        let left = steps.filter(|(at, next)| at.agent == self.agent && next.agent != self.agent);
        Some(Cycle { path, returns: count(left) })
    }

    /// Returns the number of times that this delegation stands above itself: the same agent, task, command and context.
    pub(crate) fn repeats(&self) -> u32 {
        let same = |above: &&Self| above.agent == self.agent && above.task == self.task;
        count(self.upwards().skip(1).filter(same))
    }

    fn upwards(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |lineage| lineage.above.as_deref())
    }
}

fn count(items: impl Iterator) -> u32 {
    u32::try_from(items.count()).expect("a chain is at most as long as the greatest depth")
}

impl Task {
    fn of(request: &SpawnRequest) -> Self {
        Self {
            task: Arc::clone(&request.task),
            command: request.command.clone(),
            context: request.context.as_slice().into(),
            digest: OnceLock::new(),
        }
    }

    /// Hashes what is asked for, apart from who asks and under which limits. Parts are prefixed with their length, so that no
    /// two requests read the same; the order of the context says nothing.
    fn digest(&self) -> ContentHash {
        **self.digest.get_or_init(|| {
            let mut bytes = Vec::with_capacity(self.task.len() + 64);
            let mut part = |text: &[u8]| {
                bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
                bytes.extend_from_slice(text);
            };
            part(self.task.as_bytes());
            let command = self.command.as_deref().unwrap_or_default();
            part(&(command.len() as u64).to_le_bytes());
            command.iter().for_each(|word| part(word.as_bytes()));
            let mut context: Vec<_> = self.context.iter().collect();
            context.sort_by(|a, b| a.name.cmp(&b.name));
            for entry in context {
                part(entry.name.as_bytes());
                part(entry.value.hash.as_bytes());
            }
            Box::new(ContentHash::of(&bytes))
        })
    }
}

impl PartialEq for Task {
    fn eq(&self, other: &Self) -> bool {
        self.digest() == other.digest()
    }
}

impl Eq for Task {}

#[cfg(test)]
mod tests {
    use super::*;
    use offshoot_model::{ContextEntry, ValueKind, VariableRef};

    fn agent(id: &str) -> AgentId {
        AgentId::parse(id).expect("the text is no id")
    }

    #[test]
    fn only_a_return_with_another_in_between_is_a_cycle() {
        let check = |ids: &[&str], expected: Option<(&str, u32)>| {
            let request = SpawnRequest::default();
            let (root, rest) = ids.split_first().expect("a root");
            let chain = rest.iter().fold(Lineage::root(agent(root), &request), |above, id| {
                above.child(agent(id), &request)
            });
            let found = chain.cycle().map(|cycle| {
                let path: Vec<_> = cycle.path.iter().map(AgentId::as_str).collect();
                (path.join(" "), cycle.returns)
            });
            let expected = expected.map(|(path, returns)| (path.to_owned(), returns));
            assert_eq!(found, expected, "{ids:?}");
        };
        check(&["a"], None);
        check(&["a", "a"], None);
        check(&["a", "b"], None);
        check(&["a", "a", "a", "a"], None);
        check(&["a", "b", "a"], Some(("a b a", 1)));
        check(&["a", "a", "b", "b", "a"], Some(("a b b a", 1)));
        check(&["main", "a", "b", "c", "a"], Some(("a b c a", 1)));
        check(&["main", "a", "b", "c", "d"], None);
        check(&["a", "b", "a", "b", "a"], Some(("a b a", 2)));
        check(&["a", "b", "a", "b", "b"], None);
        check(&["a", "b", "a", "c", "a", "a", "b", "a"], Some(("a b a", 3)));
    }

    #[test]
    fn what_is_compared_with_nothing_is_not_hashed() {
        let request = SpawnRequest { task: "count".into(), ..SpawnRequest::default() };
        let chain = Lineage::root(agent("a"), &request).child(agent("b"), &request);
        let chain = chain.child(agent("c"), &request);
        assert_eq!((chain.cycle(), chain.repeats()), (None, 0));
        assert!(chain.upwards().all(|at| at.task.digest.get().is_none()));
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
            let child = lineage.child(agent(agent_id), &changed);
            assert_eq!(child.repeats(), expected, "{changed:?}");
        };
        check("main", &|_| {}, 2);
        check("main", &|request| request.context.reverse(), 2);
        check("main", &|request| request.label = Some("x".into()), 2);
        check("other", &|_| {}, 0);
        check("main", &|request| request.task = "count again".into(), 0);
        check("main", &|request| request.context[0] = entry("a", "3"), 0);
        check("main", &|request| request.context.truncate(1), 0);
        check("main", &|request| request.command = Some(["wc".to_owned()].into()), 0);
        let trace = lineage.child(agent("a"), &request);
        assert_eq!(trace.trace(), [&agent("main"), &agent("main"), &agent("a")]);
    }
}
