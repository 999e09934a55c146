//! The contract for whatever runs an agent, and its conformance tests.
