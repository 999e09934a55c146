//! What the tests share.

mod control_group;
mod disk;
mod gone;
mod listener;
mod loopback;
mod named_pipe;
mod package;
mod programs;
mod release;
pub mod scenario;
mod skip;
pub mod soak;
mod target;
mod timed;

pub use control_group::control_group;
pub use disk::Disk;
pub use gone::Watched;
pub use listener::{Listener, Told, run};
pub use loopback::alone_on_loopback;
pub use named_pipe::named_pipe;
pub use package::{bubblewrap, installed};
pub use programs::{
    example, fake_agent, offshoot, offshoot_at_home, plugin_library, workspace_plugin,
    workspace_program,
};
pub use release::release_build;
pub use skip::{lacking, skip};
pub use target::target_folder;
pub use timed::Timed;
