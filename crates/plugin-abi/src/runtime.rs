//! A runtime of a plugin, and one run of it.

#![expect(
    unsafe_code,
    unused_qualifications,
    non_local_definitions,
    reason = "the code that `sabi_trait` writes, which is sound as long as every library is checked against the layout"
)]

use abi_stable::std_types::{RBox, RResult, RStr, RString, RVec};
use abi_stable::{StableAbi, sabi_trait};
use async_ffi::FfiFuture;

use crate::{AbiError, Later, RunHostRef};

/// A runtime of agents, on the plugin's side.
#[sabi_trait]
pub trait Runtime: Send + Sync {
    /// Starts one run and answers at once. What cannot be started says so in its outcome.
    #[sabi(last_prefix_field)]
    fn start(&self, spec_json: RStr<'_>, host: RunHostRef) -> RunRef;
}

/// One run. Dropping it ends the run at once, and no outcome is told.
#[sabi_trait]
pub trait Run: Send + Sync {
    /// The end of the run, known when everything that it started is gone. It may be asked again and then answers the same; dropping
    /// the future cancels nothing.
    fn outcome(&self) -> OutcomeLater;

    /// Asks it to stop, and to end by force after so many milliseconds; 0 is at once. It may be said again, and a
    /// shorter grace holds. Never blocks.
    fn cancel(&self, grace_ms: u64);

    /// An operation by its name: a message, another turn. One that is not known answers `unsupported`.
    #[sabi(last_prefix_field)]
    fn call(&self, op: RStr<'_>, args_json: RStr<'_>) -> Later;
}

/// A runtime as it crosses.
pub type RuntimeRef = Runtime_TO<'static, RBox<()>>;

/// A run as it crosses.
pub type RunRef = Run_TO<'static, RBox<()>>;

/// The end of a run, later.
pub type OutcomeLater = FfiFuture<RResult<Outcome, AbiError>>;

/// The end of a run: everything but the answer as JSON, and the answer as the bytes that it is, whatever their number.
#[repr(C)]
#[derive(Clone, Debug, PartialEq, Eq, StableAbi)]
pub struct Outcome {
    /// A JSON object with `"v"`. It says what the body is.
    pub head_json: RString,
    /// Text, JSON or bytes; empty where the answer is a file or nothing.
    pub body: RVec<u8>,
}
