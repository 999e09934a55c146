//! Child processes in groups: stop, grace, kill, capture, and nobody left behind.
