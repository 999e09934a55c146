//! Starts cargo in the workspace's folder. The only file that starts anything.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use xshell::{Cmd, Shell, cmd};

use crate::{Result, workspace};

/// Runs cargo with our own terminal.
pub(crate) fn run(arguments: &[&str], environment: &[(&str, &str)]) -> Result {
    let shell = shell()?;
    let cargo = cmd!(shell, "cargo {arguments...}").quiet();
    Ok(cargo.envs(environment.iter().copied()).run()?)
}

/// Runs cargo with our own terminal, and writes what it prints into a file too.
pub(crate) fn log(arguments: &[&str], environment: &[(&str, &str)], file: &Path) -> Result {
    let shell = shell()?;
    let script = "set -o pipefail; cargo \"${@:2}\" 2>&1 | tee \"$1\"";
    let cargo = cmd!(shell, "bash -c {script} bash {file} {arguments...}").quiet();
    Ok(cargo.envs(environment.iter().copied()).run()?)
}

/// Returns true if cargo has this command of its own or of others.
pub(crate) fn has(command: &str) -> bool {
    let found = shell().map(|shell| {
        let cargo = cmd!(shell, "cargo {command} --version").quiet();
        cargo.ignore_stdout().ignore_stderr().run().is_ok()
    });
    found.unwrap_or(false)
}

/// Builds every target of the workspace in one build. A build of one package alone would choose other features for the crates
/// below it, and compile them a second time.
pub(crate) fn build_all() -> Result {
    run(&["build", "--workspace", "--all-targets"], &[])
}

/// Builds the command and these examples. With the whole workspace chosen, and examples among the targets, the features are those
/// of [`build_all`], so that nothing is compiled twice.
pub(crate) fn build_printers(examples: &[&str]) -> Result {
    let mut line = vec!["build", "--quiet", "--workspace", "--bin", "offshoot"];
    examples.iter().for_each(|example| line.extend(["--example", example]));
    run(&line, &[])
}

/// Runs the command as it was built beside this program and returns what it prints.
///
/// What it prints must not depend on the caller: no variable of ours reaches it, the width is fixed and no stream is a terminal.
pub(crate) fn offshoot(arguments: &[&str]) -> Result<String> {
    let shell = shell()?;
    let program = built("offshoot")?;
    let offshoot = cmd!(shell, "{program} {arguments...}");
    let offshoot = offshoot.quiet().env("COLUMNS", "100").env("NO_COLOR", "1");
    let output = without_our_variables(offshoot).ignore_status().output()?;
    if output.status.success() {
        return Ok(String::from_utf8(output.stdout)?);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let line = arguments.join(" ");
    Err(format!("`offshoot {line}` ended with {}\n{}", output.status, stderr.trim_end()).into())
}

/// Runs an example as it was built beside this program and returns what it prints.
pub(crate) fn example(example: &str) -> Result<String> {
    let shell = shell()?;
    let program = built(&format!("examples/{example}"))?;
    Ok(cmd!(shell, "{program}").quiet().read()? + "\n")
}

/// The path of a program of this checkout: beside this one, which cargo has built into the same folder.
fn built(program: &str) -> Result<PathBuf> {
    let ours = std::env::current_exe()?;
    Ok(ours.parent().ok_or("a program lies in a folder")?.join(program))
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
