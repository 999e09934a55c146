//! The benchmark at a small size: what it makes, what it asks, and that a perfect labeller loses nothing.

mod generator;
mod questions;
mod runs;
