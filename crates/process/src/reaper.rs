//! The thread that reaps children for which no caller waits any more, started with the first of them.

use std::os::fd::OwnedFd;
use std::sync::{Mutex, mpsc};
use std::thread;

use crate::group::KnownGroup;
use crate::{remains, sys};

/// A group that is to be ended, and its leader, which may not have ended yet.
type EndingGroup = (KnownGroup, OwnedFd);

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
            let run = move || rx.iter().for_each(end);
            let started = thread::Builder::new().name("reaper".into()).spawn(run);
            // Without the thread the receiver is gone and each send fails, which is met below.
            drop(started);
            tx
        });
        if let Err(mpsc::SendError(ending)) = tx.send(ending) {
            drop(thread);
            end(ending);
        }
    }
}

fn end((group, leader): EndingGroup) {
    if sys::wait_readable(leader, group.inner.options.end_limit) {
        group.process.kill_group();
        let settled = group.inner.settle(group.identity);
        if settled.is_none() || (!group.inner.adopts() && group.process.group_exists()) {
            remains::clear(&group, settled);
        }
    }
}
