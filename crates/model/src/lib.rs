//! The shared words of offshoot: ids, requests, events, outcomes, usage, cost and the tree.
