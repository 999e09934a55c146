//! Limits of which a child gets less than was asked for.

use std::collections::BTreeSet;
use std::sync::Arc;

use offshoot_config::{AgentId, Config};
use offshoot_model::{GovernedBy, Grant, JsonText, LoweredLimit, MicroUsd, SpawnRequest};
use serde::Serialize;

use crate::Terms;
use crate::budget::Unit;
use crate::rights::ToolRule;
use crate::term::governed_by;

/// Returns what was asked for and was lowered, for a child of this agent that was admitted with this grant by a session under these
/// terms.
pub fn lowered(
    config: &Config,
    terms: &Arc<Terms>,
    agent: &AgentId,
    request: &SpawnRequest,
    grant: &Grant,
) -> Vec<LoweredLimit> {
    let own = terms.child(config, agent);
    let mut found = Vec::new();
    if let Some(asked) = request.run_timeout_seconds
        && let granted @ 1.. = grant.run_timeout_seconds
        && (asked == 0 || asked > granted)
    {
        let setting = terms.governing("runTimeoutSeconds");
        let decides = granted == terms.run_timeout_seconds();
        found.push(limit("runTimeoutSeconds", &asked, &granted, setting.filter(|_| decides)));
    }
    if let Some(asked) = request.max_depth.filter(|&asked| asked > grant.max_depth) {
        let setting = own.governing("maxDepth");
        let decides = grant.max_depth == own.max_depth();
        found.push(limit("maxDepth", &asked, &grant.max_depth, setting.filter(|_| decides)));
    }
    for unit in Unit::ALL {
        let asked = super::reservation::asked(request, unit);
        if let (Some(asked), Some(granted)) = (asked, unit.of(grant.budget))
            && asked > granted
        {
            let (key, usd) = (format!("budget.{}", unit.as_str()), MicroUsd::from_micros);
            let setting = own.governing(&key);
            found.push(match unit {
                Unit::Tokens => limit(&key, &asked, &granted, setting),
                Unit::Usd => limit(&key, &usd(asked), &usd(granted), setting),
            });
        }
    }
    let allow = request.tools.as_ref().and_then(|tools| tools.allow.as_ref());
    if let Some(allow) = allow {
        let (granted, lost): (BTreeSet<_>, BTreeSet<_>) =
            allow.iter().partition(|right| grant.tools.permits(right));
        let denied = request.tools.iter().flat_map(|tools| &tools.deny).collect();
        if let Some(first) = lost.difference(&denied).next() {
            let rule = config.agent(agent).and_then(ToolRule::of_definition);
            let rule = rule.filter(|rule| !rule.rights().permits(first));
            let setting = rule.and_then(|it| governed_by(&it.key(), Some(&it.term), None));
            found.push(limit("tools", allow, &granted, setting));
        }
    }
    found
}

fn limit(
    field: &str,
    asked: &impl Serialize,
    granted: &impl Serialize,
    governed_by: Option<Box<GovernedBy>>,
) -> LoweredLimit {
    let text = |value: serde_json::Result<JsonText>| value.expect("limits are numbers and words");
    LoweredLimit {
        field: field.to_owned(),
        asked: text(JsonText::of(asked)),
        granted: text(JsonText::of(granted)),
        governed_by,
    }
}
