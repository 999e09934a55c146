//! Named pipes, with which a test and a program wait for each other.

use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};

/// Makes a named pipe.
///
/// # Panics
/// Where it cannot be made.
pub fn named_pipe(path: impl AsRef<Path>) {
    let made = mknodat(CWD, path.as_ref(), FileType::Fifo, Mode::RWXU, 0);
    made.expect("the named pipe cannot be made");
}
