//! Errors that cross.

use std::fmt;

use abi_stable::StableAbi;
use abi_stable::std_types::RString;

/// The error of the other side. Codes only grow; one that is not known here means [`AbiError::FAILED`].
#[repr(C)]
#[derive(Clone, Debug, PartialEq, Eq, StableAbi)]
pub struct AbiError {
    /// One of the constants below.
    pub code: u32,
    /// For people: lower case, names the thing, ends without a stop.
    pub message: RString,
    /// A JSON object with `"v"`, or empty.
    pub detail_json: RString,
}

impl AbiError {
    /// The request is wrong in itself: a field is missing, a value out of range, a text no JSON.
    pub const INVALID: u32 = 1;
    /// The request was tried and did not work. An unknown code means the same.
    pub const FAILED: u32 = 2;
    /// The request was cancelled.
    pub const CANCELLED: u32 = 3;
    /// A Rust panic, caught on the side where it happened. `detail_json` has the place where that is known.
    pub const PANICKED: u32 = 4;
    /// No such operation, runtime or merge on that side.
    pub const UNSUPPORTED: u32 = 5;
    /// Not now: trying again can help.
    pub const UNAVAILABLE: u32 = 6;
    /// A limit was reached.
    pub const LIMIT: u32 = 7;

    /// An error without details.
    pub fn new(code: u32, message: impl Into<RString>) -> Self {
        Self { code, message: message.into(), detail_json: RString::new() }
    }

    /// The answer to an operation that this side does not know.
    pub fn unsupported(operation: &str) -> Self {
        Self::new(Self::UNSUPPORTED, format!("unsupported operation `{operation}`"))
    }

    /// The code, with unknown ones read as [`AbiError::FAILED`].
    pub const fn known_code(&self) -> u32 {
        match self.code {
            code @ Self::INVALID..=Self::LIMIT => code,
            _ => Self::FAILED,
        }
    }
}

impl fmt::Display for AbiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for AbiError {}
