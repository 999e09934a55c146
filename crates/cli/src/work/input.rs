//! The input of a map: files as they are, standard input through a file; cut into pieces.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use offshoot_merge::MergeError;
use offshoot_model::{InputRange, SpawnRequest, ValueKind, plain};
use offshoot_spawner::RunSpec;
use offshoot_split::{self as split, Cuts, InputFile, Piece, Source, Split, SplitError};
use offshoot_store::{DataFolder, NewValue, Store};
use rustix::fs::{AtFlags, CWD, FlockOperation, flock, linkat};

use super::plan::Plan;
use super::stages;
use crate::code::FailureCode;
use crate::exit::Exit;
use crate::failure::Failure;

/// Input that was cut.
#[derive(Debug)]
pub(crate) struct Cut {
    /// The files, as they were when they were looked at.
    pub(crate) files: Vec<InputFile>,
    /// In the order of the input.
    pub(crate) pieces: Vec<Piece>,
}

/// Standard input in a file without a name, so that nothing of it is left however we end, unless the store keeps it.
#[derive(Debug)]
pub(crate) struct Spool {
    file: Arc<File>,
    path: PathBuf,
    folder: PathBuf,
}

/// Standard input, on the command line.
const STANDARD_INPUT: &str = "-";
/// Standard input, in the names of pieces.
const STANDARD_INPUT_LABEL: &str = "stdin";

/// Looks at all inputs and cuts them; `-` is what was spooled.
pub(crate) fn cut(
    inputs: &[PathBuf],
    how: split::Cut,
    spool: Option<&Spool>,
) -> Result<Cut, Failure> {
    let source = |input: &PathBuf| match spool {
        Some(Spool { file, path, .. }) if is_standard_input(input) => {
            Source::Open(Arc::clone(file), path.clone())
        }
        _ => Source::from(input),
    };
    gather(split::cut(inputs.iter().map(source), how), how.split, spool.map(Spool::path))
}

/// Cuts files as they were cut when a tree was opened; what was appended to them since is not read.
pub(crate) fn cut_again(
    before: &[InputFile],
    how: split::Cut,
    spool: Option<&Path>,
) -> Result<Cut, Failure> {
    gather(split::cut_again(before, how), how.split, spool)
}

fn gather(
    cuts: Result<Cuts, SplitError>,
    split: Split,
    spool: Option<&Path>,
) -> Result<Cut, Failure> {
    let cuts = cuts.map_err(|error| wrong(&error))?;
    let files = cuts.files().to_vec();
    let mut pieces = Vec::new();
    for piece in cuts {
        let mut piece = piece.map_err(|error| wrong(&error))?;
        if spool.is_some_and(|spool| *piece.range.path == spool) {
            piece.label = relabelled(&piece.label, split);
        }
        pieces.push(piece);
    }
    Ok(Cut { files, pieces })
}

/// The pieces of a planned map: all do the same, each with its part of the input. `all` are their settings.
pub(crate) fn pieces(
    cut: Cut,
    task: &Arc<str>,
    plan: &Plan,
    all: &RunSpec,
) -> Vec<offshoot_spawner::Piece> {
    let piece = |piece: Piece| offshoot_spawner::Piece {
        request: SpawnRequest {
            task: Arc::clone(task),
            agent: Some(plan.agent.clone()),
            label: Some(Arc::clone(&piece.label)),
            context: plan.context.clone(),
            schema: plan.schema.clone(),
            isolation: plan.isolation.clone(),
            ..SpawnRequest::default()
        },
        input: Some(piece.range),
        key: Some(piece.label),
        ..SpawnRequest::default().into()
    };
    stages::chained(cut.pieces.into_iter().map(piece).collect(), plan, all)
}

/// Returns the reason why the answer of these pieces is none: a file was written to while they read it, so that the answer
/// would be of several versions.
pub(crate) async fn changed(files: Vec<InputFile>, ranges: Vec<InputRange>) -> Option<MergeError> {
    let look = move || match split::first_changed(&files, &ranges) {
        Ok(None) => None,
        Ok(Some(range)) => Some(MergeError::InputChanged {
            path: asked_for(&files, &range.path),
            start: range.offset,
            end: range.offset + range.length,
        }),
        Err(error) => Some(MergeError::Elsewhere { message: error.to_string() }),
    };
    tokio::task::spawn_blocking(look).await.expect("reading does not panic")
}

