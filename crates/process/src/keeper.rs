//! The keeper: a small process that outlives its supervisor by a moment, to kill what that left behind.
//!
//! ```text
//!   supervisor ── writes groups ──▶ ledger       ···      keeper
//!       │ kill -9                      │                    │ its line closes
//!       ▼                              ▼                    ▼
//!     gone                       token, groups ──▶ kills each group, then what carries the token, then the control group
//! ```
//!
//! Promise: whatever way the supervisor ends, no child of it lives on, neither one that was started but not yet told,
//! nor one that left its group. Where the supervisor has a control group of its own, that holds in any case; otherwise what left
//! its session, erased its environment *and* lost its parents is not found.
//!
//! The keeper has a session of its own, so that no terminal reaches it, and holds nothing but the ledger and its end of the
//! line: no lock, no database, no folder. It sleeps until the end, whatever is started and ends meanwhile, but for one sign of
//! life a minute that it gives when it is asked.

mod ledger;
mod link;
mod state;
mod sweep;
#[cfg(test)]
mod tests;

pub(crate) use ledger::TOKEN_BYTES;
pub(crate) use link::Link;
pub use state::{KeeperState, keeper_of};

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::Arc;

use rustix::io::{read, retry_on_intr, write};

use crate::cgroup;
use crate::sys::own_threads;
use ledger::Left;

/// The name of the file in memory that a keeper has for its ledger.
const LEDGER: &str = "keeper";

/// The line by which a keeper says that it is ready.
const READY: &[u8] = b"offshoot-keeper 4\n";

/// The command that starts a keeper. The program must call [`run_keeper`] first thing when it is given these arguments.
#[derive(Clone, Debug)]
pub struct KeeperCommand {
    /// The absolute path of the program.
    pub program: PathBuf,
    /// Without the program itself.
    pub args: Vec<OsString>,
    /// The standard error of the keeper, where the program writes its log. None leads nowhere.
    pub log: Option<Arc<OwnedFd>>,
}

/// Is the keeper, until its supervisor has ended and nothing of it is left. Never comes back.
///
/// It must be called before the process has started a thread or opened anything, because it closes every descriptor
/// above 2: with other threads about it refuses and ends with code 1. Standard input is the ledger, standard output the line
/// to the supervisor.
#[expect(clippy::disallowed_methods, reason = "this process has no purpose beside the keeper")]
pub fn run_keeper() -> ! {
    let code = match hold() {
        Ok(()) => 0,
        // The supervisor sees the silence.
        Err(error) => {
            tracing::error!(error = error.to_string(), "keeper failed");
            1
        }
    };
    std::process::exit(code)
}

fn hold() -> io::Result<()> {
    if own_threads()? != 1 {
        return Err(io::Error::other("other threads run"));
    }
    // It fails only where this is a session's leader already.
    let _ = rustix::process::setsid();
    std::env::set_current_dir("/")?;
    close_inherited()?;
    // Said before the supervisor goes on: what it draws on the terminal then must not be torn.
    tracing::debug!(pid = std::process::id(), "keeper ready");
    let mut line = io::stdout().lock();
    line.write_all(READY)?;
    line.flush()?;
    // Any end of the line is the end of the supervisor; nothing else has its other side.
    answer_until_hangup(&line);
    let ledger = io::stdin().as_fd().try_clone_to_owned()?;
    match Left::read(&ledger.into())? {
        Some(Left { token, cgroup, groups }) => {
            tracing::warn!(groups = groups.len(), "supervisor gone, its processes are killed");
            sweep::groups(&groups);
            let swept = sweep::carriers(&token);
            tracing::info!(
                control_group = cgroup.is_some(),
                "processes of the supervisor are gone"
            );
            // Last, because it ends this process too, where that was started inside and could not be put out.
            cgroup.iter().for_each(|cgroup| cgroup::end(cgroup));
            swept
        }
        None => {
            tracing::debug!("supervisor ended in order");
            Ok(())
        }
    }
}

/// Gives back what comes, which is how the supervisor knows that its keeper is alive, until the line closes.
fn answer_until_hangup(line: impl AsFd) {
    let mut block = [0; 64];
    while let Ok(length @ 1..) = retry_on_intr(|| read(&line, &mut block)) {
        // An error of writing means that the line is closed, which the next read finds.
        let _ = retry_on_intr(|| write(&line, &block[..length]));
    }
}

/// Closes whatever the supervisor had inherited itself and handed on without knowing.
fn close_inherited() -> io::Result<()> {
    let listing = std::fs::read_dir("/proc/self/fd")?;
    let open: Vec<RawFd> =
        listing.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2) {
        #[expect(
            unsafe_code,
            reason = "a descriptor that is known by its number alone cannot be closed in any other way"
        )]
        // SAFETY: this is the only thread, it never goes back to its caller, and it holds no descriptor above 2 itself:
        // the one of the listing is closed already, for which closing again is an error without effect.
        unsafe {
            let _ = rustix::io::try_close(descriptor);
        }
    }
    Ok(())
}
