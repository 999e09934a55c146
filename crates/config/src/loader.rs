//! From texts to one configuration.

use std::ffi::OsStr;
use std::path::PathBuf;

use serde_json::Value;

use crate::config::Config;
use crate::definition;
use crate::document::Document;
use crate::environment;
use crate::field::{Field, Row};
use crate::node::{self, Node};
use crate::origin::{Origin, Valued};
use crate::problem::{ConfigErrors, Problem, ProblemKind};
use crate::reader::Reader;
use crate::section::Section;
use crate::source::{Format, Source, SourceKind};
use crate::subagents::SubagentSettings;

/// Collects what a configuration is read from, and reads it.
///
/// The order of the calls says nothing, except among variables, among flags and among files of one kind, where the
/// later one holds: the layers have an order of their own.
#[derive(Clone, Debug, Default)]
pub struct Loader {
    files: Vec<Source>,
    project_trusted: bool,
    /// Each with the origins of its nodes.
    #[cfg(feature = "config")]
    pub(crate) layers: Vec<(Node, Vec<Origin>)>,
    environment: Vec<(String, String)>,
    overrides: Vec<(String, Value, Origin)>,
}

/// A setting that was there and took no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    /// The file.
    pub path: PathBuf,
    /// The reason: lower case, for people.
    pub reason: String,
}

/// The settings of all layers.
#[derive(Default)]
struct Reading {
    layers: Vec<Document>,
    problems: Vec<Problem>,
    foreign: Vec<Valued<String>>,
}

impl Loader {
    /// Nothing yet; loading it gives the built-in values.
    pub fn new() -> Self {
        Self::default()
    }

    /// A file.
    #[must_use]
    pub fn file(mut self, source: Source) -> Self {
        self.files.push(source);
        self
    }

    /// Sets if the files of the project take effect. Without this call they do not.
    #[must_use]
    pub fn project_trusted(mut self, trusted: bool) -> Self {
        self.project_trusted = trusted;
        self
    }

    /// The environment, whole: what is not a setting of ours is passed over.
    #[must_use]
    pub fn environment(
        mut self,
        variables: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
    ) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        self.environment.extend(variables);
        self
    }

    /// A flag of the command line: the key it sets, dotted, its value, and its name for messages. Text is read as the
    /// key's type needs. A name that has a dot in it cannot be reached.
    #[must_use]
    pub fn flag(
        mut self,
        key: impl Into<String>,
        value: impl Into<Value>,
        name: impl Into<String>,
    ) -> Self {
        self.overrides.push((key.into(), value.into(), Origin::Flag { name: name.into() }));
        self
    }

    /// A setting of the program that uses this library; it counts as a flag.
    #[must_use]
    pub fn set(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.overrides.push((key.into(), value.into(), Origin::Programmatic));
        self
    }

    /// Reads everything.
    ///
    /// # Errors
    ///
    /// Everything that is wrong in any layer, together.
    pub fn load(mut self) -> Result<Config, ConfigErrors> {
        let mut reading = Reading::default();
        let mut ignored = Vec::new();
        self.files.sort_by_key(|source| source.kind);
        for source in &self.files {
            let of_project =
                matches!(source.kind, SourceKind::Project | SourceKind::ProjectDefinition);
            if of_project && !self.project_trusted {
                let reason = "the project is not trusted".to_owned();
                ignored.push(Ignored { path: source.path.clone(), reason });
            } else {
                reading.read_file(source);
            }
        }
        #[cfg(feature = "config")]
        for (node, origins) in &self.layers {
            reading.read(node, Reader::of_layer(origins.clone()));
        }
        for (name, value) in &self.environment {
            if let Some(node) = environment::node(name, value) {
                reading.read(&node, Reader::of(Origin::Environment { name: name.clone() }));
            }
        }
        let below_overrides = reading.layers.len();
        for (key, value, origin) in &self.overrides {
            let path = key.split('.').rev();
            let node = path.fold(Node::from_json(value), |inner, name| inner.behind(name, false));
            reading.read(&node, Reader::of(origin.clone()));
        }
        if !reading.problems.is_empty() {
            return Err(ConfigErrors::new(reading.problems));
        }
        let mut overrides = SubagentSettings::default();
        for layer in &reading.layers[below_overrides..] {
            overrides.overlay(&layer.agents.defaults.subagents);
        }
        let ceilings = reading.layers.iter().map(|layer| layer.ceiling.0.budget.clone()).collect();
        Ok(Config::new(reading.merge(), overrides, ceilings, reading.foreign, ignored))
    }
}

impl Reading {
    fn read_file(&mut self, source: &Source) {
        let mut reader = Reader::of_file(source);
        let node = match source.format {
            Format::Toml => node::parse_toml(&source.text),
            Format::Json5 => node::parse_json5(&source.text).map_err(|error| vec![error]),
            Format::Markdown => {
                let agent = definition::read(&source.text, &mut reader);
                return self.add(Document::of_agent(agent), reader);
            }
        };
        match node {
            Ok(node) => self.read(&node, reader),
            Err(errors) => {
                if looks_like_yaml(source) {
                    let offset = errors.first().map_or(0, |error| error.offset);
                    reader.report(offset, ProblemKind::Yaml);
                } else {
                    for error in errors {
                        reader.report(error.offset, ProblemKind::Syntax { message: error.message });
                    }
                }
                self.add(Document::default(), reader);
            }
        }
    }

    fn read(&mut self, node: &Node, mut reader: Reader<'_>) {
        let mut document = Document::default();
        document.read_table(node, &mut reader);
        self.add(document, reader);
    }

    fn add(&mut self, document: Document, mut reader: Reader<'_>) {
        // Each ceiling bounds its own layer and those above it; layers are read from the lowest.
        for ceiling in self.layers.iter().map(|layer| &layer.ceiling).chain([&document.ceiling]) {
            reader.report_all(document.above(ceiling));
        }
        let (problems, foreign) = reader.finish();
        self.problems.extend(problems);
        self.foreign.extend(foreign);
        self.layers.push(document);
    }

    fn merge(&self) -> Document {
        let mut merged = Document::default();
        for layer in &self.layers {
            merged.overlay(layer);
        }
        for layer in &self.layers {
            merged.agents.defaults.subagents.fill(&layer.ceiling.0, &Row::WHOLE);
        }
        merged
    }
}

/// True if a text that could not be read is YAML by its name, or by its first line that says something.
fn looks_like_yaml(source: &Source) -> bool {
    let ending = source.path.extension().and_then(OsStr::to_str);
    let mut lines = source.text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
    let is_entry = |line: &str| {
        let key = line.split_once(':').filter(|(_, rest)| rest.is_empty() || rest.starts_with(' '));
        let is_plain = |char: char| char.is_ascii_alphanumeric() || "_-.".contains(char);
        line == "---" || key.is_some_and(|(key, _)| !key.is_empty() && key.chars().all(is_plain))
    };
    matches!(ending, Some("yaml" | "yml")) || first.is_some_and(is_entry)
}
