//! Checks what its standard input says, and prints what comes of it.

#![expect(clippy::print_stdout, reason = "its output is what the test reads")]

use std::io::{Read, stdin};

#[tokio::main]
async fn main() {
    let mut order = Vec::new();
    stdin().read_to_end(&mut order).expect("an order can be read");
    let checked = offshoot_plugin_host::suite(&order, Vec::new(), |line| println!("{line}"));
    checked.await.expect("it is an order");
}
