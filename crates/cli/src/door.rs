//! The door of a running tree: how the programs that run as agents ask it for something.
//!
//! ```text
//!  offshoot run | map | fanout                        a program that runs as an agent
//!    Engine ── Porter: a pass for each run ─────────▶   OFFSHOOT_SOCKET, OFFSHOOT_TICKET
//!    Desk ◀── door ◀────────── lines of JSON-RPC ────   offshoot spawn | wait | report | cancel
//! ```
//!
//! Who asks is known from the ticket and from the kernel; nothing here reads it from an argument.

mod desk;
mod picture;
mod porter;
mod visit;

pub(crate) use desk::{Desk, history};
pub(crate) use picture::{listed, pictured};
pub(crate) use porter::Porter;
pub(crate) use visit::{above, for_the_operator, may_be_below, own, reach, refused, visit};

use std::sync::Arc;

use offshoot_door::{DoorSocket, Limits, Registry, Server};
use offshoot_spawner::Agents;
use offshoot_store::DataFolder;

use crate::environment::Environment;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::plugins::Found;

/// The folder of sockets, in the data folder.
const FOLDER: &str = "doors";

/// A socket that is bound, and passes that lead to it. Nobody answers yet: who knocks waits.
pub(crate) struct Door {
    socket: DoorSocket,
    registry: Registry,
    /// Hands out the passes.
    pub(crate) porter: Porter,
}

impl Door {
    /// Binds the socket.
    pub(crate) fn bind(folder: &DataFolder, environment: &Environment) -> Result<Self, Failure> {
        let registry = Registry::of_user(environment.runtime_folder.as_deref());
        let name = format!("{}.sock", std::process::id());
        let socket = DoorSocket::bind(&folder.path().join(FOLDER), &name, &registry)
            .map_err(|error| Failure::of(Exit::BadInput, &error).maybe_hint(Some(error.hint())))?;
        let porter = Porter::new(socket.path());
        Ok(Self { socket, registry, porter })
    }

    /// Answers from now on, for as long as the answer is kept.
    pub(crate) fn open(self, agents: Agents, plugins: Arc<Found>) -> Result<Server, Failure> {
        let Self { socket, registry, porter } = self;
        let desk = Desk::new(agents, plugins);
        Server::start(socket, registry, porter.roster(), desk, Limits::default())
            .map_err(|error| Failure::of(Exit::BadInput, &error))
    }
}
