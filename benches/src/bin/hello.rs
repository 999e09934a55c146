//! The least that a program of this profile can take to start.
#![expect(clippy::print_stdout, reason = "it says hello")]

fn main() {
    println!("hello");
}
