//! Prints the protocol of plugins that are programs: `docs/plugin-protocol.md`.

#![expect(clippy::print_stdout, reason = "printing it is what it is for")]

#[path = "../tests/layout/protocol.rs"]
mod protocol;

fn main() {
    print!("{}", protocol::text());
}
