//! The check that the program is there, and recent enough.

use std::path::PathBuf;

/// The program that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundProgram {
    /// The path of the program.
    pub path: PathBuf,
    /// The version that it reports.
    pub version: Version,
}

/// A version of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, derive_more::Display)]
#[display("{major}.{minor}.{patch}")]
pub struct Version {
    /// First number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
    /// The third number.
    pub patch: u32,
}

/// The oldest version that this crate was tried with.
pub const OLDEST: Version = Version { major: 2, minor: 1, patch: 197 };

/// The reason why the program cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The program is not there.
    #[error("{command} not found on PATH")]
    NotFound {
        /// The command that was looked for.
        command: String,
    },
    /// The program is there and cannot be started.
    #[error("{command} cannot be started: {message}")]
    CannotStart {
        /// The command that was started.
        command: String,
        /// The error of the system.
        message: String,
    },
    /// The program is older than the versions that this crate was tried with.
    #[error("{} is version {}, and {OLDEST} is the oldest that is known to work", found.path.display(), found.version)]
    TooOld {
        /// The program.
        found: FoundProgram,
    },
    /// The program does not report its version.
    #[error("{} does not say its version: {said:?}", path.display())]
    NoVersion {
        /// The program.
        path: PathBuf,
        /// The text that it printed instead.
        said: String,
    },
}

impl CheckError {
    /// Returns advice on what to do next.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotFound { .. } | Self::CannotStart { .. } => {
                "install Claude Code with npm i -g @anthropic-ai/claude-code, or set runtimes.claude.command"
            }
            Self::TooOld { .. } => "update it with npm i -g @anthropic-ai/claude-code@latest",
            Self::NoVersion { .. } => "set runtimes.claude.command to Claude Code",
        }
    }
}

impl Version {
    /// From what the program prints, `2.1.329 (Claude Code)`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split_whitespace().next()?.splitn(3, '.');
        let mut number = || {
            let digits = numbers.next()?;
            // Text behind the digits names a build, not a version.
            let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            digits[..end].parse().ok()
        };
        Some(Self { major: number()?, minor: number()?, patch: number()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        let check = |text: &str, expected: Option<(u32, u32, u32)>| {
            let expected = expected.map(|(major, minor, patch)| Version { major, minor, patch });
            assert_eq!(Version::parse(text), expected, "{text}");
        };
        check("2.1.329 (Claude Code)\n", Some((2, 1, 329)));
        check("2.1.329-beta.1", Some((2, 1, 329)));
        check("2.1", None);
        check("claude 2.1.329", None);
        check("", None);
        assert!(Version::parse("2.1.99") < Some(OLDEST) && Version::parse("2.2.0") > Some(OLDEST));
    }
}
