//! The host as a run sees it.

#![expect(
    unsafe_code,
    unused_qualifications,
    non_local_definitions,
    reason = "the code that `sabi_trait` writes, which is sound as long as every library is checked against the layout"
)]

use abi_stable::sabi_trait;
use abi_stable::std_types::{RBox, RStr};

use crate::Later;

/// The host of one run or one merge: there is one for each, so that the caller is known from it.
#[sabi_trait]
pub trait RunHost: Send + Sync {
    /// One event: its kind (see [`event`](crate::event)) and its text. In order, and none after the outcome. Answers
    /// [`GO_ON`](crate::event::GO_ON) or [`PLEASE_STOP`](crate::event::PLEASE_STOP). Does not block.
    fn event(&self, kind: u32, payload: RStr<'_>) -> u32;

    /// Asks for a child. A refusal is an answer, not an error.
    fn spawn(&self, spec_json: RStr<'_>) -> Later;

    /// An operation by its name. One that is not known answers `unsupported`.
    #[sabi(last_prefix_field)]
    fn call(&self, op: RStr<'_>, args_json: RStr<'_>) -> Later;
}

/// A run's host as it crosses. It belongs to the run.
pub type RunHostRef = RunHost_TO<'static, RBox<()>>;
