//! The promises of the crate, tested from outside.

// All of it is test code, which the lints know by this mark.
#![cfg(test)]

mod actions;
mod holds;
mod pictures;
mod replay;
mod rows;
mod stage;
