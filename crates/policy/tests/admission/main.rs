//! Whole questions: a configuration, sessions in a tree, requests, and the answers.

#![expect(clippy::result_large_err, reason = "a refusal is an answer like the other one")]

mod budgets;
mod chains;
mod order;
mod properties;
mod refusals;
mod requests;
mod targets;
mod tree;
