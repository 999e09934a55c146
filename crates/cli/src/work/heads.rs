//! The last link of each tree, kept where the operator wants it: a copy of a record that was written anew afterwards no longer
//! continues it.
//!
//! ```text
//!   tree events link [signature] ──▶ a file, appended        OFFSHOOT_AUDIT_HEADS, audit.heads = "file"
//!                                └─▶ a program, on its input  audit.heads = ["program", "argument"]
//! ```
//!
//! What fails here is a warning: the tree is over and its answer is printed, whatever becomes of the link.
//!
//! Agents of the tree may have written where they work. So the key is read before the first of them starts, and a file in the
//! folder of the command or of the project is not reached over a link.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use offshoot_config::{Config, HeadsTarget};
use offshoot_model::RootId;
use offshoot_process::{
    Exit as Ended, Keep, Kept, Processes, Program, Stdin, Stop, StopHandle, resolve_program,
};
use offshoot_store::{ChainHead, SqliteStore, append_below};

use crate::command::audit::signature::SigningKey;
use crate::environment::Environment;
use crate::failure::{Complaint, Failure};
use crate::invocation::Invocation;
use crate::project::{folded, project_of};

/// The time that a program that is told of a link may take. The command does not end before the program.
const PATIENCE: Duration = Duration::from_secs(10);

/// The bytes that are kept of a program's standard error, of which the last line is shown where it fails.
const DIAGNOSTIC_BYTES: usize = 4096;

/// The target of links, and the key with which they are signed.
#[derive(Debug)]
pub(crate) struct Heads {
    target: Option<HeadsTarget>,
    /// The folder from which relative names of the target are seen.
    folder: PathBuf,
    /// The project whose configuration names the target.
    project: Option<PathBuf>,
    key: Option<Result<SigningKey, Failure>>,
    processes: Processes,
}

impl Heads {
    /// Takes the target from the environment, else from the configuration.
    pub(crate) fn new(config: &Config, processes: Processes, cx: &Invocation) -> Self {
        let named = cx.environment.audit_heads.as_ref();
        let named = named.map(|path| HeadsTarget::File(path.to_string_lossy().into_owned()));
        let audit = config.audit();
        let heads = audit.heads.as_ref();
        let project = heads.and_then(|heads| project_of(&heads.origin)).map(Path::to_owned);
        let folder = project.as_ref().filter(|_| named.is_none());
        let folder = folder.unwrap_or(&cx.environment.working_folder).clone();
        let set = || heads.map(|heads| heads.value.clone());
        let key = audit.sign.as_ref().map(|key| cx.configured(key.value.path(), &key.origin));
        let key = key.map(|path| SigningKey::read(&path));
        Self { target: named.or_else(set), folder, project, key, processes }
    }

    /// Hands on the last link of a tree, or says why it could not.
    pub(crate) async fn keep(&self, store: &SqliteStore, root: RootId, cx: &Invocation) {
        let Some(target) = &self.target else {
            if self.key.is_some() {
                let why = "`audit.sign` is set and `audit.heads` is not: there is no place for signatures";
                cx.output.warning(why);
            }
            return;
        };
        let warn = |failure: &Failure| {
            for Complaint { message, hint, .. } in &failure.complaints {
                let text = format_args!("the last link of tree {root} is not kept: {message}");
                cx.output.warning(text);
                hint.iter().for_each(|hint| cx.output.hint(hint));
            }
        };
        let key = match &self.key {
            Some(Err(failure)) => return warn(failure),
            Some(Ok(key)) => Some(key),
            None => None,
        };
        if let Err(failure) = self.try_to_keep(target, key, store, root, cx).await {
            warn(&failure);
        }
    }

    async fn try_to_keep(
        &self,
        target: &HeadsTarget,
        key: Option<&SigningKey>,
        store: &SqliteStore,
        root: RootId,
        cx: &Invocation,
    ) -> Result<(), Failure> {
        let heads = store.chain_heads(Some(root))?;
        for head in heads {
            let ChainHead { root, events, link } = head;
            let signed = match key {
                Some(key) => format!(" {}", key.sign_in_a_word(root, &head)?),
                None => String::new(),
            };
            let line = format!("{root} {events} {link}{signed}\n");
            match target {
                HeadsTarget::File(path) => self.append(&self.folder.join(path), &line, cx)?,
                HeadsTarget::Command(words) => {
                    let Self { folder, processes, .. } = self;
                    tell(words, line, PATIENCE, processes, folder, &cx.environment).await?;
                }
            }
        }
        Ok(())
    }

