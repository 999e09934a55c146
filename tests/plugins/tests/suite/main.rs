//! Plugins as libraries: built in every way, against every version of the interface, checked, and at work in a tree.

mod builds;
mod check;
mod children;
mod contract;
mod documents;
mod frozen;
mod tree;
