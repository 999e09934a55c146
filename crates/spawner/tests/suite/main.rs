//! The engine from outside, as a library user drives it.

// All of it is test code, which the lints know by this mark.
#![cfg(test)]

mod agents;
mod asking;
mod broken_record;
mod external_merge;
mod fallbacks;
mod fanning;
mod going_on;
mod host_memory;
mod host_slots;
mod intercept;
mod killed;
mod library;
mod model_choice;
mod owners;
mod resume;
mod retries;
mod turns;
mod usage;
