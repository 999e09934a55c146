//! OpenAI's chat completions, and those of all that speak like it.

use serde_json::Value;

use super::{Report, count, count_or_zero};
use crate::price::Tokens;

pub(super) fn take(report: &mut Report, piece: &Value) {
    report.failed |= piece.get("error").is_some_and(|error| !error.is_null());
    tier(report, piece);
    let usage = &piece["usage"];
    let Some(tokens) = tokens(usage, "prompt_tokens", "completion_tokens", "prompt_tokens_details")
    else {
        return;
    };
    report.tokens = report.tokens.max(tokens);
    report.input_known = true;
    report.output_known |= is_last(piece);
}

/// True if nothing is written after this piece: it is a whole answer, or holds the use alone. Some services tell the numbers so far with each
/// piece of a stream, also with the one in which a choice ends, and others may go on behind it.
fn is_last(piece: &Value) -> bool {
    let is_piece = |choice: &Value| !choice["delta"].is_null();
    !piece["choices"].as_array().is_some_and(|choices| choices.iter().any(is_piece))
}

/// True for the last event of a stream.
pub(crate) fn is_end(event: &str) -> bool {
    event.trim() == "[DONE]"
}

/// Takes the tier in which it was served, which stands beside the numbers.
pub(super) fn tier(report: &mut Report, answer: &Value) {
    match answer["service_tier"].as_str() {
        Some("priority") => report.service.priority = true,
        Some("flex") => report.service.flex = true,
        _ => {}
    }
}

/// The numbers of an answer, by the names that they have; none where there are none or one of them cannot be a count.
pub(super) fn tokens(usage: &Value, input: &str, output: &str, details: &str) -> Option<Tokens> {
    // No request is without a token, and a number that is left out says nothing.
    let read = usage.get(input).and_then(count).filter(|read| *read > 0)?;
    // Some services leave what a model thought out of what it wrote, and have it in the total.
    let total = count(&usage["total_tokens"]).map(|total| total.saturating_sub(read));
    let written = match &usage[output] {
        Value::Null => total?,
        written => count(written)?.max(total.unwrap_or(0)),
    };
    let details = &usage[details];
    let cached = count_or_zero(&details["cached_tokens"])?.min(read);
    // The name differs among services that put others behind one address.
    let names = ["cache_write_tokens", "cache_creation_tokens"];
    let to_cache = names.into_iter().find_map(|name| details.get(name));
    let to_cache = to_cache.map_or(Some(0), count_or_zero)?.min(read - cached);
    Some(Tokens {
        input: read - cached - to_cache,
        cache_read: cached,
        cache_write: to_cache,
        cache_write_hour: 0,
        output: written,
    })
}
