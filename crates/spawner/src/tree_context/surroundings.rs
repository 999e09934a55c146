//! Parts that all trees of a spawner share.

use std::sync::Arc;

use offshoot_config::Config;
use offshoot_policy::memory::HostMemory;
use offshoot_store::{DataFolder, Store};

use super::Gauge;
use crate::account_board::AccountBoard;
use crate::clock::Clock;
use crate::host_slots::HostSlots;
use crate::runtimes::Runtimes;
use crate::ticket_issuer::TicketIssuer;
use crate::workspaces::Workspaces;

/// Tells how much memory the computer has; nothing where the system does not say.
pub(crate) type HostMemorySource = Arc<dyn Fn() -> Option<HostMemory> + Send + Sync>;

/// The surroundings of all trees.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) config: Config,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) folder: Arc<DataFolder>,
    pub(crate) runtimes: Arc<Runtimes>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) active: Arc<Gauge>,
    pub(crate) ticket_issuer: Option<Arc<dyn TicketIssuer>>,
    /// The maker of folders of their own for runs; none where there is none.
    pub(crate) workspaces: Option<Arc<dyn Workspaces>>,
    /// The place where trees of the user tell each other of quotas that are used up; none where there is none.
    pub(crate) account_board: Option<Arc<dyn AccountBoard>>,
    /// Tells how much memory the computer has; none where runs wait for none.
    pub(crate) host_memory: Option<HostMemorySource>,
    pub(crate) host_slots: Option<Arc<dyn HostSlots>>,
}
