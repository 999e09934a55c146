//! The tickets and processes of the runs that may connect.

use std::collections::HashMap;

use offshoot_model::{ProcessIdentity, RunId};
use tokio::sync::watch;

use crate::Ticket;

/// The runs that may come to the door. Pure: nothing is minted, read or waited for in here.
#[derive(Debug, Default)]
pub struct Tickets {
    entries: HashMap<RunId, Entry>,
    /// By process number.
    processes: HashMap<u32, (u64, RunId)>,
    /// The commands that the supervisor runs for the operator.
    commands: Vec<ProcessIdentity>,
    /// The number of them that are being started.
    commands_expected: usize,
}

/// The runs that may come to the door, as the engine and the server share them. Cheap to clone; all clones are one.
#[derive(Clone, Debug, Default)]
pub struct SharedTickets(watch::Sender<Tickets>);

/// A command that the supervisor runs for the operator, for as long as it runs. Dropped, the process is no such command any more.
#[derive(Debug)]
pub struct OperatorCommand {
    tickets: SharedTickets,
    process: Option<ProcessIdentity>,
}

#[derive(Debug)]
struct Entry {
    ticket: Ticket,
    start: Start,
}

#[derive(Debug)]
enum Start {
    /// The start has not been reported yet.
    Expected,
    /// The leader of its session.
    Process(ProcessIdentity),
    /// The run is inside the supervisor.
    Inside,
}

impl Tickets {
    /// A run is about to start, and this is its ticket. One that had a ticket before has this one from now on; said again
    /// with the same one when a run is about to go on in another process.
    pub fn admit(&mut self, run: RunId, ticket: Ticket) {
        self.ended(run);
        self.entries.insert(run, Entry { ticket, start: Start::Expected });
    }

    /// A run has started: in this process, or in none of its own.
    pub fn started(&mut self, run: RunId, process: Option<ProcessIdentity>) {
        let Some(entry) = self.entries.get_mut(&run) else { return };
        let start = process.map_or(Start::Inside, Start::Process);
        let earlier = std::mem::replace(&mut entry.start, start);
        self.forget(run, earlier);
        if let Some(process) = process {
            self.processes.insert(process.pid, (process.start_time, run));
        }
    }

    /// Forgets the process of a run, unless another run has that number by now.
    fn forget(&mut self, run: RunId, start: Start) {
        if let Start::Process(process) = start
            && self.processes.get(&process.pid).is_some_and(|(_, owner)| *owner == run)
        {
            self.processes.remove(&process.pid);
        }
    }

    /// A run is over: its ticket is worth nothing any more.
    pub fn ended(&mut self, run: RunId) {
        if let Some(entry) = self.entries.remove(&run) {
            self.forget(run, entry.start);
        }
    }

    /// True if the run may connect.
    pub fn has(&self, run: RunId) -> bool {
        self.entries.contains_key(&run)
    }

    /// Returns the run of this ticket. Compares it with every one of them, each in constant time, so that the time tells nothing
    /// about how near a guess was.
    pub fn owner(&self, ticket: &Ticket) -> Option<RunId> {
        self.entries.iter().fold(
            None,
            |found, (run, entry)| {
                if entry.ticket == *ticket { Some(*run) } else { found }
            },
        )
    }

    /// Returns the run of this process.
    pub fn of_process(&self, process: ProcessIdentity) -> Option<RunId> {
        let (start_time, run) = self.processes.get(&process.pid)?;
        (*start_time == process.start_time).then_some(*run)
    }

    /// True if some run was admitted, or a command of the operator's is started, and the process has not been reported.
    pub fn expects_a_start(&self) -> bool {
        self.commands_expected > 0
            || self.entries.values().any(|entry| matches!(entry.start, Start::Expected))
    }

    /// True if this process is a command that the supervisor runs for the operator.
    pub fn is_command(&self, process: ProcessIdentity) -> bool {
        self.commands.contains(&process)
    }

    /// True if the start of this run has not been reported.
    pub fn expects_start_of(&self, run: RunId) -> bool {
        self.entries.get(&run).is_some_and(|entry| matches!(entry.start, Start::Expected))
    }
}

impl SharedTickets {
    /// No tickets.
    pub fn new() -> Self {
        Self::default()
    }

    /// See [`Tickets::admit`]. To be called before the run's process is started, because it may knock at once.
    pub fn admit(&self, run: RunId, ticket: Ticket) {
        self.0.send_modify(|tickets| tickets.admit(run, ticket));
    }

    /// See [`Tickets::started`].
    pub fn started(&self, run: RunId, process: Option<ProcessIdentity>) {
        self.0.send_modify(|tickets| tickets.started(run, process));
    }

    /// See [`Tickets::ended`].
    pub fn ended(&self, run: RunId) {
        self.0.send_modify(|tickets| tickets.ended(run));
    }

