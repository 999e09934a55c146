//! Incremental folds that merge the results of many agents.
