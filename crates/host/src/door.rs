//! The door of one tree: a socket at which its agents ask, and the tickets by which they are known.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use offshoot_door::{DoorSocket, Limits, Registry, Server};
use offshoot_spawner::Agents;
use offshoot_store::DataFolder;

use crate::day_budget::DayShare;
use crate::environment::Environment;
use crate::error::HostError;
use crate::plugins::PluginSnapshot;
use crate::service::TreeService;
use crate::tickets::Tickets;
use crate::tree_meter::MeterDesk;

/// The folder of sockets, in the data folder.
const FOLDER: &str = "doors";

/// The number of doors that this process has bound.
static BOUND: AtomicU32 = AtomicU32::new(0);

/// A socket that is bound, and tickets for it. Until it is opened, connections wait.
pub(crate) struct Door {
    socket: DoorSocket,
    registry: Registry,
    pub(crate) tickets: Tickets,
}

impl Door {
    /// Binds the socket.
    pub(crate) fn bind(
        folder: &DataFolder,
        environment: &Environment,
        meter: Option<MeterDesk>,
    ) -> Result<Self, HostError> {
        let registry = Registry::of_user(environment.runtime_folder.as_deref());
        let name = match BOUND.fetch_add(1, Ordering::Relaxed) {
            0 => format!("{}.sock", std::process::id()),
            number => format!("{}-{number}.sock", std::process::id()),
        };
        let socket = DoorSocket::bind(&folder.path().join(FOLDER), &name, &registry)?;
        let tickets = Tickets::new(socket.path(), meter);
        Ok(Self { socket, registry, tickets })
    }

    /// Answers from now on, for as long as the server is kept.
    pub(crate) fn open(
        self,
        agents: Agents,
        plugins: Arc<PluginSnapshot>,
        day: Option<Arc<DayShare>>,
    ) -> Result<Server, HostError> {
        let Self { socket, registry, tickets } = self;
        let service = TreeService::new(agents, plugins, day);
        let server =
            Server::start(socket, registry, tickets.tickets(), service, Limits::default())?;
        tickets.opened(server.entrance());
        Ok(server)
    }
}
