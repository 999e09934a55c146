//! Starts cargo in the workspace's folder. The only file that starts anything.

use std::ffi::OsString;

use xshell::{Cmd, Shell, cmd};

use crate::{Result, workspace};

/// Runs cargo with our own terminal.
pub(crate) fn run(arguments: &[&str], environment: &[(&str, &str)]) -> Result {
    let shell = shell()?;
    let cargo = cmd!(shell, "cargo {arguments...}").quiet();
    Ok(cargo.envs(environment.iter().copied()).run()?)
}

/// Runs the command as built from this checkout and returns what it prints.
///
/// What it prints must not depend on who asks: no variable of ours reaches it, the width is fixed
/// and no stream is a terminal.
pub(crate) fn offshoot(arguments: &[&str]) -> Result<String> {
    let shell = shell()?;
    let offshoot = cmd!(shell, "cargo run --quiet --package offshoot-cli -- {arguments...}");
    let offshoot = offshoot.quiet().env("COLUMNS", "100").env("NO_COLOR", "1");
    let output = without_our_variables(offshoot).ignore_status().output()?;
    if output.status.success() {
        return Ok(String::from_utf8(output.stdout)?);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let line = arguments.join(" ");
    Err(format!("`offshoot {line}` ended with {}\n{}", output.status, stderr.trim_end()).into())
}

/// Runs an example of a package and returns what it prints.
pub(crate) fn example(package: &str, example: &str) -> Result<String> {
    let shell = shell()?;
    let run = cmd!(shell, "cargo run --quiet --package {package} --example {example}");
    Ok(run.quiet().read()? + "\n")
}

fn without_our_variables(command: Cmd<'_>) -> Cmd<'_> {
    let ours = |name: &OsString| name.to_str().is_some_and(|name| name.starts_with("OFFSHOOT"));
    std::env::vars_os().map(|(name, _)| name).filter(ours).fold(command, Cmd::env_remove)
}

fn shell() -> Result<Shell> {
    let shell = Shell::new()?;
    shell.change_dir(workspace::root());
    Ok(shell)
}
