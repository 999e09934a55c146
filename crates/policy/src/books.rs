//! The books of one tree: spawns, reservations, breakers, walls of quotas, paces of accounts, shared prompts and memory, over all its sessions.

use offshoot_model::{Origin, RunId, Timestamp};

use crate::admission::Admission;
use crate::breaker::Breakers;
use crate::budget::Ledger;
use crate::memory::Memory;
use crate::pace::Paces;
use crate::prefix::Prefixes;
use crate::quota::Quotas;
use crate::rate::Window;

/// The books of one tree: counted for the whole of it. Admission reads them and the owner of the tree
/// writes what was admitted into them in the same step, so that nothing is promised twice.
#[derive(Clone, Debug, Default)]
pub struct Books {
    /// Spawns that agents have asked for and got.
    pub spawns: u32,
    /// The spawns of the last minute.
    pub window: Window,
    /// The breakers, by kind of agent.
    pub breakers: Breakers,
    /// The walls of quotas, by account.
    pub quotas: Quotas,
    /// The bounds of runs that work at once, by account.
    pub paces: Paces,
    /// The prompts that runs have in common.
    pub prefixes: Prefixes,
    /// The memory that is reserved for live runs.
    pub memory: Memory,
    /// The amounts that are reserved and used.
    pub ledger: Ledger,
}

impl Books {
    /// Reserves what was admitted, for the run that it becomes.
    ///
    /// # Panics
    ///
    /// When something else was reserved between the question and this.
    pub fn reserve(
        &mut self,
        run: RunId,
        parent: Option<RunId>,
        admission: &Admission,
        now: Timestamp,
    ) {
        if admission.origin == Origin::Agent {
            self.spawns = self.spawns.saturating_add(1);
            self.window.record(now);
        }
        match admission.grant.default_usd {
            Some(_) => self.ledger.open_by_default(run, parent, admission.grant.budget),
            None => self.ledger.open(run, parent, admission.grant.budget),
        }
        self.ledger.pool(run, admission.grant.pooled);
    }
}
