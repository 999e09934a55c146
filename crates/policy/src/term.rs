//! One explicit value of a setting, with the agent whose value it is.

use std::sync::Arc;

use offshoot_config::{AgentId, Origin, Valued};
use offshoot_model::{GovernedBy, JsonText};
use serde::Serialize;

/// A value that was set explicitly. Cheap to clone: the chain of a deep session holds many of its ancestors' terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term<T> {
    /// The value that was set.
    pub value: T,
    setter: Arc<Setter>,
}

#[derive(Debug, PartialEq, Eq)]
struct Setter {
    agent: Option<AgentId>,
    origin: Origin,
}

impl<T> Term<T> {
    /// A value of an agent's own, or of the defaults where `agent` is `None`.
    pub(crate) fn new(valued: Valued<T>, agent: Option<AgentId>) -> Self {
        let Valued { value, origin } = valued;
        Self { value, setter: Arc::new(Setter { agent, origin }) }
    }

    /// Returns the agent whose value it is; `None` for the defaults.
    pub fn agent(&self) -> Option<&AgentId> {
        self.setter.agent.as_ref()
    }

    /// Returns the place where it was set.
    pub fn origin(&self) -> &Origin {
        &self.setter.origin
    }
}

/// The setting behind a refusal, by its key within the agent: the explicit value, else the built-in one, else nothing governs.
pub(crate) fn governed_by<T: Serialize>(
    key: &str,
    term: Option<&Term<T>>,
    built_in: Option<&T>,
) -> Option<Box<GovernedBy>> {
    let value = term.map(|term| &term.value).or(built_in)?;
    let origin = term.map_or(&Origin::BuiltIn, Term::origin);
    Some(Box::new(GovernedBy {
        key: key.to_owned(),
        agent: term.and_then(Term::agent).map(ToString::to_string),
        value: JsonText::of(value).expect("settings are plain numbers, words and lists"),
        origin: origin.to_string(),
    }))
}
