//! A merge function of a plugin, and one merge of it.

#![expect(
    unsafe_code,
    unused_qualifications,
    non_local_definitions,
    reason = "the code that `sabi_trait` writes, which is sound as long as every library is checked against the layout"
)]

use abi_stable::sabi_trait;
use abi_stable::std_types::{RBox, ROption, RResult, RStr, RString};

use crate::{AbiError, Later, RunHostRef};

/// A way to merge, on the plugin's side.
#[sabi_trait]
pub trait Merge: Send + Sync {
    /// Begins one merge. Parameters that it cannot use are refused here.
    #[sabi(last_prefix_field)]
    fn begin(&self, params_json: RStr<'_>, host: RunHostRef) -> RResult<MergeJobRef, AbiError>;
}

/// One merge. Dropping it abandons it.
#[sabi_trait]
pub trait MergeJob: Send {
    /// One result, as soon as it is there: its place in the request, what is known about it, and its value as JSON. With
    /// an answer (JSON), the answer stands and the rest need not come.
    fn push(
        &mut self,
        index: u32,
        meta_json: RStr<'_>,
        result_json: RStr<'_>,
    ) -> RResult<ROption<RString>, AbiError>;

    /// The answer, as JSON, to what was pushed.
    #[sabi(last_prefix_field)]
    fn finish(&mut self) -> Later;
}

/// A merge function as it crosses.
pub type MergeRef = Merge_TO<'static, RBox<()>>;

/// A merge as it crosses.
pub type MergeJobRef = MergeJob_TO<'static, RBox<()>>;
