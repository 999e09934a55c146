//! The door of one tree: a socket at which its agents ask, and the tickets by which they are known.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use offshoot_door::{DoorSocket, Limits, Registry, Server};
use offshoot_spawner::Session;
use offshoot_store::DataFolder;

use crate::day_budget::DayShare;
use crate::environment::Environment;
use crate::error::HostError;
use crate::plugins::PluginSnapshot;
use crate::processes::TreeList;
use crate::service::TreeService;
use crate::tickets::Tickets;
use crate::tree::Tree;
use crate::tree_meter::TreeMeter;

/// The folder of sockets, in the data folder.
const FOLDER: &str = "doors";

/// The number of doors that this process has bound.
static BOUND: AtomicU32 = AtomicU32::new(0);

/// A socket that is bound, tickets for it, and what it takes to open it. Until it is opened, connections wait.
#[derive(derive_more::Debug)]
#[debug("BoundDoor")]
pub(crate) struct BoundDoor {
    socket: DoorSocket,
    registry: Registry,
    pub(crate) tickets: Tickets,
    plugins: Arc<PluginSnapshot>,
    trees: TreeList,
    /// None where no runtime is metered.
    meter: Option<TreeMeter>,
}

impl BoundDoor {
    /// Binds the socket.
    pub(crate) fn bind(
        folder: &DataFolder,
        environment: &Environment,
        plugins: Arc<PluginSnapshot>,
        trees: TreeList,
        meter: Option<TreeMeter>,
    ) -> Result<Self, HostError> {
        let registry = Registry::of_user(environment.runtime_folder.as_deref());
        let name = match BOUND.fetch_add(1, Ordering::Relaxed) {
            0 => format!("{}.sock", std::process::id()),
            number => format!("{}-{number}.sock", std::process::id()),
        };
        let socket = DoorSocket::bind(&folder.path().join(FOLDER), &name, &registry)?;
        let tickets = Tickets::new(socket.path(), meter.as_ref().map(TreeMeter::desk));
        Ok(Self { socket, registry, tickets, plugins, trees, meter })
    }

    /// Opens the door of this tree.
    pub(crate) fn open(
        self,
        session: Session,
        day: Option<Arc<DayShare>>,
    ) -> Result<Tree, HostError> {
        let Self { socket, registry, tickets, plugins, trees, meter } = self;
        trees.add(session.notebook());
        let _meter = meter.map(|meter| meter.open(session.agents()));
        let service = TreeService::new(session.agents(), plugins, day.clone());
        // Before the door, which may fail to open: then the tree ends, and what it has spent is written down all the same.
        let follow = |day: Arc<DayShare>| day.follow(session.root(), session.events());
        #[expect(clippy::disallowed_methods, reason = "it ends with its tree")]
        let day = day.map(follow).map(tokio::spawn);
        let limits = Limits::default();
        let door = Arc::new(Server::start(socket, registry, tickets.tickets(), service, limits)?);
        tickets.opened(door.entrance());
        Ok(Tree { session, door, tickets, _meter, day })
    }
}
