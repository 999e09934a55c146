//! The things that `doctor` finds on the computer: programs of agents with their versions and logins, folders, descriptors.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::join_all;
use offshoot_config::Config;
use offshoot_display::{neutral, number};
use offshoot_host::value;
use offshoot_process::{Keep, Kept, NeverStop, Options, Processes, Program, resolve_program};
use rustix::fs::{Access, access, statvfs};
use rustix::process::{Resource, getrlimit};
use serde::Serialize;
use tokio::time::timeout;

use crate::arguments::LimitArguments;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::load;
use crate::record::Record;
use crate::wording;
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

/// The things that are found on the computer.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Found {
    version: &'static str,
    programs: Vec<FoundProgram>,
    data_folder: DataFolder,
    /// The folder in which supervisors are found; none where XDG_RUNTIME_DIR is not set.
    socket_folder: Option<PathBuf>,
    descriptors: Descriptors,
}

/// A program that was looked for.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FoundProgram {
    name: String,
    /// The place of the program; none where it was not found.
    path: Option<PathBuf>,
    /// The version; none where it says none.
    version: Option<String>,
    /// The way in which it can log in; none of a program without logins.
    login: Option<String>,
}

/// The folder of the record.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DataFolder {
    path: PathBuf,
    /// The number of trees; none where nothing is recorded yet.
    trees: Option<u64>,
    /// The number of trees that have lost their supervisor and are not over.
    abandoned: usize,
    /// The sentence about those trees.
    #[serde(skip)]
    lost: Option<String>,
    /// The reason why the record cannot be read.
    error: Option<String>,
    /// The bytes that are free there.
    free_bytes: Option<u64>,
    is_writable: bool,
}

/// The files that a supervisor may open, and the folders that trees may watch; none is any number.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Descriptors {
    now: Option<u64>,
    /// The number to which a tree raises it.
    most: Option<u64>,
    /// The trees of a user that may watch folders; none where the system does not tell.
    watches: Option<u64>,
}

/// Looks for programs, folders and descriptors.
pub(super) fn look(cx: &Invocation) -> Result<Found, Failure> {
    // What is wrong with the configuration is for other commands to say.
    let config = load::config(cx, &LimitArguments::default()).ok();
    let programs = block_on(async {
        let processes = Processes::start(Options::default()).ok();
        let looked = KNOWN.iter().map(|known| {
            let command = command(known, config.as_ref());
            program(known, command, processes.as_ref(), &cx.environment)
        });
        Ok::<_, Failure>(join_all(looked).await)
    })?;
    let limit = getrlimit(Resource::Nofile);
    let watches = fs::read_to_string("/proc/sys/fs/inotify/max_user_instances");
    Ok(Found {
        version: env!("CARGO_PKG_VERSION"),
        programs,
        data_folder: data_folder(cx),
        socket_folder: cx.environment.runtime_folder.clone(),
        descriptors: Descriptors {
            now: limit.current,
            most: limit.maximum,
            watches: watches.ok().and_then(|text| text.trim().parse().ok()),
        },
    })
}

impl Found {
    /// Returns a line for each thing that was looked for.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("offshoot {}", self.version)];
        lines.extend(self.programs.iter().map(FoundProgram::line));
        lines.push(self.data_folder.line());
        lines.push(match &self.socket_folder {
            Some(folder) => format!("sockets: {}", folder.display()),
            None => "sockets: XDG_RUNTIME_DIR is not set, so that they are found in the temporary folder of this user".to_owned(),
        });
        lines.push(self.descriptors.line());
        lines
    }
}

impl FoundProgram {
    fn line(&self) -> String {
        let Self { name, path, version, login } = self;
        let Some(path) = path else { return format!("{name}: not found") };
        let version = version.as_deref().unwrap_or("(says no version)");
        let login = login.as_ref().map(|login| format!(": {login}")).unwrap_or_default();
        format!("{name} {version} at {}{login}", path.display())
    }
}

impl DataFolder {
    fn line(&self) -> String {
        let Self { path, trees, abandoned: _, lost, error, free_bytes, is_writable } = self;
        let trees = match (trees, error) {
            (_, Some(error)) => format!("cannot be read: {error}"),
            (Some(1), None) => "1 tree".to_owned(),
            (Some(trees), None) => format!("{} trees", number::count(*trees)),
            (None, None) => "nothing recorded yet".to_owned(),
        };
        let free = free_bytes.map(|free| format!(", {} free", number::bytes(free)));
        let may_write = if *is_writable { "" } else { ", which cannot be written to" };
        let lost = lost.as_ref().map(|lost| format!("; {lost}")).unwrap_or_default();
        format!(
            "data folder: {}: {trees}{}{may_write}{lost}",
            path.display(),
            free.unwrap_or_default()
        )
    }
}

impl Descriptors {
    fn line(&self) -> String {
        let amount =
            |limit: Option<u64>| limit.map_or_else(|| "any number".to_owned(), number::count);
        let [now, most] = [self.now, self.most].map(amount);
        let watches = self.watches.map(number::count);
        let watches = watches.map(|many| format!("; {many} inotify instances for each user"));
        format!(
            "descriptors: {now} files may be open, {most} where a tree needs them{}",
            watches.unwrap_or_default()
        )
    }
}

/// Returns the program that is started for a runtime of this name: the configured one, else the one of that name.
fn command(known: &Known, config: Option<&Config>) -> String {
    let settings = config.and_then(|config| config.runtime(known.name));
    let words = settings.and_then(|settings| settings.command.as_ref());
    let program = words.map(|words| words.value.program().to_owned());
    program.unwrap_or_else(|| known.name.to_owned())
}

/// Looks for a program, and asks it for its version.
async fn program(
    known: &Known,
    command: String,
    processes: Option<&Processes>,
    environment: &Environment,
) -> FoundProgram {
    let search = value(&environment.variables, "PATH").map(|path| path.as_os_str());
    let path = resolve_program(OsStr::new(&command), search, &environment.working_folder).ok();
    let version = match (&path, processes) {
        (Some(path), Some(processes)) => version(processes, path, environment).await,
        _ => None,
    };
    let login = path.as_ref().and_then(|_| login(known, environment));
    FoundProgram { name: known.name.to_owned(), path, version, login }
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

/// Looks at the folder of the record.
fn data_folder(cx: &Invocation) -> DataFolder {
    let path = cx.data_folder();
    let there = path.ancestors().find(|folder| folder.is_dir()).unwrap_or(&path);
    let free = statvfs(there).map(|found| found.f_bavail.saturating_mul(found.f_frsize));
    let is_writable = access(there, Access::WRITE_OK).is_ok();
    let read = |record: Record| -> Result<_, Failure> {
        let abandoned = record.abandoned()?;
        let lost = wording::lost_trees(&record, &abandoned)?;
        Ok((record.summaries()?.len() as u64, abandoned.len(), lost))
    };
    let (found, error) = match Record::open(cx).and_then(|record| record.map(read).transpose()) {
        Ok(found) => (found, None),
        Err(failure) => (None, Some(failure.to_string())),
    };
    let (trees, abandoned, lost) = match found {
        Some((trees, abandoned, lost)) => (Some(trees), abandoned, lost),
        None => (None, 0, None),
    };
    DataFolder { trees, abandoned, lost, error, free_bytes: free.ok(), is_writable, path }
}
