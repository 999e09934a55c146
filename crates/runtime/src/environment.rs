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

/// Returns whether a variable is named by one of these patterns.
pub fn is_named<'a>(name: &OsStr, patterns: impl IntoIterator<Item = &'a str>) -> bool {
    patterns.into_iter().any(|pattern| matches(pattern, name))
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
    variables
}

/// Returns the variables by which a program reaches its supervisor.
pub fn pass_variables(pass: &Pass) -> [(&'static str, OsString); 2] {
    let Pass { socket, ticket } = pass;
    [("OFFSHOOT_SOCKET", (&**socket).into()), ("OFFSHOOT_TICKET", (&**ticket).into())]
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
