//! The runtime for ordinary programs.
