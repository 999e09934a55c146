//! The store from outside: one contract for both kinds, then what only a disk can do.

// All of it is test code, which the lints know by this mark.
#![cfg(test)]

mod contract;
mod damage;
mod durability;
mod faults;
mod folder;
mod identity;
mod sample;
mod scenario;
mod shared_contexts;
mod sweep;
mod values;
mod versions;
