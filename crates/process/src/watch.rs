//! Descriptors the reactor watches.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Gives a descriptor to the reactor of the current runtime.
///
/// # Panics
///
/// Outside a tokio runtime, or in one without its reactor.
pub(crate) fn watch(descriptor: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    #[expect(
        unsafe_code,
        reason = "the function cannot know that a type keeps its descriptor open"
    )]
    // SAFETY: an `OwnedFd` is one open descriptor, the same from its making to its drop, and it is owned here.
    let watched = unsafe { AsyncFd::register_with_interest(descriptor, interest) };
    Ok(watched?)
}
