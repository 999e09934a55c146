//! The things that `doctor` finds on the computer: programs of agents with their versions and logins, folders, descriptors.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::join_all;
use offshoot_display::{neutral, number};
use offshoot_host::value;
use offshoot_process::{Keep, Kept, NeverStop, Options, Processes, Program, resolve_program};
use rustix::fs::{Access, access, statvfs};
use rustix::process::{Resource, getrlimit};
use tokio::time::timeout;

use crate::environment::Environment;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::Record;
use crate::work::engine::block_on;

/// A program that runs agents, or that runs with isolation need.
struct Known {
    name: &'static str,
    /// The place of its login; none of a program without logins.
    login: Option<Login>,
    /// The variables that it takes a key from.
    keys: &'static [&'static str],
}

/// The file that a login leaves.
struct Login {
    /// The variable that names a folder, and the file below it.
    by_variable: (&'static str, &'static str),
    /// The file below the home folder, where the variable is not set.
    at_home: &'static str,
}

/// The programs that are looked for, and where they keep what they log in with, by their own documentation.
const KNOWN: [Known; 4] = [
    Known {
        name: "claude",
        login: Some(Login {
            by_variable: ("CLAUDE_CONFIG_DIR", ".credentials.json"),
            at_home: ".claude/.credentials.json",
        }),
        keys: &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
    },
    Known {
        name: "codex",
        login: Some(Login {
            by_variable: ("CODEX_HOME", "auth.json"),
            at_home: ".codex/auth.json",
        }),
        keys: &["OPENAI_API_KEY", "CODEX_API_KEY"],
    },
    Known {
        name: "gemini",
        login: Some(Login {
            by_variable: ("GEMINI_CLI_HOME", ".gemini/oauth_creds.json"),
            at_home: ".gemini/oauth_creds.json",
        }),
        keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
    },
    Known { name: "git", login: None, keys: &[] },
];

/// A program that does not say its version in this time says none.
const VERSION_LIMIT: Duration = Duration::from_secs(5);

/// So much of what a program says is kept to find its version.
const SAID: usize = 4096;

/// Returns a line for each thing that was looked for.
pub(super) fn lines(cx: &Invocation) -> Result<Vec<String>, Failure> {
    let mut lines = vec![format!("offshoot {}", env!("CARGO_PKG_VERSION"))];
    lines.extend(block_on(async {
        let processes = Processes::start(Options::default()).ok();
        let looked = KNOWN.iter().map(|known| program(known, processes.as_ref(), &cx.environment));
        Ok::<_, Failure>(join_all(looked).await)
    })?);
    lines.push(data_folder(cx));
    lines.push(match &cx.environment.runtime_folder {
        Some(folder) => format!("sockets: {}", folder.display()),
        None => "sockets: XDG_RUNTIME_DIR is not set, so that they are found in the temporary folder of this user".to_owned(),
    });
    lines.push(descriptors());
    Ok(lines)
}

/// Looks for a program, and asks it for its version.
async fn program(
    known: &Known,
    processes: Option<&Processes>,
    environment: &Environment,
) -> String {
    let Known { name, .. } = known;
    let search = value(&environment.variables, "PATH").map(|path| path.as_os_str());
    let folder = &environment.working_folder;
    let Ok(path) = resolve_program(OsStr::new(name), search, folder) else {
        return format!("{name}: not found");
    };
    let version = match processes {
        Some(processes) => version(processes, &path, environment).await,
        None => None,
    };
    let version = version.unwrap_or_else(|| "(says no version)".to_owned());
    let login = login(known, environment).map(|login| format!(": {login}")).unwrap_or_default();
    format!("{name} {version} at {}{login}", path.display())
}

/// Returns the first word of what a program says of its version that begins with a digit.
async fn version(processes: &Processes, path: &Path, environment: &Environment) -> Option<String> {
    let program = Program {
        args: vec!["--version".into()],
        env: environment.variables.clone(),
        stdout: Keep::First(SAID).into(),
        stderr: Keep::First(SAID).into(),
        ..Program::new(path, &environment.working_folder)
    };
    let child = processes.spawn(program).ok()?;
    // A wait that is dropped kills the child.
    let ended = timeout(VERSION_LIMIT, child.wait(NeverStop)).await.ok()?;
    let Kept::Memory(said) = ended.stdout.kept else { return None };
    let said = String::from_utf8_lossy(&said);
    let is_version = |word: &&str| word.starts_with(|char: char| char.is_ascii_digit());
    said.split_whitespace().find(is_version).map(|word| neutral::line(word).into_owned())
}

/// Returns the way in which a program can log in. No key is read, and no file of a login is opened.
fn login(known: &Known, environment: &Environment) -> Option<String> {
    let Login { by_variable: (variable, below), at_home } = known.login.as_ref()?;
    let set = |name: &&&str| value(&environment.variables, name).is_some_and(|it| !it.is_empty());
    if let Some(key) = known.keys.iter().find(set) {
        return Some(format!("a key is in {key}"));
    }
    let folder = |name: &str| value(&environment.variables, name).map(PathBuf::from);
    let own = folder(variable).map(|folder| folder.join(below));
    let file = own.or_else(|| Some(folder("HOME")?.join(at_home)));
    Some(match file.filter(|file| file.is_file()) {
        Some(file) => format!("logged in, by {}", file.display()),
        None => format!("no login and no key found ({})", known.keys.join(", ")),
    })
}

/// Says where the record is, how many trees it has, and how much room is left.
fn data_folder(cx: &Invocation) -> String {
    let folder = cx.data_folder();
    let there = folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(&folder);
    let free =
        statvfs(there).map(|found| number::bytes(found.f_bavail.saturating_mul(found.f_frsize)));
    let free = free.map(|free| format!(", {free} free")).unwrap_or_default();
    let may_write = match access(there, Access::WRITE_OK) {
        Ok(()) => "",
        Err(_) => ", which cannot be written to",
    };
    let trees =
        match Record::open(cx).and_then(|record| record.map(|it| it.summaries()).transpose()) {
            Ok(Some(trees)) => format!("{} trees", number::count(trees.len() as u64)),
            Ok(None) => "nothing recorded yet".to_owned(),
            Err(failure) => format!("cannot be read: {failure}"),
        };
    format!("data folder: {}: {trees}{free}{may_write}", folder.display())
}

/// Says how many files a supervisor may open, and how many trees of a user may watch folders.
fn descriptors() -> String {
    let limit = getrlimit(Resource::Nofile);
    let amount = |limit: Option<u64>| limit.map_or_else(|| "any number".to_owned(), number::count);
    let [now, most] = [limit.current, limit.maximum].map(amount);
    let watches = fs::read_to_string("/proc/sys/fs/inotify/max_user_instances");
    let watches = watches.ok().and_then(|text| text.trim().parse().ok()).map(number::count);
    let watches = watches.map(|many| format!("; {many} inotify instances for each user"));
    format!(
        "descriptors: {now} files may be open, {most} where a tree needs them{}",
        watches.unwrap_or_default()
    )
}
