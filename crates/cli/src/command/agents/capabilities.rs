//! `offshoot agents list --capabilities`.

use offshoot_config::Config;
use offshoot_model::{NEVER_FOR_SUB_AGENTS, Refusal, Rights};
use offshoot_policy::{Capabilities, Capability, Delegation, Given, PossibleCycle};

use crate::failure::Failure;
use crate::invocation::Invocation;

/// Prints which agent may delegate to which, and the cycles among them.
pub(super) fn print(config: &Config, cx: &Invocation) -> Result<(), Failure> {
    let capabilities = Capabilities::of(config);
    cx.output.result(&capabilities, || {
        let Capabilities { agents, cycles } = &capabilities;
        let headings = ["AGENT", "CHILDREN", "TOOLS", "ABOUT"];
        cx.output.listing(headings, agents.iter().flat_map(rows))?;
        if cycles.is_empty() {
            return cx.output.line("no cycles");
        }
        cx.output.line("cycles:")?;
        cx.output.table(&cycles.iter().map(cycle).collect::<Vec<_>>())
    })
}

/// An agent and its delegations: each with the levels below it, its tools, and what is said of it.
fn rows(capability: &Capability) -> Vec<[String; 4]> {
    let Capability { agent, description, given, delegates_to, refusal } = capability;
    let said = refusal.as_ref().map(reason).or_else(|| description.clone());
    let own = row(agent.to_string(), given.as_ref(), said);
    let delegation = |to: &Delegation| {
        let Delegation { agent, description, why, given, refusal } = to;
        let said = refusal.as_ref().map(reason).or_else(|| why.clone());
        row(format!("  → {agent}"), given.as_ref(), said.or_else(|| description.clone()))
    };
    std::iter::once(own).chain(delegates_to.iter().map(delegation)).collect()
}

fn row(name: String, given: Option<&Given>, said: Option<String>) -> [String; 4] {
    let (depth, tools) = match given {
        None => ("refused".to_owned(), String::new()),
        Some(given) if given.may_spawn => {
            (format!("to depth {}", given.max_depth), tools(&given.tools))
        }
        Some(given) => ("no children".to_owned(), tools(&given.tools)),
    };
    let said = said.unwrap_or_default();
    [name, depth, tools, said.lines().next().unwrap_or_default().to_owned()]
}

fn tools(rights: &Rights) -> String {
    let names =
        |names: Vec<&String>| names.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    // Those that no sub-agent has say nothing of this one.
    let denied = rights.deny.iter().filter(|right| !NEVER_FOR_SUB_AGENTS.contains(&right.as_str()));
    let denied: Vec<&String> = denied.collect();
    match &rights.allow {
        None if denied.is_empty() => "all tools".to_owned(),
        None => format!("all but {}", names(denied)),
        Some(allow) => {
            let permitted: Vec<_> = allow.iter().filter(|right| rights.permits(right)).collect();
            if permitted.is_empty() { "no tools".to_owned() } else { names(permitted) }
        }
    }
}

fn cycle(cycle: &PossibleCycle) -> [String; 2] {
    let path: Vec<&str> = cycle.path.iter().map(AsRef::as_ref).collect();
    let verdict = match &cycle.refusal {
        None => "allowed".to_owned(),
        Some(refusal) => format!("not allowed: {}", reason(refusal)),
    };
    [format!("  {}", path.join(" → ")), verdict]
}

/// The setting that decided, else the sentence of the refusal.
fn reason(refusal: &Refusal) -> String {
    match &refusal.governed_by {
        Some(setting) => setting.to_string(),
        None => refusal.message.clone(),
    }
}
