//! Folders of their own for runs, and what comes back from them as patches.
//!
//! ```text
//!  Order ── make ──▶ a git worktree of a commit, or a copy of a folder        the run works in it
//!                                   │
//!                    gather ◀───────┘ once nothing works in it any more
//!                       │  a patch: tracked and untracked files, binary ones, renames, modes, links
//!                       ▼
//!                    discard          only when the patch is safe elsewhere
//!
//!  patches of many runs ── join ──▶ one branch, checked        patch or branch ── bring ──▶ the files of the user
//! ```
//!
//! Promises:
//!
//! - Files, index and branches of the user are not touched. A worktree is listed in the repository while it exists; copies are
//!   made of files as they stand.
//! - A folder in which an agent may have worked is not removed before its patch is on disk. After a crash [`Workspaces::left`]
//!   lists what there is, and [`Workspaces::gather`] goes on where it was.
//! - No command of git runs a hook of the repository, and what an agent has written into its folder does not decide which
//!   repository a command means.
//!
//! ```
//! use offshoot_isolation::{Git, Order, Workspaces};
//! use offshoot_model::{RootId, RunId};
//! use offshoot_process::{Options, Processes};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let somewhere = tempfile::tempdir()?;
//! let folder = somewhere.path().canonicalize()?.join("project");
//! std::fs::create_dir(&folder)?;
//! std::fs::write(folder.join("a"), "one\n")?;
//! let git = Git::find(Processes::start(Options::default())?, std::env::vars_os())?;
//! let workspaces = Workspaces::open(&somewhere.path().canonicalize()?.join("data"), git)?;
//! let run = RunId::from_bytes(*b"one run, 16 byte");
//! let (root, isolation, continues) = (RootId::new(run), "copy".parse()?, false);
//! let made = workspaces.make(Order { run, root, isolation, folder, continues }).await?;
//! std::fs::write(made.folder.join("a"), "two\n")?;
//! let patch = workspaces.gather(run).await?.and_then(|gathered| gathered.patch);
//! assert!(std::fs::read_to_string(patch.expect("a change"))?.ends_with("-one\n+two\n"));
//! workspaces.discard(run).await?;
//! # Ok(())
//! # }
//! ```
//!
//! What it cannot do: keep files that git ignores, empty folders, and the history of commits that an agent makes in its worktree. An
//! agent in a worktree shares branches and settings of the repository with its user; one in a copy does not.

mod bisection;
mod bring;
mod check;
mod commits;
mod copying;
mod error;
mod git;
mod join;
mod patch;
mod removal;
mod repository;
mod scratch;
mod shelf;
mod snapshot;
mod workspaces;

pub use bring::{Bring, Brought};
pub use check::Check;
pub use error::IsolationError;
pub use git::Git;
pub use join::{Applied, Conflict, Contribution, Joined, Joint, LeftOut, Verdict};
pub use repository::Repository;
pub use shelf::{About, Kept};
pub use workspaces::{Gathered, Order, Workspace, Workspaces};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
