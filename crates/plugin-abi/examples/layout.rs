//! Prints the reference of the interface: `docs/plugin-abi.md`.

#![expect(clippy::print_stdout, reason = "printing it is what it is for")]

#[path = "../tests/layout/reference.rs"]
mod reference;

fn main() {
    print!("{}", reference::text());
}
