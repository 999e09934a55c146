//! `prices`: what a model costs, for estimates.

use std::num::NonZeroU64;

use offshoot_model::MicroUsd;

use crate::named::Named;
use crate::origin::Valued;
use crate::section::section;
use crate::setting::{Date, Factor};

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
        /// Tokens written to the provider's cache for an hour.
        pub cache_write_hour_per_million: Option<Valued<MicroUsd>> = "cacheWriteHourPerMillion";
        /// A request that reads more tokens than this has the prices of long requests, for all its tokens.
        pub long_context_tokens: Option<Valued<NonZeroU64>> = "longContextTokens";
        /// Tokens sent in a long request. Its cache prices rise as much.
        pub long_input_per_million: Option<Valued<MicroUsd>> = "longInputPerMillion";
        /// Tokens received in a long request.
        pub long_output_per_million: Option<Valued<MicroUsd>> = "longOutputPerMillion";
        /// Prices times this for a request that goes before others.
        pub priority_factor: Option<Valued<Factor>> = "priorityFactor";
        /// Prices times this for a request that asks for a faster answer.
        pub fast_factor: Option<Valued<Factor>> = "fastFactor";
        /// Prices times this for a request that may wait.
        pub flex_factor: Option<Valued<Factor>> = "flexFactor";
        /// Prices times this for a request that stays in one region.
        pub region_factor: Option<Valued<Factor>> = "regionFactor";
        /// The most tokens of one answer.
        pub max_output_tokens: Option<Valued<NonZeroU64>> = "maxOutputTokens";
        /// The most tokens that a request and its answer have together.
        pub context_window_tokens: Option<Valued<NonZeroU64>> = "contextWindowTokens";
        /// One search that the provider makes in the web.
        pub web_search_per_use: Option<Valued<MicroUsd>> = "webSearchPerUse";
        /// One page that the provider fetches from the web.
        pub web_fetch_per_use: Option<Valued<MicroUsd>> = "webFetchPerUse";
        /// One search that the provider makes in files that it holds.
        pub file_search_per_use: Option<Valued<MicroUsd>> = "fileSearchPerUse";
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
