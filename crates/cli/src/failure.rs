//! The failures of a command: message, causes and advice.

use std::error::Error;
use std::fmt::{self, Display};
use std::io::{self, ErrorKind};
use std::path::Path;

use offshoot_host::{DayError, HostError};
use offshoot_model::{causes, plain};
use offshoot_plugin_host::PluginError;
use offshoot_store::StoreError;
use serde_json::json;

use crate::code::FailureCode;
use crate::exit::Exit;
use crate::work::engine::broken;

/// The reason why a command ends without its result. Printed by [`Output`](crate::output::Output), which also knows the form:
/// `error: …`, `caused by: …`, `hint: …`.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The way the process ends.
    pub(crate) exit: Exit,
    /// One for each thing that is wrong; empty where no message is printed, as with a closed pipe.
    pub(crate) complaints: Vec<Complaint>,
    /// The JSON that `--json` prints on standard output in place of a result.
    pub(crate) json: Option<serde_json::Value>,
}

/// One thing that is wrong.
#[derive(Debug)]
pub(crate) struct Complaint {
    /// The code; absent where the words are those of a library, a refusal or the end of a run, which has a code of its own.
    pub(crate) code: Option<FailureCode>,
    /// Lower case, names the thing, without a stop.
    pub(crate) message: String,
    /// The chain of causes, the nearest first.
    pub(crate) causes: Vec<String>,
    /// Advice on what to do next.
    pub(crate) hint: Option<String>,
}

impl Failure {
    /// A failure with one complaint.
    pub(crate) fn new(code: FailureCode, exit: Exit, message: impl Display) -> Self {
        Self { exit, complaints: vec![Complaint::new(code, message, None)], json: None }
    }

    /// A failure in the words of others.
    pub(crate) fn told(exit: Exit, message: impl Display) -> Self {
        Self { exit, complaints: vec![Complaint::told(message, None)], json: None }
    }

    /// A failure for a wrong request or input.
    pub(crate) fn input(code: FailureCode, message: impl Display) -> Self {
        Self::new(code, Exit::BadInput, message)
    }

    /// A file cannot be used.
    pub(crate) fn file(code: FailureCode, doing: &str, path: &Path, error: &io::Error) -> Self {
        Self::input(code, format_args!("cannot {doing} {}: {}", path.display(), plain(error)))
            .maybe_hint(hint_of_file(error.kind()))
    }

    /// Makes the failure of a file that cannot be read.
    pub(crate) fn reading(path: &Path) -> impl Fn(io::Error) -> Self {
        move |error| Failure::file(FailureCode::CannotRead, "read", path, &error)
    }

    /// Makes the failure of a file that cannot be written.
    pub(crate) fn writing(path: &Path) -> impl Fn(io::Error) -> Self {
        move |error| Failure::file(FailureCode::CannotWrite, "write", path, &error)
    }

    /// An error of a library, with its chain of causes.
    pub(crate) fn of(exit: Exit, error: &dyn Error) -> Self {
        Self::told(exit, error).caused_by(error.source())
    }

    /// A failure without a message: the reader of the output has closed it, as with any program before `head`.
    pub(crate) const fn closed_pipe() -> Self {
        Self { exit: Exit::Done, complaints: Vec::new(), json: None }
    }

    /// The failure as JSON, with the fields of a refusal; all complaints, where there are several.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        let (code, number) = (self.exit.word(), self.exit.code());
        let mut whole = json!({ "status": "error", "code": code, "exitCode": number });
        match self.complaints.as_slice() {
            [only] => only.add_to(whole),
            all => {
                whole["message"] = self.to_string().into();
                whole["errors"] = all.iter().map(|it| it.add_to(json!({}))).collect();
                whole
            }
        }
    }

    /// With something to do about it.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Display) -> Self {
        if let Some(last) = self.complaints.last_mut() {
            last.hint = Some(hint.to_string());
        }
        self
    }

    /// With something to do about it, where there is something.
    #[must_use]
    pub(crate) fn maybe_hint(self, hint: Option<impl Display>) -> Self {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    /// With the chain that begins at `cause`.
    #[must_use]
    pub(crate) fn caused_by(mut self, cause: Option<&dyn Error>) -> Self {
        if let Some(last) = self.complaints.last_mut() {
            last.causes = causes(&last.message, cause);
        }
        self
    }
}

/// Returns what to do about a file or a folder that cannot be used.
const fn hint_of_file(kind: ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::NotFound => "check the path, letter by letter: `ls` shows what is in a folder",
        ErrorKind::PermissionDenied => "`ls -ld PATH` shows who may use it; `chmod` lets others",
        ErrorKind::IsADirectory => "name a file: this is a folder",
        ErrorKind::NotADirectory => "a part of the path before its end is a file: check the path",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "free space on that disk, then type the same again"
        }
        ErrorKind::ReadOnlyFilesystem => "name a place on a disk that can be written",
        _ => return None,
    })
}

impl Complaint {
    /// A complaint without causes.
    pub(crate) fn new(code: FailureCode, message: impl Display, hint: Option<String>) -> Self {
        Self { code: Some(code), ..Self::told(message, hint) }
    }

    /// A complaint in the words of others.
    pub(crate) fn told(message: impl Display, hint: Option<String>) -> Self {
        Self { code: None, message: message.to_string(), causes: Vec::new(), hint }
    }

    /// Adds its fields to an object, those that say something.
    fn add_to(&self, mut object: serde_json::Value) -> serde_json::Value {
        if let Some(code) = self.code {
            object["messageCode"] = <&str>::from(code).into();
        }
        object["message"] = self.message.as_str().into();
        if !self.causes.is_empty() {
            object["causes"] = self.causes.as_slice().into();
        }
        if let Some(hint) = &self.hint {
            object["hint"] = hint.as_str().into();
        }
        object
    }
}

/// Everything that is wrong, in one line and without the hints.
impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, complaint) in self.complaints.iter().enumerate() {
            f.write_str(if number > 0 { "; " } else { "" })?;
            f.write_str(&complaint.message)?;
            complaint.causes.iter().try_for_each(|cause| write!(f, ": {cause}"))?;
        }
        Ok(())
    }
}

impl Error for Failure {}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        let exit = match error {
            HostError::Spawner(error) => return broken(&error),
            HostError::Plugin(error) => return Self::from(*error),
            // The list of trust is read by this program: the failure inside is one of its own.
            HostError::Trust(error) => {
                let failure = error.downcast::<Self>();
                return failure.map_or_else(|error| Self::of(Exit::BadInput, &*error), |it| *it);
            }
            HostError::Process(_)
            | HostError::Runtime(_)
            | HostError::NoCommand { .. }
            | HostError::NotOfThisTree { .. }
            | HostError::Program(_)
            | HostError::Threads(_) => Exit::NoRuntime,
            HostError::Day(DayError::Over { .. }) => Exit::Stopped,
            _ => Exit::BadInput,
        };
        Self::of(exit, &error).maybe_hint(error.hint())
    }
}

/// A failure of the record: it cannot be read or written.
impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::of(Exit::BadInput, &error).maybe_hint(error.hint())
    }
}

/// A plugin that cannot be used, with everything that is wrong and what to do about it.
impl From<PluginError> for Failure {
    fn from(error: PluginError) -> Self {
        let PluginError::Package(problems) = &error else {
            return Self::of(Exit::NoRuntime, &error).maybe_hint(error.hint());
        };
        let complaints = problems.problems().iter().map(|problem| Complaint::told(problem, None));
        Self { exit: Exit::NoRuntime, complaints: complaints.collect(), json: None }
    }
}
