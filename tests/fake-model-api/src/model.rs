//! A function in place of rules.

use std::fmt;

use crate::{Conversation, Reply, Usage};

type Answer = dyn Fn(&Conversation) -> (Reply, Usage) + Send + Sync;

/// A function that says what the model does, for answers that follow from the prompt.
pub struct Model(Box<Answer>);

impl Model {
    /// A model that does this. Texts are templates here as well, see [`Reply::text`].
    pub fn new(answer: impl Fn(&Conversation) -> (Reply, Usage) + Send + Sync + 'static) -> Self {
        Self(Box::new(answer))
    }

    pub(crate) fn answer(&self, conversation: &Conversation) -> (Reply, Usage) {
        (self.0)(conversation)
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Model")
    }
}
