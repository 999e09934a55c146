//! The events of a tree, on their way from the record to the screen.

use offshoot_model::RootId;
use tokio::sync::mpsc::Sender;

use super::{Told, start_thread};
use crate::failure::Failure;
use crate::record::Record;

/// Events are told in parts of this size, so that the first ones are seen before the last ones are read.
const AT_ONCE: usize = 512;

/// The screen is not there any more.
struct Left;

/// Reads a tree on a thread of its own, from its beginning on, also after its supervisor has gone: another one may go on with it. The
/// thread ends with the process: a wait for a record cannot be called off.
pub(super) fn follow(root: RootId, record: Record, tx: Sender<Told>) -> Result<(), Failure> {
    let read = move || {
        if let Err(failure) = read(root, &record, &tx) {
            // Where the screen has gone, the user has left.
            let _ = tx.blocking_send(Told::Failed(failure));
        }
    };
    start_thread("events", read)
}

fn read(root: RootId, record: &Record, tx: &Sender<Told>) -> Result<(), Failure> {
    let tell = |told| tx.blocking_send(told).map_err(|_| Left);
    // Before anything is read, so that nothing happens in between.
    let mut watch = record.watch(root)?;
    let (mut last, mut is_first) = (0, true);
    // True once it was told that no supervisor is there, and as long as nothing has happened since.
    let mut is_gone = false;
    loop {
        // A supervisor that lets go of the tree has written all there is.
        let is_over = record.is_abandoned(root)?;
        let mut part = Vec::new();
        for event in record.store().events(root, last) {
            let event = event?;
            (last, is_gone) = (event.seq, false);
            part.push(event);
            if part.len() == AT_ONCE && tell(Told::Events(std::mem::take(&mut part))).is_err() {
                return Ok(());
            }
        }
        let mut news = vec![Told::Events(part)];
        if is_over && !std::mem::replace(&mut is_gone, true) {
            news.push(Told::Gone(root));
        }
        if std::mem::take(&mut is_first) {
            news.push(Told::Read);
        }
        if news.into_iter().try_for_each(tell).is_err() {
            return Ok(());
        }
        if is_over {
            watch.wait_for_a_write()?;
            // A supervisor that came since has a lock of its own.
            watch = record.watch(root)?;
        } else {
            watch.wait()?;
        }
    }
}
