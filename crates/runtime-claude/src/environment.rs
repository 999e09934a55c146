//! The environment of the program: what it inherits, and what it is told. Pure.

use std::ffi::{OsStr, OsString};

use offshoot_runtime::{Launch, Pass};

/// One variable.
pub(crate) type Variable = (OsString, OsString);

/// Names that it inherits; a `*` at either end stands for anything.
pub const ALLOWED: &[&str] = &[
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
    "ANTHROPIC_*",
    "CLAUDE_*",
    "DISABLE_*",
];

/// In milliseconds. A call of ours may wait for children; how long a run may take is decided by its grant.
const TOOL_TIMEOUT: &str = "86400000";

/// What of our own environment it inherits.
pub(crate) fn inherited(all: &[Variable], more: &[String]) -> Vec<Variable> {
    let patterns: Vec<&str> =
        ALLOWED.iter().copied().chain(more.iter().map(String::as_str)).collect();
    let permitted = |(name, _): &&Variable| patterns.iter().any(|pattern| matches(pattern, name));
    all.iter().filter(permitted).cloned().collect()
}

/// What it is told. It informs; it grants nothing.
pub(crate) fn own(launch: &Launch, own_server: bool) -> Vec<Variable> {
    let mut variables: Vec<Variable> = vec![
        ("OFFSHOOT_SESSION_KEY".into(), launch.key.as_str().into()),
        ("OFFSHOOT_RUN_ID".into(), launch.run.to_string().into()),
        ("OFFSHOOT_DEPTH".into(), launch.depth.to_string().into()),
        // A program that replaces itself while a tree of it runs is another program for the later ones.
        ("DISABLE_AUTOUPDATER".into(), "1".into()),
        // It would read each file that a task names behind an `@`, whatever the run's rights are.
        ("CLAUDE_CODE_DISABLE_ATTACHMENTS".into(), "1".into()),
    ];
    if let Some(manifest) = &launch.context_manifest {
        variables.push(("OFFSHOOT_CONTEXT".into(), manifest.into()));
    }
    if let Some(pass) = &launch.pass
        && launch.grant.tools.permits("exec")
    {
        // What it starts may come with it. Where it may start nothing, only the server of our own tools gets it.
        variables.extend(self::pass(pass).map(|(name, value)| (name.into(), value)));
    }
    if own_server {
        variables.push(("MCP_TOOL_TIMEOUT".into(), TOOL_TIMEOUT.into()));
    }
    variables
}

/// The way to the supervisor.
pub(crate) fn pass(pass: &Pass) -> [(&'static str, OsString); 2] {
    let Pass { socket, ticket } = pass;
    [("OFFSHOOT_SOCKET", (&**socket).into()), ("OFFSHOOT_TICKET", (&**ticket).into())]
}

fn matches(pattern: &str, name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(end), None) => name.ends_with(end.as_bytes()),
        (None, Some(start)) => name.starts_with(start.as_bytes()),
        _ => name == pattern.as_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_permitted_names_are_inherited() {
        let all: Vec<Variable> = [
            "PATH",
            "HOME",
            "ANTHROPIC_API_KEY",
            "CLAUDE_CONFIG_DIR",
            "DISABLE_TELEMETRY",
            "https_proxy",
            "CLAUDECODE",
            "AWS_SECRET_ACCESS_KEY",
            "OFFSHOOT_TICKET",
            "MY_TOOL_KEY",
        ]
        .map(|name| (name.into(), "x".into()))
        .into();
        let kept = |more: &[&str]| -> Vec<String> {
            let more: Vec<String> = more.iter().map(ToString::to_string).collect();
            let names = inherited(&all, &more).into_iter().map(|(name, _)| name.into_string());
            names.map(|name| name.expect("the names above are UTF-8")).collect()
        };
        let usual = [
            "PATH",
            "HOME",
            "ANTHROPIC_API_KEY",
            "CLAUDE_CONFIG_DIR",
            "DISABLE_TELEMETRY",
            "https_proxy",
        ];
        assert_eq!(kept(&[]), usual);
        assert_eq!(kept(&["MY_TOOL_*"]), [&usual[..], &["MY_TOOL_KEY"]].concat());
    }
}
