//! The run of a connection: the kernel tells the socket at its other end, and the processes of a run whether they hold it.
//!
//! A ticket alone proves nothing: a program may have written it into a file. It names the run, and the socket must be open in one of the
//! processes of that run.

mod socket;

use std::net::SocketAddr;

use offshoot_process::{holds_socket, this_process_holds_socket};

use crate::runs::{PluginProcesses, Start};

/// A connection by its two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    /// The program's end.
    pub(crate) theirs: SocketAddr,
    /// The meter's end.
    pub(crate) ours: SocketAddr,
}

/// True if this process, or one of the processes of the plugin that works for a run, holds the other end of a connection.
pub(crate) async fn is_of_plugin(ends: Ends, plugin: PluginProcesses) -> bool {
    let holds = move |inode| {
        this_process_holds_socket(inode)
            || plugin().into_iter().any(|leader| holds_socket(leader, inode))
    };
    looks(ends, holds).await
}

/// True if one of the processes of a run holds the other end of a connection.
pub(crate) async fn belongs(ends: Ends, start: Start) -> bool {
    let holds = move |inode| match start {
        Start::Expected => false,
        Start::Inside => this_process_holds_socket(inode),
        Start::Process(leader) => holds_socket(leader, inode),
    };
    looks(ends, holds).await
}

async fn looks(ends: Ends, holds: impl Fn(u64) -> bool + Send + 'static) -> bool {
    // Reading `/proc` takes microseconds for a few processes, and milliseconds where all of them have to be looked at.
    let looked = tokio::task::spawn_blocking(move || {
        let Some(inode) = socket::inode(ends.theirs, ends.ours) else { return false };
        // Once more, because a process may have handed its place to another while it was looked for.
        holds(inode) || holds(inode)
    });
    looked.await.unwrap_or(false)
}
