//! The facts of a runtime that admission needs.

use std::collections::BTreeSet;
use std::sync::Arc;

use offshoot_model::{Account, CostKnowledge, MicroUsd};

/// The runtime that would run a child, as far as limits are concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimeFacts {
    /// The name, for messages.
    pub name: Arc<str>,
    /// The knowledge of a run's cost.
    pub cost: CostKnowledge,
    /// The knowledge of the cost of a metered run that has asked no model through the meter: it may have asked in another way.
    pub unasked_cost: CostKnowledge,
    /// The dollars that the runs of a tree may cost together which no budget bounds, where one of this runtime costs something, or dollars
    /// are asked for it. None: nothing bounds them.
    pub default_usd: Option<MicroUsd>,
    /// True if the operator says that it costs nothing, whatever its runs report.
    pub is_free: bool,
    /// The rights that it can keep from a session; `None` where it can keep any.
    pub enforces: Option<BTreeSet<String>>,
    /// True if it can take a further turn after it has answered, and so reads messages.
    pub turns: bool,
    /// True if it can continue an interrupted run.
    pub resumes: bool,
    /// The memory that the processes of one run take, in bytes, as far as the runtime knows it before any has run.
    pub memory: u64,
    /// An estimate of its own instructions and tools, in tokens, which each of its runs sends first; none where no cache of its service
    /// is known.
    pub own_prompt: Option<u64>,
    /// The most bytes of values that it sends in front of the task.
    pub inline_bytes: u64,
    /// The account under which it calls its service, whose quotas its runs share.
    pub account: Arc<Account>,
    /// The other runtimes that there are, for the advice where this one cannot keep a right from a session.
    pub others: Arc<[OtherRuntime]>,
}

/// A runtime that could run a child in place of another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherRuntime {
    /// The name, for messages.
    pub name: Arc<str>,
    /// The rights that it can keep from a session; `None` where it can keep any.
    pub enforces: Option<BTreeSet<String>>,
}

/// A runtime that may take over a run whose own one fails.
#[derive(Clone, Debug)]
pub struct Fallback {
    /// The facts of the runtime.
    pub facts: Arc<RuntimeFacts>,
    /// The model; none where the runtime takes one by itself.
    pub model: Option<Arc<str>>,
}

impl OtherRuntime {
    /// True if the runtime can keep all of these rights from a session.
    pub(crate) fn can_withhold(&self, rights: &[&str]) -> bool {
        let enforces = self.enforces.as_ref();
        enforces.is_none_or(|enforces| rights.iter().all(|right| enforces.contains(*right)))
    }
}

impl RuntimeFacts {
    /// Returns the dollars that the runs of a tree may cost together which no budget bounds, where one of this runtime costs an amount that
    /// will be known; else none.
    pub fn default_of_paid(&self) -> Option<MicroUsd> {
        match self.cost {
            CostKnowledge::Metered | CostKnowledge::Reported | CostKnowledge::Bounded => {
                self.default_usd.filter(|_| !self.is_free)
            }
            CostKnowledge::None | CostKnowledge::Unknown => None,
        }
    }

    /// True if its runs cost nothing, or the operator says so.
    pub fn costs_nothing(&self) -> bool {
        self.is_free || self.cost == CostKnowledge::None
    }

    /// The memory of an ordinary command: that of a small interpreter.
    const COMMAND_MEMORY: u64 = 32 << 20;

    /// An ordinary command: it costs nothing, and nothing that its user may do can be kept from it.
    pub fn of_a_command(name: impl Into<Arc<str>>) -> Self {
        let name = name.into();
        Self {
            account: Arc::new(Account::of_runtime(Arc::clone(&name))),
            name,
            cost: CostKnowledge::None,
            unasked_cost: CostKnowledge::None,
            default_usd: None,
            is_free: false,
            enforces: Some(BTreeSet::new()),
            turns: false,
            resumes: false,
            memory: Self::COMMAND_MEMORY,
            own_prompt: None,
            inline_bytes: 0,
            others: Arc::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_ordinary_command_nothing_is_expected() {
        let command = RuntimeFacts::of_a_command("exec");
        assert_eq!((&*command.name, command.memory), ("exec", 32 * 1024 * 1024));
        assert_eq!(
            (command.cost, command.unasked_cost),
            (CostKnowledge::None, CostKnowledge::None)
        );
        assert_eq!(command.enforces, Some(BTreeSet::new()));
        assert!(!command.turns && !command.resumes);
    }

    #[test]
    fn a_runtime_can_withhold_all_of_these_rights_or_cannot() {
        let check = |enforces: Option<&[&str]>, rights: &[&str], expected: bool| {
            let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
            let other = OtherRuntime { name: "x".into(), enforces: enforces.map(set) };
            assert_eq!(other.can_withhold(rights), expected, "{enforces:?} {rights:?}");
        };
        check(None, &["write", "exec"], true);
        check(Some(&[]), &[], true);
        check(Some(&[]), &["write"], false);
        check(Some(&["write"]), &["write"], true);
        check(Some(&["write"]), &["write", "exec"], false);
        check(Some(&["write", "exec"]), &["exec"], true);
    }
}
