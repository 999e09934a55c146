//! The tickets with which running agents ask.

use futures_util::future::BoxFuture;
use offshoot_model::{JsonText, ProcessIdentity, RootId, RunId};
use offshoot_runtime::{Pass, ToolOffer};

/// Issues a pass to each run, and learns which process shows which pass. The engine opens no door itself: what listens is
/// handed in, and answers through [`Agents`](crate::Agents).
pub trait TicketIssuer: Send + Sync + 'static {
    /// Issues the pass of a run that is about to start; none where the run gets no way to ask.
    fn issue(&self, root: RootId, run: RunId) -> Option<Pass>;

    /// Notes the process of a run. Called before anything else hears of the process.
    fn started(&self, run: RunId, process: Option<ProcessIdentity>);

    /// Withdraws the pass of a run that is over.
    fn ended(&self, run: RunId);

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
