//! The tickets by which runs are known at the door.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use offshoot_door::{ClientError, Entrance, SharedTickets, Ticket};
use offshoot_mcp::SessionTools;
use offshoot_model::{JsonText, ProcessIdentity, RootId, RunId, error_chain};
use offshoot_runtime::{MeterPass, Pass, ToolOffer};
use offshoot_spawner::{MeterOrder, TicketIssuer};

use crate::tree_meter::MeterDesk;

/// Gives each run a ticket, and tells the door which process shows it. Cheap to clone.
// Tickets are secret.
#[derive(Clone, derive_more::Debug)]
#[debug("Tickets({})", socket.display())]
pub(crate) struct Tickets {
    tickets: SharedTickets,
    socket: Arc<PathBuf>,
    /// The way in for runs of this process, once the door is open.
    entrance: Arc<OnceLock<Entrance>>,
    /// The place where runs are let in to the meter; none where nothing is metered.
    meter: Option<MeterDesk>,
}

impl Tickets {
    /// Issues tickets for this socket.
    pub(crate) fn new(socket: &Path, meter: Option<MeterDesk>) -> Self {
        Self {
            tickets: SharedTickets::new(),
            socket: Arc::new(socket.to_owned()),
            entrance: Arc::default(),
            meter,
        }
    }

    /// The door is open: runs of this process ask here.
    pub(crate) fn opened(&self, entrance: Entrance) {
        let _ = self.entrance.set(entrance);
    }

    /// The tools of a run that lives in this process.
    async fn tools_of(entrance: Option<Entrance>, run: RunId) -> Result<SessionTools, ClientError> {
        let client = entrance.ok_or(ClientError::Closed)?.client(run).await?;
        Ok(SessionTools::new(client))
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

    fn meter(&self, order: MeterOrder<'_>) -> Result<Option<MeterPass>, String> {
        self.meter.as_ref().map_or(Ok(None), |meter| meter.meter(order))
    }

    fn started(&self, run: RunId, process: Option<ProcessIdentity>) {
        self.tickets.started(run, process);
        if let Some(meter) = &self.meter {
            meter.started(run, process);
        }
    }

    fn ended(&self, run: RunId) -> BoxFuture<'static, ()> {
        self.tickets.ended(run);
        match &self.meter {
            Some(meter) => meter.ended(run),
            None => std::future::ready(()).boxed(),
        }
    }

    fn tools(&self, run: RunId) -> BoxFuture<'static, Vec<ToolOffer>> {
        let entrance = self.entrance.get().cloned();
        async move {
            let offered = match Self::tools_of(entrance, run).await {
                Ok(tools) => tools.offered().await,
                Err(error) => Err(error),
            };
            offered.unwrap_or_else(|error| {
                tracing::warn!(%run, error = error_chain(&error), "no tools for a session");
                Vec::new()
            })
        }
        .boxed()
    }

    fn call_tool(
        &self,
        run: RunId,
        name: &str,
        arguments: &str,
    ) -> BoxFuture<'static, Option<JsonText>> {
        let entrance = self.entrance.get().cloned();
        let (name, arguments) = (name.to_owned(), arguments.to_owned());
        async move {
            match Self::tools_of(entrance, run).await {
                Ok(tools) => tools.call(&name, &arguments).await,
                Err(error) => Some(SessionTools::failed(error)),
            }
        }
        .boxed()
    }
}
