//! The interface of plugins, version 1.0: a copy that stays as it is.

mod error;
pub mod event;
mod host;
mod merge;
mod plugin;
mod run_host;
mod runtime;

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

/// JSON, or why not.
pub type Answer = RResult<RString, AbiError>;

/// An answer, when there is one.
pub type Later = FfiFuture<Answer>;

/// The version of this interface.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
