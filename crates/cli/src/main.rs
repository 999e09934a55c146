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
mod code;
mod command;
mod completion;
mod door;
mod environment;
mod exit;
mod failure;
mod held_run;
mod invocation;
mod listing;
mod load;
mod log;
mod near_miss;
mod output;
mod plugins;
mod project;
mod record;
mod replaced_file;
mod said;
mod terminal;
mod trusted;
mod usage;
mod wording;
mod work;

fn main() {
    exit::end(command::run_command_line());
}
