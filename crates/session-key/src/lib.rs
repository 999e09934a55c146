//! Session keys: the address of an agent session in a tree of agents.
