//! The environment of a program: what it inherits, and what it is told of itself. Pure.

use std::path::{Path, PathBuf};

use offshoot_runtime::{
    Launch, USUAL_VARIABLES, Variable, identity_variables, is_named, pass_variables,
};

/// Tasks up to this size are a variable too. One of 128 KiB would keep any program from starting.
pub const TASK_VARIABLE_BYTES: usize = 32 * 1024;

/// Returns the part of our own environment that a program inherits.
pub(crate) fn inherited(all: Vec<Variable>, more: &[String]) -> Vec<Variable> {
    let patterns = || USUAL_VARIABLES.iter().copied().chain(more.iter().map(String::as_str));
    let permitted = |(name, _): &Variable| is_named(name, patterns());
    all.into_iter().filter(permitted).collect()
}

/// The values that a program inherits by a name of the operator's choosing: they may be secrets.
pub(crate) fn chosen(inherited: &[Variable]) -> Vec<String> {
    let usual = |name| is_named(name, USUAL_VARIABLES.iter().copied());
    let chosen = inherited.iter().filter(|(name, _)| !usual(name));
    chosen.filter_map(|(_, value)| value.to_str().map(str::to_owned)).collect()
}

/// Returns the variables that tell a program of itself. They inform, and grant nothing but the ticket.
pub(crate) fn own(
    launch: &Launch,
    task_file: &Path,
    guidance_file: Option<&Path>,
    trace_file: Option<&Path>,
    offshoot: Option<&PathBuf>,
) -> Vec<Variable> {
    let mut variables = identity_variables(launch);
    variables.extend(guidance_file.map(|file| ("OFFSHOOT_GUIDANCE_FILE".into(), file.into())));
    variables.extend(trace_file.map(|file| ("OFFSHOOT_TRACE_FILE".into(), file.into())));
    variables.push(("OFFSHOOT_TASK_FILE".into(), task_file.into()));
    // A variable ends at the first NUL, and half a task is worse than none: the file has it whole.
    if launch.task.len() <= TASK_VARIABLE_BYTES && !launch.task.contains('\0') {
        variables.push(("OFFSHOOT_TASK".into(), launch.task.as_ref().into()));
    }
    if let Some(offshoot) = offshoot {
        variables.push(("OFFSHOOT".into(), offshoot.into()));
    }
    if let Some(pass) = &launch.pass {
        variables.extend(pass_variables(pass).map(|(name, value)| (name.into(), value)));
    }
    variables
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use offshoot_runtime::{Pass, is_of_a_run};

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
            "OFFSHOOT_LOG",
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
        let all_but_the_ticket: Vec<_> =
            all.into_iter().filter(|name| *name != "OFFSHOOT_TICKET").collect();
        assert_eq!(kept(&["*"]), all_but_the_ticket);
        assert_eq!(kept(&["**"]), all_but_the_ticket);
        assert_eq!(kept(&["OFFSHOOT_TICKET"]), usual, "a ticket comes from the launch alone");
        assert_eq!(kept(&[""]), usual);
        let mut launch = Launch::bare("the task");
        launch.context_manifest = Some("manifest".into());
        launch.pass = Some(Pass { socket: Arc::new("s".into()), ticket: "t".into() });
        let own = own(&launch, Path::new("task"), None, None, Some(&"offshoot".into()));
        let mut inheritable = own.iter().filter(|(name, _)| !is_of_a_run(name));
        assert_eq!(inheritable.next(), None, "what a run is told of itself is not inherited");
        let named = ["PATH", "MY_TOOL_KEY"].map(|name| (name.into(), name.to_lowercase().into()));
        assert_eq!(chosen(&named), ["my_tool_key"]);
    }
}
