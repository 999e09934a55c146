//! The agents of probes: closures in place of all runtimes.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use offshoot_runtime::{
    Abilities, CostKnowledge, Finished, FnRuntime, Launch, RunContext, Runtime,
};

/// The body of an agent.
pub(crate) type Body =
    Arc<dyn Fn(Launch, RunContext) -> BoxFuture<'static, Finished> + Send + Sync>;

/// A runtime that calls a body and reports what that costs.
pub(crate) struct Agent(FnRuntime);

impl Agent {
    /// An agent that stands in place of the runtime of this name.
    pub(crate) fn in_place_of(name: &str, body: &Body) -> Self {
        let body = Arc::clone(body);
        Self(FnRuntime::new(name, move |launch, cx| body(launch, cx)))
    }
}

impl Runtime for Agent {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn abilities(&self) -> Abilities {
        Abilities { cost: CostKnowledge::Reported, ..self.0.abilities() }
    }

    fn start(&self, launch: Launch, cx: RunContext) -> BoxFuture<'static, Finished> {
        self.0.start(launch, cx)
    }
}
