//! A supervisor that is going to be killed.

use std::fs;
use std::process::{Child, Command, ExitStatus, Stdio};

use offshoot_test_support::named_pipe;
use rustix::process::{Pid, Signal, kill_process};

use crate::command::Place;

/// A place in which something is going to be killed.
pub(crate) struct Doomed {
    pub(crate) place: Place,
    child: Child,
}

impl Doomed {
    /// Starts this, and waits until one of its agents says that it hangs, or several do.
    pub(crate) fn start(place: Place, arguments: &[&str]) -> Self {
        let fifo = place.path().join("fifo");
        if !fifo.exists() {
            named_pipe(&fifo);
        }
        let mut command: Command = place.command(arguments);
        let child = command.stderr(Stdio::null()).spawn().expect("the program cannot be started");
        // To the end: the agent of the next life writes into the same pipe, and an agent of this one that has written but
        // not closed its side yet would be taken for it.
        let word = fs::read_to_string(fifo).expect("the agent writes a line");
        assert!(!word.is_empty() && word.lines().all(|word| word == "up"), "{word:?}");
        Self { place, child }
    }

    /// Waits until another agent says that it hangs.
    pub(crate) fn again(self) -> Self {
        let word = fs::read_to_string(self.place.path().join("fifo"));
        assert_eq!(word.expect("the agent writes a line"), "up\n");
        self
    }

    /// Stops its process, which answers nothing from then on.
    pub(crate) fn freeze(&self) {
        kill_process(self.id(), Signal::STOP).expect("the process cannot be signalled");
    }

    /// As the kernel does when memory runs out.
    pub(crate) fn kill(mut self) -> Place {
        self.end();
        self.place
    }

    /// Presses Ctrl-C, and waits for its end.
    pub(crate) fn interrupt(mut self) -> (Place, ExitStatus) {
        kill_process(self.id(), Signal::INT).expect("the process cannot be signalled");
        let status = self.child.wait().expect("the child cannot be waited for");
        (self.place, status)
    }

    /// Waits for its end.
    pub(crate) fn wait(mut self) -> (Place, ExitStatus) {
        let status = self.child.wait().expect("the child cannot be waited for");
        (self.place, status)
    }

    /// Returns the number of its process.
    pub(crate) fn number(&self) -> u32 {
        self.child.id()
    }

    fn id(&self) -> Pid {
        let id = i32::try_from(self.child.id()).expect("ids are small");
        assert!(id > 1, "a process of our own");
        Pid::from_raw(id).expect("not zero")
    }

    /// Kills it, and waits until nothing that it held is held.
    pub(crate) fn end(&mut self) {
        let locks = self.place.locks_of(self.child.id());
        kill_process(self.id(), Signal::KILL).expect("the process cannot be signalled");
        self.child.wait().expect("the child cannot be waited for");
        locks.wait();
    }
}
