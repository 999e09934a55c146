//! Programs beside this one: ours, built when they are needed, and those of others, where they are installed.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Result;

/// The command and the program that does nothing.
pub(crate) struct Ours {
    pub(crate) offshoot: PathBuf,
    pub(crate) hello: PathBuf,
}

/// Programs that answer lines.
pub(crate) struct LineProgram {
    /// The plugin `echo`.
    pub(crate) echo: PathBuf,
    pub(crate) bare: PathBuf,
}

/// `target/{profile}`, where this program lies too.
pub(crate) fn profile_folder() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let folder = program.ancestors().skip(1).find(|folder| !folder.ends_with("deps"));
    Ok(folder.ok_or("this program lies in no folder")?.to_owned())
}

/// Builds our programs in the profile of this one. Cargo has nothing to do where they are fresh.
pub(crate) fn ours() -> Result<Ours> {
    let folder = build(&["offshoot-cli", "offshoot-benches"], &["offshoot", "hello"])?;
    Ok(Ours { offshoot: folder.join("offshoot"), hello: folder.join("hello") })
}

/// The same, of the programs that answer lines.
pub(crate) fn line_programs() -> Result<LineProgram> {
    let folder = build(&["offshoot-benches"], &["echo-lines", "bare-lines"])?;
    Ok(LineProgram { echo: folder.join("echo-lines"), bare: folder.join("bare-lines") })
}

/// The program that says many lines.
pub(crate) fn talk() -> Result<PathBuf> {
    Ok(build(&["offshoot-benches"], &["talk"])?.join("talk"))
}

fn build(packages: &[&str], programs: &[&str]) -> Result<PathBuf> {
    let folder = profile_folder()?;
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.args(["build", "--quiet"]);
    for package in packages {
        build.args(["--package", package]);
    }
    for program in programs {
        build.args(["--bin", program]);
    }
    build.arg("--manifest-path").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.toml"));
    build.arg("--target-dir").arg(folder.parent().ok_or("no target folder")?);
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    succeed(&mut build)?;
    Ok(folder)
}

/// A program of this name in `PATH`.
pub(crate) fn installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// The file of `true`: all processes that are measured are this one.
pub(crate) fn true_program() -> Result<PathBuf> {
    installed("true").ok_or_else(|| "there is no program `true`".into())
}

/// A command whose output goes nowhere.
pub(crate) fn silent(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// A command that reads a file on standard input.
pub(crate) fn silent_with(program: impl AsRef<OsStr>, input: &Path) -> Result<Command> {
    let mut command = silent(program);
    command.stdin(File::open(input)?);
    Ok(command)
}

/// Runs it to its end, which has to be a good one.
pub(crate) fn succeed(command: &mut Command) -> Result<()> {
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}").into()) }
}
