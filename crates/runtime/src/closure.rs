//! Agents that are closures in this process: for library users, benchmarks and simulations.

use std::future::Future;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use offshoot_model::{CancelledBy, Reason};

use crate::{Abilities, CostKnowledge, Finished, Launch, RunContext, Runtime, Stop};

type Body = dyn Fn(Launch, RunContext) -> BoxFuture<'static, Finished> + Send + Sync;

/// Runs a closure for each agent. The closure may ignore requests to stop: after the grace its future is dropped.
#[derive(Clone, derive_more::Debug)]
#[debug("FnRuntime({name})")]
pub struct FnRuntime {
    name: Arc<str>,
    turns: bool,
    body: Arc<Body>,
}

impl FnRuntime {
    /// A runtime of this name. The closure gets the launch and the context and answers with how it ended.
    pub fn new<F, Fut>(name: impl Into<Arc<str>>, body: F) -> Self
    where
        F: Fn(Launch, RunContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Finished> + Send + 'static,
    {
        let body = Arc::new(move |launch, cx| body(launch, cx).boxed());
        Self { name: name.into(), turns: false, body }
    }

    /// The closure asks the [`turns`](RunContext::turns) of its context how it goes on after an answer.
    pub fn with_turns(mut self) -> Self {
        self.turns = true;
        self
    }
}

impl Runtime for FnRuntime {
    fn name(&self) -> &str {
        &self.name
    }

    fn abilities(&self) -> Abilities {
        Abilities { cost: CostKnowledge::None, turns: self.turns, resumes: false, enforces: None }
    }

    fn start(&self, launch: Launch, cx: RunContext) -> BoxFuture<'static, Finished> {
        let mut stop = cx.stop.clone();
        cx.host.started(None);
        let body = (self.body)(launch, cx);
        async move {
            tokio::select! {
                biased;
                finished = body => finished,
                () = stopped(&mut stop) => Finished::of(Reason::Cancelled { by: CancelledBy::Operator }),
            }
        }
        .boxed()
    }
}

/// Ends when the grace of the firmest request so far is over.
async fn stopped(stop: &mut crate::StopSignal) {
    let mut request = stop.heard().await;
    while let Stop::Soft { grace } = request {
        tokio::select! {
            firmer = stop.heard() => request = firmer,
            () = grace_over(grace) => return,
        }
    }
}

async fn grace_over(grace: std::time::Duration) {
    #[expect(
        clippy::disallowed_methods,
        reason = "the grace is a length of time, not a wait for something to have happened"
    )]
    tokio::time::sleep(grace).await;
}
