//! The runtime before an endpoint that answers by rules, and before worse ones.

mod common;

mod answers;
mod faults;
mod long_conversations;
mod raw;
mod tls;
