//! What the tests share.

pub mod scenario;
