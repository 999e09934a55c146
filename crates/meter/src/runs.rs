//! The runs that may use the meter, with their terms.

use std::collections::HashMap;
use std::sync::Arc;

use offshoot_model::RunId;
use offshoot_process::Identity;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::known::Known;
use crate::protocol::Provider;
use crate::ticket::{Ticket, TicketDigest};
use crate::upstream::Upstream;

/// A look for the processes of a plugin that is a program; none for a plugin that is a library of this process.
pub type PluginProcesses = Arc<dyn Fn() -> Vec<Identity> + Send + Sync>;

/// The rules for the requests of a run.
#[derive(Clone, Default, derive_more::Debug)]
pub struct Terms {
    /// True if a budget of dollars stands over the run. Then a request whose cost has no bound is refused.
    pub dollars: bool,
    /// Such a request is let through all the same.
    pub allow_unknown_cost: bool,
    /// The provider may run tools, although they cost more than tokens and a budget of dollars stands over the run.
    pub allow_server_tools: bool,
    /// The limit that is written into a request without one; none for what the price of the model says, or what is built in.
    pub output_limit: Option<u64>,
    /// True if half of a limit that the meter has written is asked for where a request is too much, and half of that again. A run that is to wait
    /// for more budget is given no shorter answers instead.
    pub shortens: bool,
    /// The providers to which requests go, by the protocol that they speak.
    pub upstreams: HashMap<Provider, Upstream>,
    /// The plugin that asks for the run, beside the processes of the run itself. None where the runtime is built in.
    #[debug(skip)]
    pub plugin: Option<PluginProcesses>,
}

/// The runs that may use a meter. Cheap to clone; all clones are one.
#[derive(Clone, Debug, Default)]
pub struct Runs(watch::Sender<Table>);

#[derive(Default, derive_more::Debug)]
struct Table {
    #[debug(skip)]
    by_ticket: HashMap<TicketDigest, RunId>,
    entries: HashMap<RunId, Entry>,
}

#[derive(Clone, derive_more::Debug)]
pub(crate) struct Entry {
    #[debug(skip)]
    digest: TicketDigest,
    pub(crate) terms: Arc<Terms>,
    #[debug(skip)]
    pub(crate) known: Arc<Mutex<Known>>,
    start: Start,
    /// Cancelled once the run is over: its connections are closed.
    pub(crate) ended: CancellationToken,
    /// The requests that are not settled.
    pub(crate) open: TaskTracker,
}

/// The place of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// The start has not been reported yet.
    Expected,
    /// The leader of its session.
    Process(Identity),
    /// Inside this process.
    Inside,
}

impl Runs {
    /// A run is about to start, and this is its ticket. To be called before its process is started, because it may call at once. A run
    /// that had a ticket before has this one from now on; what is known of its conversations stays.
    pub fn admit(&self, run: RunId, ticket: &Ticket, terms: Terms) {
        let digest = ticket.digest();
        self.0.send_modify(|table| {
            let earlier = table.entries.get(&run);
            let known = earlier.map(|entry| Arc::clone(&entry.known)).unwrap_or_default();
            if let Some(earlier) = earlier.map(|entry| entry.digest) {
                table.by_ticket.remove(&earlier);
            }
            table.by_ticket.insert(digest, run);
            let terms = Arc::new(terms);
            let (ended, open) = (CancellationToken::new(), TaskTracker::new());
            let entry = Entry { digest, terms, known, start: Start::Expected, ended, open };
            // What an earlier attempt has left open is over.
            if let Some(earlier) = table.entries.insert(run, entry) {
                earlier.ended.cancel();
            }
        });
    }

    /// A run has started: in this process, or in none of its own.
    pub fn started(&self, run: RunId, process: Option<Identity>) {
        self.0.send_modify(|table| {
            if let Some(entry) = table.entries.get_mut(&run) {
                entry.start = process.map_or(Start::Inside, Start::Process);
            }
        });
    }

    /// A run is over: its ticket is worth nothing any more, its connections are closed, and when this answers each of its requests has
    /// been told as settled.
    pub async fn end(&self, run: RunId) {
        let mut entry = None;
        self.0.send_modify(|table| {
            entry = table.entries.remove(&run);
            if let Some(entry) = &entry {
                table.by_ticket.remove(&entry.digest);
            }
        });
        let Some(entry) = entry else { return };
        entry.ended.cancel();
        entry.open.close();
        entry.open.wait().await;
    }

    /// The run of a text that may be a ticket.
    pub(crate) fn owner(&self, text: &str) -> Option<(RunId, Entry)> {
        let table = self.0.borrow();
        let run = *table.by_ticket.get(&TicketDigest::of(text))?;
        Some((run, table.entries.get(&run)?.clone()))
    }

    /// Returns the place of a run, as soon as it is reported; none once the run is over.
    pub(crate) async fn start_of(&self, run: RunId) -> Option<Start> {
        let mut watched = self.0.subscribe();
        let start = |table: &Table| table.entries.get(&run).map(|entry| entry.start);
        let table = watched.wait_for(|table| start(table) != Some(Start::Expected)).await.ok()?;
        start(&table)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[tokio::test]
    async fn a_ticket_is_worth_something_while_its_run_lives() {
        let runs = Runs::default();
        let run = RunId::from_uuid(Uuid::from_u128(1));
        let (first, second) = (Ticket::mint().unwrap(), Ticket::mint().unwrap());
        let owner = |ticket: &Ticket| runs.owner(ticket.expose()).map(|(run, _)| run);
        assert_eq!(owner(&first), None);
        runs.admit(run, &first, Terms::default());
        assert_eq!(owner(&first), Some(run));
        let waits = runs.start_of(run);
        let process = Identity { pid: 1, start_time: 2 };
        runs.started(run, Some(process));
        assert_eq!(waits.await, Some(Start::Process(process)));
        runs.admit(run, &second, Terms::default());
        assert_eq!((owner(&first), owner(&second)), (None, Some(run)));
        let shown = format!("{runs:?}");
        assert!(!shown.contains(second.expose()) && !shown.contains("offshoot-meter"), "{shown}");
        runs.end(run).await;
        assert_eq!((owner(&second), runs.start_of(run).await), (None, None));
    }
}
