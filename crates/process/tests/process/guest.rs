//! A copy of the crate that is a guest in the process of another program.

use std::io;
use std::sync::{Arc, Condvar, Mutex};

use offshoot_process::{
    Adopted, Exit, Identity, MARK_VARIABLE, NeverStop, Options, ProcessRegistrar, Processes,
    StartError,
};
use offshoot_test_support::Watched;

use super::{agent, shell, text, within};

/// Stands between guest and host as the interface of plugins does, and notes what is said.
#[derive(Debug)]
struct Between {
    host: Processes,
    said: Mutex<Vec<&'static str>>,
    more: Condvar,
    /// True if the host cannot hold another one.
    full: bool,
}

impl Between {
    fn new(full: bool) -> Arc<Self> {
        let host = Processes::start(Options::default()).expect("processes cannot be held");
        Arc::new(Self { host, said: Mutex::default(), more: Condvar::new(), full })
    }

    fn note(&self, word: &'static str) {
        self.said.lock().expect("a thread panicked with the lock").push(word);
        self.more.notify_all();
    }

    fn said(&self) -> Vec<&'static str> {
        self.said.lock().expect("a thread panicked with the lock").clone()
    }
}

impl ProcessRegistrar for Between {
    fn starting(&self) -> Option<String> {
        self.note("starting");
        Some(self.host.guest_starting())
    }

    fn not_started(&self) {
        self.note("not started");
        self.host.guest_not_started();
    }

    fn started(&self, leader: Identity) -> io::Result<()> {
        self.note("started");
        if self.full {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        self.host.guest_started(leader).map_err(io::Error::other)
    }

    fn ended(&self, leader: Identity) {
        self.note("ended");
        self.host.guest_ended(leader);
    }

    fn orphans(&self) -> Option<Adopted> {
        self.host.guest_orphans()
    }
}

fn guest(registrar: &Arc<Between>) -> Processes {
    let registrar = Some(Arc::clone(registrar) as Arc<dyn ProcessRegistrar>);
    Processes::start(Options { registrar, ..Options::default() }).expect("processes cannot be held")
}

#[tokio::test]
async fn a_registrar_is_told_of_each_child_and_marks_it() {
    let registrar = Between::new(false);
    let script = format!("printf %s \"${MARK_VARIABLE}\"");
    let child = guest(&registrar).spawn(shell(&script)).expect("the program cannot be started");
    let finished = within(child.wait(NeverStop)).await;
    assert_eq!(finished.exit, Exit::Code(0));
    assert_eq!(registrar.said(), ["starting", "started", "ended"]);
    let mark = text(&finished.stdout);
    assert_eq!(mark.matches(".1;").count(), 2, "the host's element and the guest's: {mark}");

    let mut nowhere = shell("");
    nowhere.path = "/nowhere/at/all".into();
    guest(&registrar).spawn(nowhere).expect_err("there is no such program");
    assert_eq!(registrar.said()[3..], ["starting", "not started"]);
}

#[tokio::test]
async fn what_a_registrar_cannot_hold_is_ended() {
    let registrar = Between::new(true);
    let guest = guest(&registrar);
    let error = guest.spawn(agent(&["hang"])).expect_err("the registrar says no");
    assert!(matches!(error, StartError::Keeper(_)), "{error}");
    assert_eq!(registrar.said(), ["starting", "started", "ended"]);
    assert_eq!(guest.live(), []);
}

#[tokio::test]
async fn a_child_that_is_dropped_is_ended_for_the_registrar_too() {
    let registrar = Between::new(false);
    let guest = guest(&registrar);
    let child = guest.spawn(agent(&["hang"])).expect("the program cannot be started");
    let leader = Watched::new(child.identity().pid);
    drop(child);
    assert!(leader.is_gone_within(super::FAR));
    // It is reaped by a thread, in its own time.
    let said = registrar.said.lock().expect("a thread panicked with the lock");
    let said = registrar.more.wait_timeout_while(said, super::FAR, |said| said.len() < 3);
    assert_eq!(*said.expect("a thread panicked with the lock").0, ["starting", "started", "ended"]);
}
