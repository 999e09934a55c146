//! `logs`: how much is kept of what agents say.

use crate::built_in;
use crate::origin::Valued;
use crate::section::section;

section! {
    /// The bounds of what is kept of the output of agents, for `offshoot logs`.
    pub struct LogSettings, foreign &[] => {
        /// Bytes that are kept of each attempt of a run, the beginning and the end. 0 keeps nothing.
        pub keep_output_bytes: Option<Valued<u64>> = "keepOutputBytes",
            built_in built_in::KEEP_OUTPUT_BYTES;
        /// Bytes that are kept of all runs of a tree, the earliest. 0 keeps nothing.
        pub keep_output_bytes_per_tree: Option<Valued<u64>> = "keepOutputBytesPerTree",
            built_in built_in::KEEP_OUTPUT_BYTES_PER_TREE;
    }
}

impl LogSettings {
    /// Returns the bytes that are kept of each attempt.
    pub fn output_bytes(&self) -> u64 {
        self.keep_output_bytes.as_ref().map_or(built_in::KEEP_OUTPUT_BYTES, |bytes| bytes.value)
    }

    /// Returns the bytes that are kept of a tree.
    pub fn output_bytes_per_tree(&self) -> u64 {
        let bytes = self.keep_output_bytes_per_tree.as_ref();
        bytes.map_or(built_in::KEEP_OUTPUT_BYTES_PER_TREE, |bytes| bytes.value)
    }
}
