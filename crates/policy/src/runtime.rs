//! The facts of a runtime that admission needs.

use std::collections::BTreeSet;
use std::sync::Arc;

use offshoot_model::{Account, CostKnowledge};

/// The runtime that would run a child, as far as limits are concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimeFacts {
    /// The name, for messages.
    pub name: Arc<str>,
    /// The knowledge of a run's cost.
    pub cost: CostKnowledge,
    /// The rights that it can keep from a session; `None` where it can keep any.
    pub enforces: Option<BTreeSet<String>>,
    /// True if it can take a further turn after it has answered, and so reads messages.
    pub turns: bool,
    /// True if it can continue an interrupted run.
    pub resumes: bool,
    /// The account under which it calls its service, whose quotas its runs share.
    pub account: Arc<Account>,
}

impl RuntimeFacts {
    /// An ordinary command: it costs nothing, and nothing that its user may do can be kept from it.
    pub fn of_a_command(name: impl Into<Arc<str>>) -> Self {
        let name = name.into();
        Self {
            account: Arc::new(Account::of_runtime(Arc::clone(&name))),
            name,
            cost: CostKnowledge::None,
            enforces: Some(BTreeSet::new()),
            turns: false,
            resumes: false,
        }
    }
}
