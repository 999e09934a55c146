//! Gemini's contents.

use serde_json::Value;

use super::{Report, count, count_or_zero};
use crate::price::Tokens;

pub(super) fn take(report: &mut Report, piece: &Value) {
    report.failed |= piece.get("error").is_some_and(Value::is_object);
    let usage = &piece["usageMetadata"];
    let Some(tokens) = tokens(usage) else { return };
    report.tokens = report.tokens.max(tokens);
    report.input_known = true;
    // The numbers so far come with each piece, and those of the last are those of all.
    let ends = |candidate: &Value| candidate["finishReason"].is_string();
    let ended =
        piece["candidates"].as_array().is_some_and(|candidates| candidates.iter().any(ends));
    let blocked = piece["promptFeedback"]["blockReason"].is_string();
    report.output_known |= ended || blocked;
}

fn tokens(usage: &Value) -> Option<Tokens> {
    let prompt = usage.get("promptTokenCount").and_then(count)?;
    let of_tools = count_or_zero(&usage["toolUsePromptTokenCount"])?;
    let cached = count_or_zero(&usage["cachedContentTokenCount"])?.min(prompt);
    let said = count_or_zero(&usage["candidatesTokenCount"])?;
    let thought = count_or_zero(&usage["thoughtsTokenCount"])?;
    Some(Tokens {
        input: (prompt - cached).saturating_add(of_tools),
        cache_read: cached,
        output: said.saturating_add(thought),
        ..Tokens::default()
    })
}
