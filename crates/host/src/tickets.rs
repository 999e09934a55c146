//! The tickets by which runs are known at the door.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use offshoot_door::{SharedTickets, Ticket};
use offshoot_model::{ProcessIdentity, RootId, RunId};
use offshoot_runtime::Pass;
use offshoot_spawner::TicketIssuer;

/// Gives each run a ticket, and tells the door which process shows it. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Tickets {
    tickets: SharedTickets,
    socket: Arc<PathBuf>,
}

impl Tickets {
    /// Issues tickets for this socket.
    pub(crate) fn new(socket: &Path) -> Self {
        Self { tickets: SharedTickets::new(), socket: Arc::new(socket.to_owned()) }
    }

    /// Returns the runs that have a ticket, for the door.
    pub(crate) fn tickets(&self) -> SharedTickets {
        self.tickets.clone()
    }
}

impl TicketIssuer for Tickets {
    fn issue(&self, _root: RootId, run: RunId) -> Option<Pass> {
        // Without random numbers any ticket could be guessed, so there is none, and no way to ask.
        let ticket = Ticket::mint().ok()?;
        let text = ticket.expose().into();
        self.tickets.admit(run, ticket);
        Some(Pass { socket: Arc::clone(&self.socket), ticket: text })
    }

    fn started(&self, run: RunId, process: Option<ProcessIdentity>) {
        self.tickets.started(run, process);
    }

    fn ended(&self, run: RunId) {
        self.tickets.ended(run);
    }
}

/// Tickets are secret.
impl std::fmt::Debug for Tickets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tickets").field("socket", &self.socket).finish_non_exhaustive()
    }
}