/// The path by which the user has named a file, which was recorded without the links on it.
pub(crate) fn asked_for(files: &[InputFile], resolved: &Arc<PathBuf>) -> Arc<PathBuf> {
    let file = files.iter().find(|file| file.resolved() == resolved);
    Arc::clone(file.map_or(resolved, |file| &file.path))
}

/// True if standard input is among the inputs. It can be read once only.
pub(crate) fn has_standard_input(inputs: &[PathBuf]) -> Result<bool, Failure> {
    match inputs.iter().filter(|input| is_standard_input(input)).count() {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Failure::input(FailureCode::StdinTwice, "standard input can be read once only")
            .hint("name `-` once")),
    }
}

impl Cut {
    /// The same pieces of a file that has got another name.
    pub(crate) fn moved(mut self, from: &Path, to: PathBuf) -> Self {
        let to = Arc::new(to);
        for file in self.files.iter_mut().filter(|file| *file.path == from) {
            file.rename(Arc::clone(&to));
        }
        for piece in self.pieces.iter_mut().filter(|piece| *piece.range.path == from) {
            piece.range.path = Arc::clone(&to);
        }
        self
    }
}

impl Spool {
    /// Reads standard input to its end.
    pub(crate) fn standard_input(folder: &DataFolder) -> Result<Self, Failure> {
        let folder = folder.spool_folder();
        let made = tempfile::tempfile_in(&folder).and_then(|file| {
            // The file gets a name before it is a value; the lock says that a process is still writing it.
            flock(&file, FlockOperation::LockExclusive)?;
            Ok(file)
        });
        Self::read(made, folder)
    }

    /// Reads standard input to its end, into a file that nothing keeps.
    pub(crate) fn unkept() -> Result<Self, Failure> {
        Self::read(tempfile::tempfile(), PathBuf::new())
    }

    fn read(made: io::Result<File>, folder: PathBuf) -> Result<Self, Failure> {
        let mut file = made.map_err(not_kept)?;
        io::copy(&mut io::stdin().lock(), &mut file).map_err(not_kept)?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd()).into();
        Ok(Self { file: Arc::new(file), path, folder })
    }

    /// Another descriptor of it.
    pub(crate) fn reader(&self) -> Result<File, Failure> {
        self.file.try_clone().map_err(not_kept)
    }

    /// By what name it can be opened while this lives.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes it a value of the store, which a later start finds again. Tells where it is now.
    pub(crate) async fn keep(self, store: &dyn Store) -> Result<PathBuf, Failure> {
        let named = self.folder.join(format!("input-{}", std::process::id()));
        // A system without unnamed files cannot give this one a name; then it is copied.
        let value = match linkat(CWD, &self.path, CWD, &named, AtFlags::SYMLINK_FOLLOW) {
            Ok(()) => NewValue::adopt(ValueKind::Bytes, named),
            Err(_) => NewValue::file(ValueKind::Bytes, &self.path),
        };
        let value = store.put(value).await?;
        drop(self.file);
        store.path(&value).map_err(Failure::from)
    }
}

/// The failure where `-` is an input and cannot be kept.
#[expect(clippy::needless_pass_by_value, reason = "it is the argument of `map_err`")]
fn not_kept(error: io::Error) -> Failure {
    Failure::input(
        FailureCode::StdinUnreadable,
        format_args!("cannot keep standard input in a file: {}", plain(&error)),
    )
    .hint("write the input into a file, and name that: map FILE; --data-dir puts what is kept on another disk")
}

/// Labels a piece of standard input: the name of the file behind it is one of ours, which no user knows.
fn relabelled(label: &str, split: Split) -> Arc<str> {
    match label.rsplit_once(':') {
        Some((_, number)) if split != Split::Files => {
            format!("{STANDARD_INPUT_LABEL}:{number}").into()
        }
        _ => STANDARD_INPUT_LABEL.into(),
    }
}

fn is_standard_input(input: &Path) -> bool {
    input == Path::new(STANDARD_INPUT)
}

fn wrong(error: &SplitError) -> Failure {
    Failure::of(Exit::BadInput, error).maybe_hint(error.hint())
}
