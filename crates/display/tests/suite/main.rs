//! The promises of the crate, tested from outside.

// All of it is test code, which the lints know by this mark.
#![cfg(test)]

mod export;
mod held;
mod scenario;
mod schema;
mod tree;
