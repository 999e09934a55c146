//! A library that is there.

use serde_json::Value;

/// How one of the scripts is started.
#[derive(Clone, Debug)]
pub struct Client {
    /// Program, script, and what that must know before the plan.
    start: Vec<String>,
}

impl Client {
    pub(crate) fn new(start: impl IntoIterator<Item = String>) -> Self {
        Self { start: start.into_iter().collect() }
    }

    /// The command line that carries out a plan: first the program.
    pub fn words(&self, plan: &Value) -> Vec<String> {
        self.start.iter().cloned().chain([plan.to_string()]).collect()
    }
}
