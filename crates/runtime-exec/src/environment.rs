//! The environment of a program: what it inherits, and what it is told of itself. Pure.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use offshoot_runtime::{Launch, Pass};

/// One variable.
pub(crate) type Variable = (OsString, OsString);

/// Names that a program inherits; a `*` at either end stands for anything. Secrets of the operator are not among them:
/// an agent that needs one is given it by name.
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
];

/// Tasks up to this size are a variable too. One of 128 KiB would keep any program from starting.
pub const TASK_VARIABLE_BYTES: usize = 32 * 1024;

/// Returns the part of our own environment that a program inherits.
pub(crate) fn inherited(all: Vec<Variable>, more: &[String]) -> Vec<Variable> {
    let patterns: Vec<&str> =
        ALLOWED.iter().copied().chain(more.iter().map(String::as_str)).collect();
    let permitted = |(name, _): &Variable| patterns.iter().any(|pattern| matches(pattern, name));
    all.into_iter().filter(permitted).collect()
}

/// The values that a program inherits by a name of the operator's choosing: they may be secrets.
pub(crate) fn chosen(inherited: &[Variable]) -> Vec<String> {
    let usual = |name: &OsStr| ALLOWED.iter().any(|pattern| matches(pattern, name));
    let chosen = inherited.iter().filter(|(name, _)| !usual(name));
    chosen.filter_map(|(_, value)| value.to_str().map(str::to_owned)).collect()
}

/// Returns the variables that tell a program of itself. They inform, and grant nothing but the ticket.
pub(crate) fn own(launch: &Launch, task_file: &Path, offshoot: Option<&PathBuf>) -> Vec<Variable> {
    let mut variables: Vec<Variable> = vec![
        ("OFFSHOOT_SESSION_KEY".into(), launch.key.as_str().into()),
        ("OFFSHOOT_RUN_ID".into(), launch.run.to_string().into()),
        ("OFFSHOOT_DEPTH".into(), launch.depth.to_string().into()),
        ("OFFSHOOT_TASK_FILE".into(), task_file.into()),
    ];
    // A variable ends at the first NUL, and half a task is worse than none: the file has it whole.
    if launch.task.len() <= TASK_VARIABLE_BYTES && !launch.task.contains('\0') {
        variables.push(("OFFSHOOT_TASK".into(), launch.task.as_ref().into()));
    }
    if let Some(offshoot) = offshoot {
        variables.push(("OFFSHOOT".into(), offshoot.into()));
    }
    if let Some(Pass { socket, ticket }) = &launch.pass {
        variables.push(("OFFSHOOT_SOCKET".into(), socket.as_os_str().into()));
        variables.push(("OFFSHOOT_TICKET".into(), ticket.as_ref().into()));
    }
    if let Some(manifest) = &launch.context_manifest {
        variables.push(("OFFSHOOT_CONTEXT".into(), manifest.into()));
    }
    variables
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_permitted_names_are_inherited() {
        let variable = |name: &str| (name.into(), "x".into());
        let all = [
            "PATH",
            "HOME",
            "LC_ALL",
            "XDG_RUNTIME_DIR",
            "HTTPS_PROXY",
            "no_proxy",
            "SSL_CERT_FILE",
            "AWS_SECRET_ACCESS_KEY",
            "ANTHROPIC_API_KEY",
            "PATHOLOGICAL",
            "OFFSHOOT_TICKET",
            "MY_TOOL_KEY",
        ];
        let kept = |more: &[&str]| -> Vec<String> {
            let more: Vec<String> = more.iter().map(ToString::to_string).collect();
            inherited(all.iter().copied().map(variable).collect(), &more)
                .into_iter()
                .map(|(name, _)| name.into_string().expect("the names above are UTF-8"))
                .collect()
        };
        let usual = &all[..7];
        assert_eq!(kept(&[]), usual);
        assert_eq!(kept(&["MY_TOOL_*"]), [usual, &["MY_TOOL_KEY"]].concat());
        assert_eq!(kept(&["*TOOL*"]), [usual, &["MY_TOOL_KEY"]].concat());
        assert_eq!(kept(&["*"]), all);
        assert_eq!(kept(&["**"]), all);
        assert_eq!(kept(&[""]), usual);
        let named = ["PATH", "MY_TOOL_KEY"].map(|name| (name.into(), name.to_lowercase().into()));
        assert_eq!(chosen(&named), ["my_tool_key"]);
    }
}
