//! What the tests share.

mod disk;
mod gone;
mod programs;
pub mod scenario;

pub use disk::Disk;
pub use gone::Watched;
pub use programs::{fake_agent, offshoot};
