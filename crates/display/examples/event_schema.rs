//! Prints the schema of an event: `docs/events.schema.json`.
#![expect(clippy::print_stdout, reason = "this is what it is for")]

fn main() {
    println!("{:#}", offshoot_display::json::event_schema());
}
