//! The texts that configuration is read from, and their layers.

use std::path::{Path, PathBuf};

/// One configuration file or agent definition, already read.
#[derive(Clone, Debug)]
pub struct Source {
    /// The layer of the source.
    pub kind: SourceKind,
    /// For messages only; nothing is opened here.
    pub path: PathBuf,
    /// All of it.
    pub text: String,
    /// The format of the text.
    pub format: Format,
}

/// The layers that are files, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display)]
pub enum SourceKind {
    /// The machine's, which only its administrator writes.
    #[display("system file")]
    System,
    /// An agent definition of the user's.
    #[display("definition")]
    UserDefinition,
    /// The user's own.
    #[display("user file")]
    User,
    /// An agent definition that comes with the project; it waits for trust like the project's file.
    #[display("definition")]
    ProjectDefinition,
    /// The project's, which comes with a checkout and takes effect only once the project is trusted.
    #[display("project file")]
    Project,
    /// Named on the command line.
    #[display("file")]
    File,
}

/// The notations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// The format of `config.toml`.
    Toml,
    /// `config.json5`; JSON is a part of it.
    Json5,
    /// `agents/scout.md`: one agent, with front matter in YAML.
    Markdown,
}

impl Source {
    /// A source whose format its file name tells; without a known ending it is read as TOML.
    pub fn new(kind: SourceKind, path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        let path = path.into();
        let format = Format::of(&path).unwrap_or(Format::Toml);
        Self { kind, path, text: text.into(), format }
    }
}

impl Format {
    /// The format by the ending of a file's name.
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "toml" => Some(Self::Toml),
            "json5" | "json" | "jsonc" => Some(Self::Json5),
            "md" => Some(Self::Markdown),
            _ => None,
        }
    }
}
