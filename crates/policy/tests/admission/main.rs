//! Whole questions: a configuration, sessions in a tree, requests, and the answers.

mod budgets;
mod by_default;
mod capabilities;
mod chains;
mod lowered;
mod order;
mod properties;
mod refusals;
mod requests;
mod targets;
mod tree;
