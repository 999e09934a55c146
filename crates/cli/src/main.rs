//! The command: puts the crates together, and does nothing that a library could not do without it.
//!
//! ```text
//!  arguments ──▶ command ──▶ Exit | Failure ──▶ output ──▶ exit
//!                   ▲
//!  environment ─────┤   read once
//!  load ────────────┘   configuration files, in layers
//! ```
//!
//! Promise: results are on standard output and nothing else is; every way to end is in [`exit`].

mod arguments;
mod command;
mod door;
mod environment;
mod exit;
mod failure;
mod invocation;
mod load;
mod log;
mod output;
mod plugins;
mod project;
mod record;
mod trusted;
mod wording;
mod work;

fn main() {
    exit::end(command::run_command_line());
}
