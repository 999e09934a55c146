//! `prices`: what a model costs, for estimates.

use offshoot_model::MicroUsd;

use crate::named::Named;
use crate::origin::Valued;
use crate::section::section;
use crate::setting::Date;

section! {
    /// Dollars per million tokens of one model.
    pub struct Price, foreign &[] => {
        /// Tokens sent.
        pub input_per_million: Option<Valued<MicroUsd>> = "inputPerMillion";
        /// Tokens received.
        pub output_per_million: Option<Valued<MicroUsd>> = "outputPerMillion";
        /// Tokens read from the provider's cache.
        pub cache_read_per_million: Option<Valued<MicroUsd>> = "cacheReadPerMillion";
        /// Tokens written to the provider's cache.
        pub cache_write_per_million: Option<Valued<MicroUsd>> = "cacheWritePerMillion";
        /// The day on which these were the prices.
        pub date: Option<Valued<Date>> = "date";
    }
}

impl Named for Price {
    const ALLOWED: &'static str = "a model's name";
    const PATTERN: &'static str = ".";
    const HEADER: &'static str = "[prices.sonnet]";

    fn is_name(name: &str) -> bool {
        !name.trim().is_empty()
    }
}
