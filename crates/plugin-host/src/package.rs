//! `plugin.toml`: what a folder says that its plugin is. Read without running a byte of it.

mod problem;
mod program;
mod read;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use offshoot_model::ContentHash;

pub use problem::{PackageProblem, PackageProblems};
pub use program::{Per, ProcessEntry};

/// The file's name, in the folder of the plugin.
pub const PACKAGE_FILE: &str = "plugin.toml";

/// The contents of a `plugin.toml`.
#[derive(Clone, Debug, PartialEq)]
pub struct Package {
    /// The name, which is also that of the folder.
    pub name: PluginName,
    /// The version of the plugin.
    pub version: String,
    /// The version of the interface that it was built for.
    pub abi: AbiVersion,
    /// The description, a sentence.
    pub description: Option<String>,
    /// The licence of the plugin.
    pub license: Option<String>,
    /// The runtimes that it offers, by the names that specs use.
    pub runtimes: Vec<PluginName>,
    /// The merges that it offers.
    pub merges: Vec<PluginName>,
    /// The library, by target: `x86_64-unknown-linux-gnu`.
    pub files: BTreeMap<String, LibraryFile>,
    /// The program, where the plugin is no library.
    pub process: Option<ProcessEntry>,
    /// The JSON Schema of its settings.
    pub config: Option<serde_json::Value>,
}

/// A library in the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryFile {
    /// Relative to the folder, and within it.
    pub path: PathBuf,
    /// The digest that the file must have, where the package says so.
    pub digest: Option<ContentHash>,
}

/// The name of a plugin, a runtime or a merge: a-z, 0-9, _ and -, up to 64 of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct PluginName(String);

/// A text that is no name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not {allowed}", allowed = PluginName::ALLOWED)]
pub struct NameError(String);

/// A version of the interface. Minor versions of one major one are compatible in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AbiVersion {
    /// Another one is another interface.
    pub major: u32,
    /// A larger one has more.
    pub minor: u32,
}

impl Package {
    /// Reads the text of a `plugin.toml`. The path is for messages.
    ///
    /// # Errors
    /// Everything that is wrong, each with its place.
    pub fn parse(text: &str, path: &Path) -> Result<Self, PackageProblems> {
        read::read(text, path)
    }

    /// The text of a `plugin.toml` that says the same.
    pub fn to_toml(&self) -> String {
        let text = |text: &str| toml::Value::String(text.to_owned());
        let names = |names: &[PluginName]| {
            toml::Value::Array(names.iter().map(|name| text(name.as_str())).collect())
        };
        let mut table = toml::Table::new();
        table.insert("name".into(), text(self.name.as_str()));
        table.insert("version".into(), text(&self.version));
        table.insert("abi".into(), text(&self.abi.to_string()));
        for (key, value) in [("description", &self.description), ("license", &self.license)] {
            table.extend(value.as_ref().map(|value| (key.to_owned(), text(value))));
        }
        table.insert("runtimes".into(), names(&self.runtimes));
        table.insert("merges".into(), names(&self.merges));
        let files = self.files.iter().map(|(target, file)| {
            let mut entry = toml::Table::new();
            entry.insert("path".into(), text(&file.path.to_string_lossy()));
            entry
                .extend(file.digest.map(|digest| ("digest".to_owned(), text(&digest.to_string()))));
            (target.clone(), toml::Value::Table(entry))
        });
        match &self.process {
            None => drop(table.insert("files".into(), toml::Value::Table(files.collect()))),
            Some(process) => {
                let list = |items: Vec<toml::Value>| toml::Value::Array(items);
                let command = process.command.iter().map(|word| text(word)).collect();
                let files =
                    process.files.iter().map(|file| text(&file.to_string_lossy())).collect();
                let mut entry = toml::Table::new();
                entry.insert("command".into(), list(command));
                entry.insert("files".into(), list(files));
                entry.insert("per".into(), text(process.per.word()));
                entry.extend(
                    process.digest.map(|digest| ("digest".to_owned(), text(&digest.to_string()))),
                );
                table.insert("process".into(), toml::Value::Table(entry));
            }
        }
        // What came from TOML goes back into it; JSON's null, which does not, cannot be in there.
        let config = self.config.as_ref().map(toml::Value::try_from).and_then(Result::ok);
        table.extend(config.map(|config| ("config".to_owned(), config)));
        table.to_string()
    }

    /// The library for this machine.
    pub fn library(&self) -> Option<&LibraryFile> {
        self.files.get(&target())
    }
}

/// The target that this program was built for, as compilers name it.
pub fn target() -> String {
    let arch = std::env::consts::ARCH;
    if cfg!(target_os = "macos") {
        return format!("{arch}-apple-darwin");
    }
    let libc = if cfg!(target_env = "musl") { "musl" } else { "gnu" };
    format!("{arch}-unknown-{}-{libc}", std::env::consts::OS)
}

impl PluginName {
    /// The rule for names, in words.
    pub const ALLOWED: &str =
        "a name of up to 64 of a-z, 0-9, _ and -, beginning with a letter or digit";

    /// Takes a text that is a name. It is kept as it is typed.
    ///
    /// # Errors
    /// Fails if the text is not a name.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let mut bytes = text.bytes();
        let fine = bytes.next().is_some_and(plain)
            && bytes.all(|byte| plain(byte) || matches!(byte, b'_' | b'-'))
            && text.len() <= 64;
        if fine { Ok(Self(text.to_owned())) } else { Err(NameError(text.to_owned())) }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PluginName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl AbiVersion {
    /// Takes a text such as `1.0`; a third part, as in `1.0.2`, is no part of the interface.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.').map(str::parse);
        let (major, minor) = (parts.next()?.ok()?, parts.next()?.ok()?);
        match (parts.next(), parts.next()) {
            (None | Some(Ok(_)), None) => Some(Self { major, minor }),
            _ => None,
        }
    }
}

impl fmt::Display for AbiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests;