    /// A command is about to be started for the operator. To be called before its process is started, because it may knock at once.
    pub fn operator_command(&self) -> OperatorCommand {
        self.0.send_modify(|tickets| tickets.commands_expected += 1);
        OperatorCommand { tickets: self.clone(), process: None }
    }

    pub(crate) fn has(&self, run: RunId) -> bool {
        self.0.borrow().has(run)
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Tickets> {
        self.0.subscribe()
    }
}

impl OperatorCommand {
    /// The command runs as this process.
    pub fn started(&mut self, process: ProcessIdentity) {
        self.forget();
        self.process = Some(process);
        self.tickets.0.send_modify(|tickets| tickets.commands.push(process));
    }

    fn forget(&mut self) {
        let process = self.process.take();
        self.tickets.0.send_modify(|tickets| match process {
            Some(process) => tickets.commands.retain(|command| *command != process),
            None => tickets.commands_expected -= 1,
        });
    }
}

impl Drop for OperatorCommand {
    fn drop(&mut self) {
        self.forget();
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn run(number: u128) -> RunId {
        RunId::from_uuid(Uuid::from_u128(number))
    }

    fn process(pid: u32, start_time: u64) -> ProcessIdentity {
        ProcessIdentity::new(pid, start_time)
    }

    /// A session ends its process while it waits, and the system gives the number to another run.
    #[test]
    fn a_number_that_another_run_has_by_now_stays_with_that_one() {
        let mut tickets = Tickets::default();
        let (first, second) = (process(7, 100), process(7, 200));
        for at in [1, 2] {
            tickets.admit(run(at), Ticket::mint().unwrap());
        }
        tickets.started(run(1), Some(first));
        tickets.started(run(2), Some(second));
        tickets.started(run(1), Some(process(8, 300)));
        assert_eq!(tickets.of_process(second), Some(run(2)));
        tickets.started(run(1), Some(second));
        tickets.started(run(2), Some(second));
        tickets.ended(run(1));
        assert_eq!(tickets.of_process(second), Some(run(2)));
    }

    #[test]
    fn a_ticket_lives_as_long_as_its_run() {
        let mut tickets = Tickets::default();
        let [one, two] = [1, 2].map(|_| Ticket::mint().unwrap());
        tickets.admit(run(1), one.clone());
        tickets.admit(run(2), two.clone());
        assert_eq!((tickets.owner(&one), tickets.owner(&two)), (Some(run(1)), Some(run(2))));
        assert_eq!(tickets.owner(&Ticket::mint().unwrap()), None);
        tickets.ended(run(1));
        assert_eq!((tickets.owner(&one), tickets.owner(&two)), (None, Some(run(2))));
        assert!(!tickets.has(run(1)) && tickets.has(run(2)));
        let newer = Ticket::mint().unwrap();
        tickets.admit(run(2), newer.clone());
        assert_eq!((tickets.owner(&two), tickets.owner(&newer)), (None, Some(run(2))));
    }

    #[test]
    fn a_process_is_its_number_and_its_start() {
        let mut tickets = Tickets::default();
        tickets.admit(run(1), Ticket::mint().unwrap());
        assert!(tickets.expects_a_start() && tickets.expects_start_of(run(1)));
        tickets.started(run(1), Some(process(10, 5)));
        assert!(!tickets.expects_a_start() && !tickets.expects_start_of(run(1)));
        assert_eq!(tickets.of_process(process(10, 5)), Some(run(1)));
        assert_eq!(tickets.of_process(process(10, 6)), None, "the number was used again");

        // Another turn in another process.
        tickets.started(run(1), Some(process(11, 7)));
        assert_eq!(tickets.of_process(process(10, 5)), None);
        assert_eq!(tickets.of_process(process(11, 7)), Some(run(1)));

        tickets.ended(run(1));
        assert_eq!(tickets.of_process(process(11, 7)), None);
        tickets.started(run(1), Some(process(12, 8)));
        assert_eq!(
            tickets.of_process(process(12, 8)),
            None,
            "it was over before the engine said that it ran"
        );
    }

    #[test]
    fn a_command_of_the_operator_is_one_while_it_runs() {
        let shared = SharedTickets::new();
        let look = || {
            let tickets = shared.0.borrow();
            (tickets.expects_a_start(), tickets.is_command(process(10, 5)))
        };
        let mut command = shared.operator_command();
        assert_eq!(look(), (true, false));
        command.started(process(10, 5));
        assert_eq!(look(), (false, true));
        assert!(!shared.0.borrow().is_command(process(10, 6)), "the number was used again");
        drop(command);
        assert_eq!(look(), (false, false));
        drop(shared.operator_command());
        assert_eq!(look(), (false, false), "it could not be started");
    }

    #[test]
    fn a_run_inside_the_supervisor_has_no_process() {
        let mut tickets = Tickets::default();
        tickets.admit(run(1), Ticket::mint().unwrap());
        tickets.started(run(1), None);
        assert!(tickets.has(run(1)) && !tickets.expects_a_start());
    }
}
