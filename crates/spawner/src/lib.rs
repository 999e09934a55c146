//! The engine: one supervisor that holds a whole tree of agents.
