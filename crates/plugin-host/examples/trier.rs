//! The process in which libraries are tried out: what `offshoot` does in a hidden mode.

use std::io::{self, Read, Write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut order = Vec::new();
    io::stdin().read_to_end(&mut order)?;
    let report = offshoot_plugin_host::trial(&order)?;
    Ok(io::stdout().write_all(report.as_bytes())?)
}
