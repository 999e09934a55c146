//! The problems of a configuration: each with its place, all of them together.

use std::fmt;

use crate::origin::Origin;

/// Everything that is wrong, in the order of the layers and within a file from the top.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors {
    problems: Vec<Problem>,
}

/// One thing that is wrong. The text form is `place: key: what`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The place of the problem.
    pub place: Place,
    /// The key, dotted: `agents.list[0].subagents.maxDepth`. Empty where the text itself cannot be read.
    pub key: String,
    /// The kind of problem.
    pub kind: ProblemKind,
}

/// A place in a source. For a file the text form is `path:line:column`, which editors open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The origin of the text.
    pub origin: Origin,
    /// In characters, counted from 1; files only.
    pub column: Option<u32>,
}

/// The kinds of problems.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProblemKind {
    /// The text is not TOML or JSON5.
    #[error("{message}")]
    Syntax {
        /// The parser's words.
        message: String,
    },
    /// The text is YAML.
    #[error(
        "this is YAML, and configuration is TOML, or JSON5 in a file whose name ends in .json5 or .json"
    )]
    Yaml,
    /// No such key.
    #[error("unknown key{}", nearest.as_ref().map(|near| format!(", nearest is `{near}`")).unwrap_or_default())]
    UnknownKey {
        /// The known key that looks most like it.
        nearest: Option<String>,
        /// All that could stand there.
        known: Vec<String>,
    },
    /// A wrong type, or a value out of its range.
    #[error("found {found}, allowed is {allowed}")]
    WrongValue {
        /// The value that was found.
        found: String,
        /// The values that are allowed.
        allowed: String,
    },
    /// A key that stands twice in one table.
    #[error("set twice, first at {first}")]
    DuplicateKey {
        /// The other one.
        first: Place,
    },
    /// An agent id that stands twice in one file.
    #[error("agent `{id}` is defined twice, first at {first}")]
    DuplicateAgent {
        /// The id.
        id: String,
        /// The other one.
        first: Place,
    },
    /// An agent without a name.
    #[error("an agent needs its `{key}`")]
    MissingId {
        /// The key that is missing.
        key: &'static str,
    },
    /// More than a ceiling permits.
    #[error("found {found}, allowed is {allowed} by the ceiling of {ceiling}")]
    AboveCeiling {
        /// The value that was found.
        found: String,
        /// The ceiling's value.
        allowed: String,
        /// The origin of the ceiling.
        ceiling: Origin,
    },
    /// A ceiling below the user's file.
    #[error("a ceiling may only stand in the system or user file")]
    MisplacedCeiling,
    /// Bounds of the computer above the user's file.
    #[error("`host` may only stand in the system or user file")]
    MisplacedHost,
    /// A key of a ceiling that has no more and less.
    #[error("a ceiling cannot bound this key")]
    NotBoundable,
}

impl ConfigErrors {
    pub(crate) fn new(problems: Vec<Problem>) -> Self {
        Self { problems }
    }

    /// The problems; never none.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl Problem {
    /// Returns advice on what to do next, where that is more than the message says.
    pub fn hint(&self) -> Option<String> {
        match &self.kind {
            ProblemKind::UnknownKey { known, .. } if !known.is_empty() => {
                Some(format!("known keys here: {}", known.join(", ")))
            }
            ProblemKind::Yaml => Some("`offshoot config init` writes one to begin with".into()),
            ProblemKind::AboveCeiling { ceiling, .. } => {
                Some(format!("lower the value, or raise the ceiling in the {ceiling}"))
            }
            ProblemKind::MisplacedCeiling | ProblemKind::MisplacedHost => Some(
                "the user file is ~/.config/offshoot/config.toml ($XDG_CONFIG_HOME in place of ~/.config where that is set), the system file /etc/offshoot/config.toml".into(),
            ),
            ProblemKind::DuplicateAgent { .. } => Some(
                "one file names an agent once; another layer may add to it by the same id".into(),
            ),
            _ => None,
        }
    }
}

impl fmt::Display for ConfigErrors {
    /// One problem a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.problems.iter().map(Problem::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        self.kind.fmt(f)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::File { path, line, .. } => {
                write!(f, "{}:{line}", path.display())?;
                self.column.map_or(Ok(()), |column| write!(f, ":{column}"))
            }
            other => other.fmt(f),
        }
    }
}

impl std::error::Error for ConfigErrors {}

impl std::error::Error for Problem {}
