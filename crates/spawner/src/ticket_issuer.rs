//! The tickets with which running agents ask.

use futures_util::future::BoxFuture;
use offshoot_model::{BudgetGrant, JsonText, ProcessIdentity, RootId, RunId};
use offshoot_runtime::{MeterPass, Pass, ToolOffer};

/// A run that is about to start, as far as the meter is concerned.
#[derive(Clone, Copy, Debug)]
pub struct MeterOrder<'a> {
    /// The run.
    pub run: RunId,
    /// The runtime that starts it.
    pub runtime: &'a str,
    /// The part of its budget that the run may still use. An attempt before this one may have used the rest.
    pub left: BudgetGrant,
    /// True if a request whose cost has no bound may leave under a budget in dollars.
    pub allows_unknown_cost: bool,
    /// True if a request that is too much for the run waits for more budget.
    pub pauses_at_cap: bool,
}

/// Issues a pass to each run, and learns which process shows which pass. The engine opens no door itself: what listens is
/// handed in, and answers through [`Agents`](crate::Agents).
pub trait TicketIssuer: Send + Sync + 'static {
    /// Issues the pass of a run that is about to start; none where the run gets no way to ask.
    fn issue(&self, root: RootId, run: RunId) -> Option<Pass>;

    /// Notes the process of a run. Called before anything else hears of the process.
    fn started(&self, run: RunId, process: Option<ProcessIdentity>);

    /// Lets a run that is about to start ask models through the meter; none where no meter counts what its runtime uses.
    ///
    /// # Errors
    ///
    /// The reason why a run that is to be metered cannot be.
    fn meter(&self, order: MeterOrder<'_>) -> Result<Option<MeterPass>, String> {
        let _ = order;
        Ok(None)
    }

    /// Withdraws the passes of a run that is over. When this answers, every request of the run to a model has been told as over.
    fn ended(&self, run: RunId) -> BoxFuture<'static, ()>;

    /// Returns the tools by which a run that has a pass may ask, where it is no process that could come to the door itself.
    fn tools(&self, run: RunId) -> BoxFuture<'static, Vec<ToolOffer>> {
        let _ = run;
        Box::pin(async { Vec::new() })
    }

    /// Calls one of these tools for a run. None where there is no such way to ask.
    fn call_tool(
        &self,
        run: RunId,
        name: &str,
        arguments: &str,
    ) -> BoxFuture<'static, Option<JsonText>> {
        let _ = (run, name, arguments);
        Box::pin(async { None })
    }
}
