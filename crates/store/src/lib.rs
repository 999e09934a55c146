//! Records, events, variables and results: SQLite and a folder, or memory.
