//! The calls to the operating system. One file for each system; the rest of the crate names none of them.

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub(crate) use linux::*;
#[cfg(target_os = "linux")]
pub use linux::{Stat, boot_id, own_session, process_namespace, stat};

#[cfg(not(target_os = "linux"))]
compile_error!("only Linux so far: another system is another file beside sys/linux.rs");
