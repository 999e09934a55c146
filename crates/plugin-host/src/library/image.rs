//! The file that a library is opened from: a copy of its bytes that cannot be changed.
//!
//! A library that is mapped from its file follows its file. A program that writes into it changes code that runs here, or ends this
//! process by making the file shorter; and one that exchanges it between the check and the opening has another one opened
//! than the one that was checked.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;

#[cfg(target_os = "linux")]
pub(super) use linux::Image;
#[cfg(not(target_os = "linux"))]
pub(super) use other::Image;
