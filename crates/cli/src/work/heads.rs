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

use offshoot_config::{Config, HeadsTarget};
use offshoot_model::RootId;
use offshoot_process::Processes;
use offshoot_store::{ChainHead, SqliteStore, append_below};

use super::operator_command::OperatorCommand;
use crate::code::{FailureCode, NoteCode};
use crate::command::audit::signature::SigningKey;
use crate::failure::{Complaint, Failure};
use crate::invocation::Invocation;
use crate::project::folded;

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
        let project = heads.and_then(|heads| heads.origin.project()).map(Path::to_owned);
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
                cx.output.warning(NoteCode::NoPlaceForSignatures, why);
            }
            return;
        };
        let warn = |failure: &Failure| {
            for Complaint { message, hint, .. } in &failure.complaints {
                let text = format_args!("the last link of tree {root} is not kept: {message}");
                cx.output.warning(NoteCode::LinkNotKept, text);
                hint.iter().for_each(|hint| cx.output.hint(NoteCode::LinkAdvice, hint));
            }
        };
        let key = match self.key.as_ref().map(Result::as_ref).transpose() {
            Ok(key) => key,
            Err(failure) => return warn(failure),
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
                    let (folder, processes) = (self.folder.clone(), self.processes.clone());
                    let command = OperatorCommand::new(words, folder, &cx.environment, processes);
                    command.tell(line, None).await?;
                }
            }
        }
        Ok(())
    }

    /// Appends in one write, so that lines of several commands do not mix.
    fn append(&self, path: &Path, line: &str, cx: &Invocation) -> Result<(), Failure> {
        let written = self.open(path, cx).and_then(|mut file| file.write_all(line.as_bytes()));
        written.map_err(|error| Failure::file(FailureCode::CannotWrite, "append to", path, &error))
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
