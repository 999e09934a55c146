//! The environment of a program: what it inherits, and what it is told of itself. Pure.

use std::ffi::{OsStr, OsString};

use crate::{Launch, Pass};

/// One variable.
pub type Variable = (OsString, OsString);

/// Names that every program inherits; a `*` at either end stands for anything. Secrets of the operator are not among them:
/// an agent that needs one is given it by name.
pub const USUAL_VARIABLES: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_*",
    "TZ",
    "TERM",
    "TMPDIR",
    "XDG_*",
    "SSL_CERT_*",
    "*_PROXY",
    "*_proxy",
];

/// Variables that tell a program which run it is, and how it reaches its supervisor. They come from the launch of its run alone:
/// a supervisor that runs inside an agent has variables of these names itself, and a program that had those would be taken for
/// that agent.
const OF_A_RUN: &[&str] = &[
    "OFFSHOOT",
    "OFFSHOOT_CONTEXT",
    "OFFSHOOT_DEPTH",
    "OFFSHOOT_GUIDANCE_FILE",
    "OFFSHOOT_RUN_ID",
    "OFFSHOOT_SESSION_KEY",
    "OFFSHOOT_SOCKET",
    "OFFSHOOT_TASK",
    "OFFSHOOT_TASK_FILE",
    "OFFSHOOT_TICKET",
    "OFFSHOOT_TICKET_FILE",
    "OFFSHOOT_TRACE",
    "OFFSHOOT_TRACE_FILE",
];

/// Returns whether a variable tells a program which run it is: such a variable is never inherited.
pub fn is_of_a_run(name: &OsStr) -> bool {
    OF_A_RUN.iter().any(|known| name == *known)
}

/// Returns whether a variable is inherited, because one of these patterns names it.
pub fn is_named<'a>(name: &OsStr, patterns: impl IntoIterator<Item = &'a str>) -> bool {
    !is_of_a_run(name) && patterns.into_iter().any(|pattern| matches(pattern, name))
}

/// The size up to which the delegation context of a run is a variable. One of 128 KiB would keep any program from starting.
pub const TRACE_VARIABLE_BYTES: usize = 32 * 1024;

/// Returns the delegation context of a run as JSON; none where it is not known.
pub fn trace_json(launch: &Launch) -> Option<String> {
    (!launch.delegation.trace.is_empty()).then(|| launch.delegation.to_json())
}

/// Returns the variables that tell a program which run it is. They inform, and grant nothing.
pub fn identity_variables(launch: &Launch) -> Vec<Variable> {
    let mut variables: Vec<Variable> = vec![
        ("OFFSHOOT_SESSION_KEY".into(), launch.key.as_str().into()),
        ("OFFSHOOT_RUN_ID".into(), launch.run.to_string().into()),
        ("OFFSHOOT_DEPTH".into(), launch.depth.to_string().into()),
    ];
    if let Some(manifest) = &launch.context_manifest {
        variables.push(("OFFSHOOT_CONTEXT".into(), manifest.into()));
    }
    let trace = trace_json(launch).filter(|json| json.len() <= TRACE_VARIABLE_BYTES);
    variables.extend(trace.map(|json| ("OFFSHOOT_TRACE".into(), json.into())));
    variables
}

/// Returns the variables by which a program reaches its supervisor.
pub fn pass_variables(pass: &Pass) -> [(&'static str, OsString); 2] {
    let Pass { socket, ticket } = pass;
    [("OFFSHOOT_SOCKET", (&**socket).into()), ("OFFSHOOT_TICKET", (&**ticket).into())]
}

/// Returns what a run inherits of these variables: where it is metered, no key and no other way to a provider.
pub fn metered(launch: &Launch, inherited: Vec<Variable>) -> Vec<Variable> {
    match &launch.meter {
        Some(meter) => meter.environment(inherited),
        None => inherited,
    }
}

fn matches(pattern: &str, name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    let (end, start) = (pattern.strip_prefix('*'), pattern.strip_suffix('*'));
    match (end, start) {
        (Some(end), None) => name.ends_with(end.as_bytes()),
        (None, Some(start)) => name.starts_with(start.as_bytes()),
        (None, None) => name == pattern.as_bytes(),
        (Some(end), Some(_)) => {
            let part = end.strip_suffix('*').unwrap_or_default().as_bytes();
            part.is_empty() || name.windows(part.len()).any(|window| window == part)
        }
    }
}
