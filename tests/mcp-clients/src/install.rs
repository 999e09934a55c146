//! How the libraries come into the target folder.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use offshoot_test_support::target_folder;

const MANIFEST: &str = include_str!("../package.json");
const LOCK: &str = include_str!("../package-lock.json");
const INSPECTOR: &str = include_str!("../inspector/package.json");
const INSPECTOR_LOCK: &str = include_str!("../inspector/package-lock.json");
const REQUIREMENTS: &str = include_str!("../requirements.txt");

/// The folder with the packages for Node.js.
pub(crate) fn node() -> Result<PathBuf, String> {
    // It is the client that needs it; to install, npm would do.
    run("node", &["--version"], Path::new("."))?;
    packages("node", MANIFEST, LOCK)
}

/// The program of the inspector, a script for Node.js.
pub(crate) fn inspector() -> Result<PathBuf, String> {
    run("node", &["--version"], Path::new("."))?;
    let folder = packages("inspector", INSPECTOR, INSPECTOR_LOCK)?;
    Ok(folder.join("node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"))
}

/// A folder with the packages of a manifest.
fn packages(name: &str, manifest: &str, lock: &str) -> Result<PathBuf, String> {
    once(name, lock, |folder| {
        let write = |name, text| fs::write(folder.join(name), text);
        let written =
            write("package.json", manifest).and_then(|()| write("package-lock.json", lock));
        written.map_err(|error| explain(folder, &error))?;
        let options = ["--no-audit", "--no-fund", "--omit=dev", "--ignore-scripts"];
        run("npm", &[&["ci"], &options[..]].concat(), folder)
    })
}

/// The interpreter that finds the packages for Python.
pub(crate) fn python() -> Result<PathBuf, String> {
    let folder = once("python", REQUIREMENTS, |folder| {
        let list = folder.join("requirements.txt");
        fs::write(&list, REQUIREMENTS).map_err(|error| explain(folder, &error))?;
        run("python3", &["-m", "venv", "--clear", "venv"], folder)?;
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        let exactly = ["--no-deps", "--requirement", "requirements.txt"];
        run(interpreter(folder), &[&install[..], &exactly].concat(), folder)
    })?;
    Ok(interpreter(&folder))
}

fn interpreter(folder: &Path) -> PathBuf {
    folder.join("venv/bin/python")
}

/// A folder in the target folder, in which something has been done for this text.
fn once(
    name: &str,
    text: &str,
    work: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let folder = target_folder().join("mcp-clients").join(name);
    let wrong = |error: io::Error| explain(&folder, &error);
    fs::create_dir_all(&folder).map_err(wrong)?;
    // Held until the end: other test programs wait here, and then find the work done.
    let guard = File::create(folder.join("lock")).map_err(wrong)?;
    guard.lock().map_err(wrong)?;
    let stamp = folder.join("installed");
    if !fs::read_to_string(&stamp).is_ok_and(|stamp| stamp == text) {
        work(&folder)?;
        fs::write(&stamp, text).map_err(wrong)?;
    }
    Ok(folder)
}

fn run(program: impl AsRef<Path>, arguments: &[&str], folder: &Path) -> Result<(), String> {
    let program = program.as_ref();
    #[expect(clippy::disallowed_methods, reason = "the tool that installs is no agent")]
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{} cannot be started: {error}", program.display()))?;
    if output.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    // What npm and pip say of themselves comes first or last; the error is marked.
    let is_error =
        |line: &&str| line.to_lowercase().starts_with("npm error") || line.starts_with("ERROR");
    let errors: Vec<_> = complaint.lines().filter(is_error).take(3).collect();
    Err(format!(
        "{} {}: {}: {}",
        program.display(),
        arguments.join(" "),
        output.status,
        errors.join("; ")
    ))
}

fn explain(folder: &Path, error: &io::Error) -> String {
    format!("{}: {error}", folder.display())
}
