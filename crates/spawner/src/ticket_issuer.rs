//! Whoever gives running agents a way to ask.

use offshoot_model::{ProcessIdentity, RootId, RunId};
use offshoot_runtime::Pass;

/// Hands out passes, and learns which process shows which one. The engine opens no door itself: what listens is
/// somebody else's, and turns to [`Agents`](crate::Agents).
pub trait Doorkeeper: Send + Sync + 'static {
    /// A pass for a run that is about to start; none where it gets no way to ask.
    fn admit(&self, root: RootId, run: RunId) -> Option<Pass>;

    /// The run has this process now. Told before anybody else hears of it.
    fn started(&self, run: RunId, process: Option<ProcessIdentity>);

    /// The run is over: its pass is worth nothing any more.
    fn ended(&self, run: RunId);
}
