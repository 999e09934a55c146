//! OpenAI's responses.

use serde_json::Value;

use super::{Report, chat};

pub(super) fn take(report: &mut Report, piece: &Value) {
    // An event of a stream holds the answer; a whole answer is it.
    let answer = match piece["type"].as_str() {
        Some("error") => {
            report.failed = true;
            return;
        }
        Some(_) => &piece["response"],
        None => piece,
    };
    report.failed |=
        answer["status"] == "failed" || answer.get("error").is_some_and(Value::is_object);
    let names = ("input_tokens", "output_tokens", "input_tokens_details");
    let Some(tokens) = chat::tokens(&answer["usage"], names.0, names.1, names.2) else { return };
    report.tokens = report.tokens.max(tokens);
    report.input_known = true;
    report.output_known = true;
    chat::tier(report, answer);
    let items = answer["output"].as_array().into_iter().flatten();
    let kinds = items.filter_map(|item| item["type"].as_str()?.strip_suffix("_call"));
    let mut tools = std::collections::BTreeMap::<String, u64>::new();
    for kind in kinds.filter(|kind| !matches!(*kind, "function" | "custom_tool" | "local_shell")) {
        *tools.entry(kind.to_owned()).or_default() += 1;
    }
    for (kind, uses) in tools {
        let known = report.tools.entry(kind).or_default();
        *known = (*known).max(uses);
    }
}
