//! The result of a proof.

/// The result of the proof of one limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitProof {
    /// The amount that was asked for.
    pub asked: String,
    /// The amount that was given.
    pub got: String,
    /// The code of the answer to the first request beyond the limit.
    pub answer: Option<String>,
    /// The difference to what should be; none where the limit holds.
    pub broken: Option<String>,
}