    /// Appends in one write, so that lines of several commands do not mix.
    fn append(&self, path: &Path, line: &str, cx: &Invocation) -> Result<(), Failure> {
        let written = self.open(path, cx).and_then(|mut file| file.write_all(line.as_bytes()));
        written.map_err(|error| Failure::file("append to", path, &error))
    }

    fn open(&self, path: &Path, cx: &Invocation) -> io::Result<File> {
        // With its `..`, `../heads` would count as a file in the folder, and `../folder/heads` as one outside.
        let path = folded(path);
        let folders = [Some(&cx.environment.working_folder), self.project.as_ref()];
        let below = folders
            .into_iter()
            .flatten()
            // Every file is below `/`: that a command works there says nothing about what agents may write.
            .filter(|folder| folder.parent().is_some())
            .find_map(|folder| path.strip_prefix(folder).ok().map(|name| (folder, name)));
        match below {
            Some((folder, name)) => append_below(folder, name),
            None => OpenOptions::new().append(true).create(true).open(path),
        }
    }
}

/// Lets a program read a line, and ends it where it takes too long.
async fn tell(
    words: &[String],
    line: String,
    patience: Duration,
    processes: &Processes,
    folder: &Path,
    environment: &Environment,
) -> Result<(), Failure> {
    let search_path = environment.path().map(|path| path.as_os_str());
    let wrong =
        |error: &dyn std::fmt::Display| Failure::input(format_args!("`{}`: {error}", words[0]));
    let program = Program {
        path: resolve_program(words[0].as_ref(), search_path, folder).map_err(|e| wrong(&e))?,
        args: words[1..].iter().map(Into::into).collect(),
        env: environment.variables.clone(),
        cwd: folder.to_owned(),
        stdin: Stdin::Bytes(line.into_bytes().into()),
        stdout: Keep::Nothing.into(),
        stderr: Keep::Last(DIAGNOSTIC_BYTES).into(),
    };
    let child = processes.spawn(program).map_err(|error| wrong(&error))?;
    let (handle, stop) = StopHandle::new();
    let mut ended = std::pin::pin!(child.wait(stop));
    let finished = match tokio::time::timeout(patience, &mut ended).await {
        Ok(finished) => finished,
        Err(_) => {
            handle.stop(Stop::Firm);
            ended.await;
            return Err(wrong(&format_args!("has not ended within {} s", patience.as_secs_f32())));
        }
    };
    let last = |text: &[u8]| {
        let text = String::from_utf8_lossy(text);
        text.lines().last().map(|line| format!(": {line}")).unwrap_or_default()
    };
    let said = match &finished.stderr.kept {
        Kept::Memory(text) => last(text),
        Kept::File(_) => String::new(),
    };
    match finished.exit {
        Ended::Code(0) => Ok(()),
        Ended::Code(code) => Err(wrong(&format_args!("ended with exit code {code}{said}"))),
        other => Err(wrong(&format_args!("ended by {other:?}{said}"))),
    }
}

#[cfg(test)]
mod tests {
    use offshoot_process::Options;

    use super::*;

    #[tokio::test]
    async fn a_program_that_does_not_end_is_ended() {
        let environment = Environment::read().expect("a test has a folder and a program");
        let processes = Processes::start(Options::default()).expect("no keeper is asked for");
        let words = ["sleep", "600"].map(str::to_owned);
        let patience = Duration::from_millis(50);
        let (line, folder) = ("a line\n".to_owned(), &environment.working_folder);
        let told = tell(&words, line, patience, &processes, folder, &environment).await;
        let failure = told.expect_err("it does not end by itself");
        assert_eq!(failure.complaints[0].message, "`sleep`: has not ended within 0.05 s");
        assert_eq!(processes.live(), [], "the program has ended");
    }
}
