//! Child processes in groups: stop, grace, kill, capture, and no process left behind.
//!
//! ```text
//!   Program ──▶ Processes::spawn ──▶ Child ──▶ wait(stop) ──▶ Finished
//!                    │                 │  ▲
//!                    ▼                 │  └─ Stop: soft, then firm
//!                 keeper               └─ its group, and what left the group
//! ```
//!
//! Promise:
//! - A child is the leader of a session and of a group of its own, without a terminal. The group is signalled while its
//!   number still means it: the leader is reaped last.
//! - When [`Child::wait`] answers, the group is gone. With [`Options::subreaper`] so is what left the group, as long as it
//!   kept its session or its environment; and what kept neither is gone when the last child is, and named in
//!   [`Finished::strays`].
//! - A child that is dropped, or a future that waits for one, is killed.
//! - If this process is killed, a [keeper](KeeperCommand) kills its children; with [`Options::subreaper`], where this process may
//!   make control groups of version 2, also those of which nothing tells whose they were.
//! - Two copies of this crate in one process do not meddle with each other, if one has the other for its [`ProcessRegistrar`].
//! - No wait hangs: not on a pipe that another process holds open, not on a program that ignores everything, not on a process the
//!   kernel does not let go (it is declared lost).
//! - A start for which the system lacks descriptors, processes or memory can wait until a child ends:
//!   [`Processes::spawn_when_possible`].
//! - Nothing is polled, no thread is started while children do what is expected, and no start leaves `posix_spawn`.
//!
//! ```
//! use std::path::Path;
//! use std::time::Duration;
//! use offshoot_process::{Exit, Keep, Kept, Options, Processes, Program, Stdin};
//! use offshoot_process::{Stop, StopHandle, resolve_program};
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! # runtime.block_on(async {
//! let folder = Path::new("/");
//! let processes = Processes::start(Options::default())?;
//! let tr = resolve_program("tr".as_ref(), Some("/usr/bin:/bin".as_ref()), folder)?;
//! let child = processes.spawn(Program {
//!     args: vec!["a-z".into(), "A-Z".into()],
//!     stdin: Stdin::Bytes((*b"hello").into()),
//!     stdout: Keep::First(100).into(),
//!     ..Program::new(tr, folder)
//! })?;
//! let (handle, stop) = StopHandle::new();
//! let finished = child.wait(stop).await;
//! assert_eq!(finished.exit, Exit::Code(0));
//! assert_eq!(finished.stdout.kept, Kept::Memory(b"HELLO".to_vec()));
//! // The holder of the handle could have asked at any time.
//! handle.stop(Stop::Soft { grace: Duration::from_secs(5) });
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod capture;
mod cgroup;
mod child;
mod cpu;
mod error;
mod finished;
mod group;
mod holder;
mod host_memory;
mod identity;
mod input;
mod keeper;
mod leftovers;
mod limits;
mod lines;
mod pipe;
mod processes;
mod program;
mod reaper;
mod registrar;
mod remains;
mod resolve;
mod stop;
mod sys;
mod watch;

pub use cgroup::{groups_bound_memory, groups_of_others, has_control_group};
pub use child::Child;
pub use cpu::CpuClock;
pub use error::{KeeperError, ProcessesError, ProgramError, StartError};
pub use finished::{Exit, Finished, Kept, Output, Stray};
pub use holder::{holds_socket, this_process_holds_socket};
pub use host_memory::HostMemory;
pub use identity::Identity;
pub use keeper::{KeeperCommand, KeeperState, keeper_of, run_keeper};
pub use leftovers::{Leftover, Wanted, end_leftovers, leftovers};
pub use limits::{Limits, Reached};
pub use lines::Lines;
pub use processes::{KeeperFault, MARK_VARIABLE, Notice, Options, Processes, make_room};
pub use program::{Capture, Keep, Program, Stdin, Tap};
pub use registrar::{Adopted, ProcessRegistrar};
pub use resolve::resolve_program;
pub use stop::{NeverStop, Rung, Stop, StopHandle, StopReceiver, StopSignal};
pub use sys::{Stat, boot_id, own_session, process_namespace, stat};
