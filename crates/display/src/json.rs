//! The same pictures for programs.

use std::io::{self, Write};

use offshoot_model::Event;

/// One event as a line of compact JSON, as the record keeps it.
///
/// # Errors
/// Those of `out`.
pub fn write_event(event: &Event, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, event)?;
    out.write_all(b"\n")
}
