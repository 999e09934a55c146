//! Anthropic's messages.

use serde_json::Value;

use super::{Report, count_or_zero};
use crate::price::{Service, Tokens};

pub(super) fn take(report: &mut Report, piece: &Value) {
    match piece["type"].as_str() {
        Some("message_start") => {
            // Of what it writes this says nothing yet.
            report.input_known |= usage(report, &piece["message"]["usage"]);
        }
        Some("message_delta") => {
            let tells_output = piece["usage"]["output_tokens"].is_u64();
            report.output_known |= usage(report, &piece["usage"]) && tells_output;
        }
        // A whole answer.
        Some("message") => {
            let told = usage(report, &piece["usage"]);
            report.input_known |= told;
            report.output_known |= told;
        }
        Some("error") => report.failed = true,
        _ => {}
    }
}

/// Takes numbers, each of which is that of the whole answer so far; false where there are none.
fn usage(report: &mut Report, usage: &Value) -> bool {
    if !usage.is_object() {
        return false;
    }
    let Some(mut tokens) = tokens(usage) else { return false };
    if let Value::Array(rounds) = &usage["iterations"]
        && !rounds.is_empty()
    {
        // The numbers outside are those of the last round; what is charged is the sum of all.
        let mut sum = Tokens::default();
        let mut others = std::collections::BTreeMap::<String, Tokens>::new();
        for round in rounds {
            let Some(of_round) = self::tokens(round) else { return false };
            match round["model"].as_str().filter(|_| round["type"] == "advisor_message") {
                None => sum = sum.plus(of_round),
                Some(model) => {
                    let other = others.entry(model.to_owned()).or_default();
                    *other = other.plus(of_round);
                }
            }
        }
        tokens = tokens.max(sum);
        for (model, of_model) in others {
            let other = report.others.entry(model).or_default();
            *other = other.max(of_model);
        }
    }
    report.tokens = report.tokens.max(tokens);
    if let Value::Object(tools) = &usage["server_tool_use"] {
        for (name, uses) in tools {
            let family = name.strip_suffix("_requests").unwrap_or(name);
            let Some(uses) = uses.as_u64().filter(|uses| *uses > 0) else { continue };
            let known = report.tools.entry(family.to_owned()).or_default();
            *known = (*known).max(uses);
        }
    }
    let is = |key: &str, word: &str| usage[key].as_str() == Some(word);
    report.service = Service {
        priority: report.service.priority || is("service_tier", "priority"),
        flex: false,
        fast: report.service.fast || is("speed", "fast"),
        region: report.service.region
            || usage["inference_geo"]
                .as_str()
                .is_some_and(|geo| !matches!(geo, "global" | "not_available")),
    };
    true
}

fn tokens(usage: &Value) -> Option<Tokens> {
    let written = count_or_zero(&usage["cache_creation_input_tokens"])?;
    let hour = count_or_zero(&usage["cache_creation"]["ephemeral_1h_input_tokens"])?.min(written);
    Some(Tokens {
        input: count_or_zero(&usage["input_tokens"])?,
        cache_read: count_or_zero(&usage["cache_read_input_tokens"])?,
        cache_write: written - hour,
        cache_write_hour: hour,
        output: count_or_zero(&usage["output_tokens"])?,
    })
}
