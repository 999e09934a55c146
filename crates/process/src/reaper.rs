//! The thread that reaps children for which no caller waits any more, started with the first of them.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use crate::group::wait_for_leader;
use crate::processes::Inner;
use crate::sys::ProcessId;
use crate::{Identity, remains};

/// A group that is to be ended.
#[derive(Debug)]
pub(crate) struct EndingGroup {
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
pub(crate) struct Reaper(Mutex<Option<mpsc::Sender<EndingGroup>>>);

impl Reaper {
    /// Ends a group whose members have been killed, in its own time.
    pub(crate) fn end_later(&self, ending: EndingGroup) {
        let mut thread = self.0.lock().expect("nothing panics while it holds the sender");
        // No bound: there are no more of them than children were alive at once.
        let tx = thread.get_or_insert_with(|| {
            let (tx, rx) = mpsc::channel();
            // The thread ends with its sender, which is dropped with the last child.
            let started = thread::Builder::new().name("reaper".into()).spawn(move || run(&rx));
            // Without the thread the receiver is gone and each send fails, which is met below.
            drop(started);
            tx
        });
        if let Err(mpsc::SendError(ending)) = tx.send(ending) {
            drop(thread);
            end(&ending);
        }
    }
}

fn run(rx: &mpsc::Receiver<EndingGroup>) {
    while let Ok(ending) = rx.recv() {
        end(&ending);
    }
}

fn end(ending: &EndingGroup) {
    if ending.leader.as_ref().is_none_or(|leader| wait_for_leader(leader, &ending.inner)) {
        ending.process.kill_group();
        let settled = ending.inner.settle(ending.identity);
        if settled.is_none() || (!ending.inner.adopts() && ending.process.group_exists()) {
            remains::clear(ending, settled);
        }
    }
}
