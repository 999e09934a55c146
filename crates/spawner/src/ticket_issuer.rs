//! The tickets with which running agents ask.

use offshoot_model::{ProcessIdentity, RootId, RunId};
use offshoot_runtime::Pass;

/// Issues a pass to each run, and learns which process shows which pass. The engine opens no door itself: what listens is
/// handed in, and answers through [`Agents`](crate::Agents).
pub trait TicketIssuer: Send + Sync + 'static {
    /// Issues the pass of a run that is about to start; none where the run gets no way to ask.
    fn issue(&self, root: RootId, run: RunId) -> Option<Pass>;

    /// Notes the process of a run. Called before anything else hears of the process.
    fn started(&self, run: RunId, process: Option<ProcessIdentity>);

    /// Withdraws the pass of a run that is over.
    fn ended(&self, run: RunId);
}
