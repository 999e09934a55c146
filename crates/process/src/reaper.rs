//! Who reaps the children that nobody waits for any more: one thread, started with the first of them.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use crate::group::wait_for_leader;
use crate::processes::Inner;
use crate::sys::ProcessId;
use crate::{Identity, remains};

/// A group that is to be ended.
#[derive(Debug)]
pub(crate) struct Burial {
    /// Keeps the keeper until the group is gone.
    pub(crate) inner: Arc<Inner>,
    pub(crate) process: ProcessId,
    pub(crate) identity: Identity,
    pub(crate) mark: String,
    /// The leader, where it may not have ended yet.
    pub(crate) leader: Option<OwnedFd>,
}

/// A thread rather than a task, because children are dropped also when the runtime is.
#[derive(Debug, Default)]
pub(crate) struct Reaper(Mutex<Option<mpsc::Sender<Burial>>>);

impl Reaper {
    /// Ends a group whose members have been killed, in its own time.
    pub(crate) fn bury(&self, burial: Burial) {
        let mut thread = self.0.lock().expect("nothing panics while it holds the sender");
        // No bound: there are no more of them than children were alive at once.
        let tx = thread.get_or_insert_with(|| {
            let (tx, rx) = mpsc::channel();
            // It ends with its sender, which goes with the last child.
            let started = thread::Builder::new().name("reaper".into()).spawn(move || run(&rx));
            // Without the thread the receiver is gone and each send fails, which is met below.
            drop(started);
            tx
        });
        if let Err(mpsc::SendError(burial)) = tx.send(burial) {
            drop(thread);
            end(&burial);
        }
    }
}

fn run(rx: &mpsc::Receiver<Burial>) {
    while let Ok(burial) = rx.recv() {
        end(&burial);
    }
}

fn end(burial: &Burial) {
    if burial.leader.as_ref().is_none_or(|leader| wait_for_leader(leader, &burial.inner)) {
        burial.process.kill_group();
        let settled = burial.inner.settle(burial.identity);
        if settled.is_none() || (!burial.inner.adopts() && burial.process.group_exists()) {
            remains::clear(burial, settled);
        }
    }
}
