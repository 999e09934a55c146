//! Commands of the program `git`.
//!
//! No command of ours runs a hook, asks a person, starts the monitor of a file system, or takes an optional lock: the repository
//! of the user is as it was before.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use offshoot_process::{
    Capture, Exit, Finished, Keep, Kept, NeverStop, Output, Processes, Program, Stdin,
    resolve_program,
};
use tokio::time::timeout;

use crate::error::IsolationError;

/// Output up to this size is read. The list of the files of the largest known repositories takes a quarter of it.
const ANSWER_BYTES: usize = 256 << 20;

/// The end of its standard error that is kept.
const SAID_BYTES: usize = 4096;

/// A command that takes longer hangs: on a dead network disk, or in a filter.
const LIMIT: Duration = Duration::from_secs(1800);

/// Settings that each command has.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "advice.detachedHead=false",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
];

/// The program `git`, and the environment that its commands get.
#[derive(Clone, derive_more::Debug)]
#[debug("Git({})", program.display())]
pub struct Git {
    /// The children that the commands are.
    pub(crate) processes: Processes,
    program: PathBuf,
    /// The environment that the commands get.
    pub(crate) environment: Arc<[(OsString, OsString)]>,
}

/// One command on its way.
pub(crate) struct Command<'a> {
    git: &'a Git,
    name: &'static str,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    folder: PathBuf,
    input: Option<Vec<u8>>,
}

impl Git {
    /// Looks for the program in the `PATH` of this environment. What begins with `GIT_` in it is not handed on.
    ///
    /// # Errors
    ///
    /// Fails if there is no such program.
    pub fn find(
        processes: Processes,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, IsolationError> {
        let is_kept = |(name, _): &(OsString, OsString)| {
            !name.as_encoded_bytes().starts_with(b"GIT_") && name != "LC_ALL" && name != "LANGUAGE"
        };
        let mut environment: Vec<_> = environment.into_iter().filter(is_kept).collect();
        let path = environment.iter().find(|(name, _)| name == "PATH");
        let path = path.map(|(_, value)| value.as_os_str());
        let program = resolve_program("git".as_ref(), path, Path::new("/"))
            .map_err(|error| IsolationError::NoGit(Arc::new(error)))?;
        let fixed = [
            ("LC_ALL", "C"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            // Pointers stay pointers: nothing is fetched for an agent that has not asked for it.
            ("GIT_LFS_SKIP_SMUDGE", "1"),
            ("GIT_ADVICE", "0"),
        ];
        environment.extend(fixed.map(|(name, value)| (name.into(), value.into())));
        Ok(Self { processes, program, environment: environment.into() })
    }

    /// Begins a command in a folder.
    pub(crate) fn command(&self, folder: &Path, name: &'static str) -> Command<'_> {
        let settings = SETTINGS.iter().flat_map(|setting| ["-c", setting]);
        let arguments = settings.chain([name]).map(OsString::from).collect();
        let folder = folder.to_owned();
        Command { git: self, name, arguments, environment: Vec::new(), folder, input: None }
    }
}

impl Command<'_> {
    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    pub(crate) fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.into(), value.as_ref().to_owned()));
        self
    }

    pub(crate) fn envs(
        mut self,
        variables: impl IntoIterator<Item = (&'static str, impl AsRef<OsStr>)>,
    ) -> Self {
        let variables = variables.into_iter();
        self.environment
            .extend(variables.map(|(name, value)| (name.into(), value.as_ref().to_owned())));
        self
    }

    pub(crate) fn input(mut self, bytes: Vec<u8>) -> Self {
        self.input = Some(bytes);
        self
    }

    /// Runs it, and returns what it wrote.
    pub(crate) async fn run(self) -> Result<Vec<u8>, IsolationError> {
        let name = self.name;
        match self.outcome().await? {
            (0, wrote, _) => Ok(wrote),
            (code, _, said) => Err(failed(name, Some(code), said)),
        }
    }

    /// Runs it, and returns the line that it wrote.
    pub(crate) async fn line(self) -> Result<String, IsolationError> {
        let name = self.name;
        let mut wrote = self.run().await?;
        while wrote.last() == Some(&b'\n') {
            wrote.pop();
        }
        String::from_utf8(wrote).map_err(|error| {
            let said = String::from_utf8_lossy(error.as_bytes()).into_owned();
            IsolationError::Answer { command: name, said }
        })
    }

    /// Runs it, and returns its exit code, what it wrote, and its last words.
    pub(crate) async fn outcome(self) -> Result<(i32, Vec<u8>, String), IsolationError> {
        let name = self.name;
        let finished = self.finish(Keep::First(ANSWER_BYTES)).await?;
        if finished.stdout.truncated {
            let said = format!("more than {ANSWER_BYTES} bytes");
            return Err(IsolationError::Answer { command: name, said });
        }
        let said = said(&finished.stderr);
        match finished.exit {
            Exit::Code(code) => Ok((code, bytes(finished.stdout), said)),
            Exit::Signal(_) | Exit::Lost => Err(failed(name, None, said)),
        }
    }

    /// Runs it, and has what it writes in this file, which must not exist and is not made for an empty output. Returns true if
    /// there was output.
    pub(crate) async fn into_file(self, file: &Path) -> Result<bool, IsolationError> {
        let name = self.name;
        let keep = Keep::Whole { memory: 0, file: file.to_owned(), limit: None };
        let finished = self.finish(keep).await?;
        if let Some(error) = finished.stdout.error {
            return Err(IsolationError::io("write", file)(error));
        }
        match finished.exit {
            Exit::Code(0) => Ok(finished.stdout.total > 0),
            Exit::Code(code) => Err(failed(name, Some(code), said(&finished.stderr))),
            Exit::Signal(_) | Exit::Lost => Err(failed(name, None, said(&finished.stderr))),
        }
    }

    async fn finish(self, keep: Keep) -> Result<Finished, IsolationError> {
        let Self { git, name, arguments, environment, folder, input } = self;
        let mut env = git.environment.to_vec();
        env.extend(environment);
        let program = Program {
            args: arguments,
            env,
            stdin: input.map_or(Stdin::Null, |bytes| Stdin::Bytes(bytes.into())),
            stdout: keep.into(),
            stderr: Capture::from(Keep::Last(SAID_BYTES)),
            ..Program::new(git.program.clone(), folder)
        };
        let child = git.processes.spawn_when_possible(program).await;
        let child = child.map_err(|error| IsolationError::Start(Arc::new(error)))?;
        // A wait that is given up kills the command.
        timeout(LIMIT, child.wait(NeverStop))
            .await
            .map_err(|_| IsolationError::Hangs { command: name, seconds: LIMIT.as_secs() })
    }
}

fn failed(command: &'static str, code: Option<i32>, said: String) -> IsolationError {
    IsolationError::Git { command, code, said }
}

pub(crate) fn bytes(output: Output) -> Vec<u8> {
    match output.kept {
        Kept::Memory(bytes) => bytes,
        Kept::File(_) => unreachable!("nothing was to go into a file"),
    }
}

/// Returns the last words of a command, in one line.
fn said(output: &Output) -> String {
    let Kept::Memory(bytes) = &output.kept else { return String::new() };
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(4)..].join("; ")
}

/// Returns the parts of a list that ends each part with a NUL.
pub(crate) fn listed(bytes: &[u8]) -> impl Iterator<Item = PathBuf> {
    let parts = bytes.split(|byte| *byte == 0).filter(|part| !part.is_empty());
    parts.map(|part| PathBuf::from(OsString::from_vec(part.to_vec())))
}
