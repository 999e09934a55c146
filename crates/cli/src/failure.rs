//! What a command can fail with: what went wrong, what led to it, and what to do about it.

use std::error::Error;
use std::fmt::{self, Display};
use std::path::Path;

use crate::exit::Exit;

/// Why a command ends without what it was asked for. Printed by [`Output`](crate::output::Output), which also
/// knows the form: `error: …`, `caused by: …`, `hint: …`.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The way the process ends.
    pub(crate) exit: Exit,
    /// One for each thing that is wrong; empty where there is nobody to tell, as with a closed pipe.
    pub(crate) complaints: Vec<Complaint>,
    /// What `--json` prints on standard output in place of a result.
    pub(crate) json: Option<serde_json::Value>,
}

/// One thing that is wrong.
#[derive(Debug)]
pub(crate) struct Complaint {
    /// Lower case, names the thing, without a stop.
    pub(crate) message: String,
    /// The chain of causes, the nearest first.
    pub(crate) causes: Vec<String>,
    /// What to do about it.
    pub(crate) hint: Option<String>,
}

impl Failure {
    /// A failure with one complaint.
    pub(crate) fn new(exit: Exit, message: impl Display) -> Self {
        let complaint = Complaint { message: message.to_string(), causes: Vec::new(), hint: None };
        Self { exit, complaints: vec![complaint], json: None }
    }

    /// What was asked for or handed in is wrong.
    pub(crate) fn input(message: impl Display) -> Self {
        Self::new(Exit::BadInput, message)
    }

    /// A file cannot be used.
    pub(crate) fn file(doing: &str, path: &Path, error: &std::io::Error) -> Self {
        Self::input(format_args!("cannot {doing} {}: {}", path.display(), plain(error)))
    }

    /// An error of a library, with its chain of causes.
    pub(crate) fn of(exit: Exit, error: &dyn Error) -> Self {
        Self::new(exit, error).caused_by(error.source())
    }

    /// Nobody reads what we print: not worth a word, as with any program before `head`.
    pub(crate) const fn nobody_reads() -> Self {
        Self { exit: Exit::Done, complaints: Vec::new(), json: None }
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

    /// With the chain that begins at `cause`. A cause whose words the error above it repeats is left out.
    #[must_use]
    pub(crate) fn caused_by(mut self, mut cause: Option<&dyn Error>) -> Self {
        let Some(last) = self.complaints.last_mut() else { return self };
        while let Some(error) = cause {
            let text = words(&error.to_string());
            let above = last.causes.last().unwrap_or(&last.message);
            if !above.contains(&text) {
                last.causes.push(text);
            }
            cause = error.source();
        }
        self
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

/// The system's words for an error, lower case and without the number that Rust adds.
pub(crate) fn plain(error: &std::io::Error) -> String {
    words(&error.to_string())
}

/// The same for any text: only that of a system error has the number, and only such a one begins with a capital.
fn words(text: &str) -> String {
    let Some((words, _)) = text.split_once(" (os error") else { return text.to_owned() };
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_error_reads_like_our_own_words() {
        let missing = std::io::Error::from_raw_os_error(2);
        assert_eq!(plain(&missing), "no such file or directory");
    }

    #[test]
    fn a_cause_is_not_said_twice() {
        #[derive(Debug, thiserror::Error)]
        #[error("outer: {source}")]
        struct Outer {
            source: std::num::ParseIntError,
        }
        let source = "x".parse::<u8>().expect_err("x is no number");
        let failure = Failure::of(Exit::BadInput, &Outer { source });
        assert_eq!(failure.complaints[0].causes, Vec::<String>::new());
    }
}
