//! An output that did not fit into memory, on its way into a file.

use std::fs::File;
use std::io::{self, Write};
use std::mem;
use std::path::PathBuf;

use tokio::task::{JoinHandle, spawn_blocking};

use crate::Kept;

/// Writes blocks one after the other, on a blocking thread: a disk may take its time. While one is written, the next is
/// read.
pub(super) struct Spill {
    path: PathBuf,
    state: SpillState,
}

enum SpillState {
    Idle { made: Option<Made>, buffer: Vec<u8> },
    Writing(JoinHandle<SpillState>),
    Failed { made: Option<Made>, block: Vec<u8>, error: io::Error },
}

/// A file that was made here. It is removed unless it is claimed, wherever it is by then.
struct Made {
    file: File,
    path: Option<PathBuf>,
}

impl Spill {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, state: SpillState::Idle { made: None, buffer: Vec::new() } }
    }

    /// Waits for the block that is being written.
    pub(super) async fn settle(&mut self) {
        let SpillState::Writing(writing) = &mut self.state else { return };
        self.state = match writing.await {
            Ok(written) => written,
            // The threads are being shut down, and the caller is dropped with them.
            Err(error) if error.is_cancelled() => std::future::pending().await,
            Err(error) => {
                SpillState::Failed { made: None, block: Vec::new(), error: io::Error::other(error) }
            }
        };
    }

    /// Begins to write a block, and leaves an empty buffer in its place. The one before must be settled. After a failure
    /// blocks are dropped.
    pub(super) fn write(&mut self, block: &mut Vec<u8>) {
        let SpillState::Idle { made, buffer } = &mut self.state else { return block.clear() };
        let (made, path) = (made.take(), self.path.clone());
        let full = mem::replace(block, mem::take(buffer));
        self.state = SpillState::Writing(spawn_blocking(move || write(made, path, full)));
    }

    /// Waits for the last block and hands the file over; or what went wrong, with what could be kept.
    pub(super) async fn close(mut self) -> (Kept, Option<io::Error>) {
        self.settle().await;
        let (made, block, error) = match self.state {
            SpillState::Idle { made, buffer } => (made, buffer, None),
            SpillState::Failed { made, block, error } => (made, block, Some(error)),
            SpillState::Writing(_) => unreachable!("it has just been settled"),
        };
        (made.map_or(Kept::Memory(block), |made| Kept::File(made.claim())), error)
    }
}

impl Made {
    fn claim(mut self) -> PathBuf {
        self.path.take().expect("it is claimed once")
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // No receiver is left.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Tries to write a block.
fn write(made: Option<Made>, path: PathBuf, mut block: Vec<u8>) -> SpillState {
    let made = match made {
        Some(made) => Ok(made),
        None => File::create_new(&path).map(|file| Made { file, path: Some(path) }),
    };
    let mut made = match made {
        Ok(made) => made,
        Err(error) => return SpillState::Failed { made: None, block, error },
    };
    match made.file.write_all(&block) {
        Ok(()) => {
            block.clear();
            SpillState::Idle { made: Some(made), buffer: block }
        }
        Err(error) => SpillState::Failed { made: Some(made), block, error },
    }
}
