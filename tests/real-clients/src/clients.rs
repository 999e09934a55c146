//! Where the clients are, and how they come there.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use offshoot_test_support::{skip, target_folder};

/// The installed clients.
#[derive(Debug)]
pub struct Clients {
    folder: PathBuf,
}

const MANIFEST: &str = include_str!("../package.json");
const LOCK: &str = include_str!("../package-lock.json");

/// The clients for this test; none where they cannot be had, which is then said and counted.
///
/// # Panics
///
/// With `CI=true`, where they cannot be had.
pub fn install(test: &str) -> Option<&'static Clients> {
    static INSTALLED: OnceLock<Result<Clients, String>> = OnceLock::new();
    match INSTALLED.get_or_init(installed) {
        Ok(clients) => Some(clients),
        Err(why) => {
            skip(test, why);
            None
        }
    }
}

impl Clients {
    /// Claude Code.
    pub fn claude(&self) -> PathBuf {
        self.program("claude")
    }

    /// Codex, a script for Node.js that starts the program.
    pub fn codex(&self) -> PathBuf {
        self.program("codex")
    }

    /// Gemini CLI, a script for Node.js.
    pub fn gemini(&self) -> PathBuf {
        self.program("gemini")
    }

    /// The compiler of TypeScript, a script for Node.js.
    pub fn typescript(&self) -> PathBuf {
        self.program("tsc")
    }

    /// The folder with all of them, for a search path.
    pub fn programs(&self) -> PathBuf {
        self.folder.join("node_modules/.bin")
    }

    fn program(&self, name: &str) -> PathBuf {
        self.programs().join(name)
    }

    fn are_there(&self) -> bool {
        [self.claude(), self.codex(), self.gemini(), self.typescript()]
            .iter()
            .all(|program| program.exists())
    }

    /// Where they are installed.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

fn installed() -> Result<Clients, String> {
    let folder = target_folder().join("real-clients");
    let explain = |error: io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(&folder).map_err(explain)?;
    // Held until the end: other test programs wait here, and then find the work done.
    let guard = File::create(folder.join("lock")).map_err(explain)?;
    guard.lock().map_err(explain)?;
    // The lock file of what has been installed to its end.
    let stamp = folder.join("installed");
    let clients = Clients { folder: folder.clone() };
    if fs::read_to_string(&stamp).is_ok_and(|stamp| stamp == LOCK) && clients.are_there() {
        return Ok(clients);
    }
    fs::write(folder.join("package.json"), MANIFEST).map_err(explain)?;
    fs::write(folder.join("package-lock.json"), LOCK).map_err(explain)?;
    // Others would compile helpers that clients do without where they are missing.
    npm(&folder, &["ci", "--no-audit", "--no-fund", "--omit=dev", "--ignore-scripts"])?;
    npm(&folder, &["rebuild", "@anthropic-ai/claude-code"])?;
    fs::write(stamp, LOCK).map_err(explain)?;
    Ok(clients)
}

fn npm(folder: &Path, arguments: &[&str]) -> Result<(), String> {
    #[expect(clippy::disallowed_methods, reason = "the tool that installs is no agent")]
    let output = Command::new("npm")
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("npm cannot be started: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    let errors: Vec<_> =
        complaint.lines().filter(|line| line.starts_with("npm error")).take(3).collect();
    Err(format!("npm {}: {}: {}", arguments[0], output.status, errors.join("; ")))
}
