//! The binary interface between offshoot and its plugins.
//!
//! ```text
//!   host                                        plugin (a dynamic library)
//!    │ describe() ─────────────────────────────▶ manifest              before anything else, without effect
//!    │ init(HostRef, config) ──────────────────▶                       once
//!    │ runtime(name, config) ──────────────────▶ Runtime
//!    │    start(spec, RunHostRef) ─────────────▶ Run                   outcome · cancel · call
//!    │    event · spawn · call ◀──────────────── the run
//!    │ merge(name, config) ────────────────────▶ Merge
//!    │    begin(params, RunHostRef) ───────────▶ MergeJob              push · finish
//!    │ shutdown(ms) ───────────────────────────▶                       nothing of it is left
//! ```
//!
//! Small and frozen: version 1.0 stays as it is, and what is new goes into JSON. Objects of JSON have a number `"v"`,
//! fields that a reader does not know are passed over, operations that a side does not know answer
//! [`AbiError::UNSUPPORTED`].
//!
//! Promise, on both sides:
//! - Nothing unwinds across the boundary: a panic is caught where it happens and becomes [`AbiError::PANICKED`].
//! - Owned values (strings, objects, futures) belong to the side that receives them; borrowed text lives for the call.
//! - Events of one run are in order, and none follows its outcome.
//! - Only futures cross that need no particular async runtime.
//!
//! Authors of plugins use the SDK, which keeps these promises for them.
//!
//! In Rust, 1.x promises what stands here without a feature. The feature `wire` has the documents as types of the
//! contract, which is 0.x: it is for the SDK and the host, and changes with the contract. The documents themselves are part of
//! the promise.
//!
//! ```
//! use offshoot_plugin_abi::AbiError;
//!
//! let error = AbiError { code: 99, ..AbiError::unsupported("dance") };
//! assert_eq!(error.to_string(), "unsupported operation `dance`");
//! assert_eq!(error.known_code(), AbiError::FAILED);
//! ```

mod error;
pub mod event;
mod host;
mod merge;
mod plugin;
mod run_host;
mod runtime;
#[cfg(feature = "wire")]
pub mod wire;

pub use error::AbiError;
pub use host::{Host, Host_TO, HostRef};
pub use merge::{Merge, Merge_TO, MergeJob, MergeJob_TO, MergeJobRef, MergeRef};
pub use plugin::{Plugin, PluginPrefix, PluginRef};
pub use run_host::{RunHost, RunHost_TO, RunHostRef};
pub use runtime::{Outcome, OutcomeLater, Run, Run_TO, RunRef, Runtime, Runtime_TO, RuntimeRef};

pub use abi_stable;
pub use async_ffi;

use abi_stable::std_types::{RResult, RString};
use async_ffi::FfiFuture;

#[cfg(all(doctest, feature = "wire"))]
#[doc = include_str!("../README.md")]
struct Readme;

/// JSON, or why not.
pub type Answer = RResult<RString, AbiError>;

/// An answer, when there is one.
pub type Later = FfiFuture<Answer>;

/// The version of this interface: a number of its own, which changes only when the layout grows. The version of this crate may
/// be a later one.
pub const VERSION: &str = "1.0.0";
