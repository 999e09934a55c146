//! Folders of runs, with the real git.

mod faults;
mod joins;
mod kills;
mod patches;
mod repositories;
mod world;
