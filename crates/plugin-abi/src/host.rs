//! The host as a plugin sees it, outside any run.

#![expect(
    unsafe_code,
    unused_qualifications,
    non_local_definitions,
    reason = "the code that `sabi_trait` writes, which is sound as long as every library is checked against the layout"
)]

use abi_stable::sabi_trait;
use abi_stable::std_types::{RBox, RStr};

use crate::Answer;

/// The host, given to a plugin once, by `init`. Its callbacks do not unwind and do not block.
#[sabi_trait]
pub trait Host: Send + Sync {
    /// A line for the log: level from 1 (error) to 5 (trace), target, message, fields as a JSON object or empty.
    fn log(&self, level: u32, target: RStr<'_>, message: RStr<'_>, fields_json: RStr<'_>);

    /// An operation by its name, with its arguments as JSON. One that is not known answers `unsupported`.
    #[sabi(last_prefix_field)]
    fn call(&self, op: RStr<'_>, args_json: RStr<'_>) -> Answer;
}

/// A host as it crosses. It belongs to the plugin.
pub type HostRef = Host_TO<'static, RBox<()>>;
