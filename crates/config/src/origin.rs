//! The origin of a value.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use crate::source::SourceKind;

/// A value, and who set it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Valued<T> {
    /// The value that holds.
    pub value: T,
    /// The origin of the value.
    pub origin: Origin,
}

/// The setter of a value. The text form is what people read: `user file /home/x/config.toml:12`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The program's own value.
    BuiltIn,
    /// A configuration file, or an agent definition in Markdown.
    File {
        /// The layer of the file.
        kind: SourceKind,
        /// As it was handed in.
        path: PathBuf,
        /// Counted from 1.
        line: u32,
    },
    /// A variable of the environment.
    Environment {
        /// The whole name.
        name: String,
    },
    /// A flag of the command line.
    Flag {
        /// With its dashes.
        name: String,
    },
    /// A layer of the crate `config`, by the name that the value has of its origin there.
    Layer {
        /// A file, or words such as `the environment`.
        name: Option<String>,
    },
    /// The program that uses this library.
    Programmatic,
}

impl Origin {
    /// Returns the folder of the project whose file set the value; none where no project did.
    pub fn project(&self) -> Option<&Path> {
        let Self::File { kind: SourceKind::Project, path, .. } = self else { return None };
        let holds_files =
            |folder: &&Path| folder.ends_with(".offshoot") || folder.ends_with(".claude");
        path.ancestors().find(holds_files)?.parent()
    }
}

impl<T> Valued<T> {
    /// A value with its origin.
    pub const fn new(value: T, origin: Origin) -> Self {
        Self { value, origin }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built-in"),
            Self::File { kind, path, line } => write!(f, "{kind} {}:{line}", path.display()),
            Self::Environment { name } => write!(f, "environment {name}"),
            Self::Flag { name } => write!(f, "flag {name}"),
            Self::Layer { name: Some(name) } => write!(f, "layer {name}"),
            Self::Layer { name: None } => f.write_str("layer"),
            Self::Programmatic => f.write_str("program"),
        }
    }
}

impl Serialize for Origin {
    /// The text form: origins are read by people, and no program takes one back.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
