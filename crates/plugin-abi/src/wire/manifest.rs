//! The description of a plugin by itself: the answer of `describe`.

use std::collections::BTreeSet;

use offshoot_model::JsonText;
use offshoot_runtime::{Abilities, CostKnowledge};
use serde::{Deserialize, Deserializer, Serialize};

use super::word::Word;
use super::{Must, Version, from_json, to_json};
use crate::AbiError;

/// A plugin in its own words. Asked before `init`, without effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The package's name.
    pub name: String,
    /// The package's version.
    pub version: String,
    /// The interface that it was built with.
    pub abi: String,
    /// The effect of a panic in it.
    pub panic: Panic,
    /// One line about it.
    pub description: String,
    /// The licence, as in its package; empty where it says nothing.
    pub license: String,
    /// A JSON Schema of its configuration, where it has one.
    pub config_schema: Option<JsonText>,
    /// The runtimes of the plugin.
    pub runtimes: Vec<RuntimeEntry>,
    /// The merge functions of the plugin.
    pub merges: Vec<MergeEntry>,
}

/// The effect of a panic. A host takes in no plugin whose panic ends the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Panic {
    /// The panic unwinds, and can be caught.
    #[default]
    Unwind,
    /// The panic ends the process: `panic = "abort"`.
    Abort,
}

/// A runtime.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeEntry {
    /// By which configuration names it.
    pub name: String,
    /// One line about it.
    #[serde(default)]
    pub description: String,
    /// Abilities, unless the answer to a request for this runtime gives others; see [`encode_made`].
    #[serde(with = "Able")]
    pub abilities: Abilities,
    /// A JSON Schema of its settings, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_schema: Option<JsonText>,
}

/// A merge function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MergeEntry {
    /// By which `--merge plugin:NAME` names it.
    pub name: String,
    /// One line about it.
    #[serde(default)]
    pub description: String,
    /// A JSON Schema of its settings, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_schema: Option<JsonText>,
}

impl Panic {
    /// The effect in the code that asks.
    pub const fn of_this_build() -> Self {
        if cfg!(panic = "abort") { Self::Abort } else { Self::Unwind }
    }
}

/// The document of a manifest.
pub fn encode(manifest: Manifest) -> String {
    to_json(&Document::from(manifest), "manifest").expect("a manifest is words and lists of words")
}

/// The manifest of a document.
///
/// # Errors
/// [`AbiError::INVALID`] where it is none.
pub fn decode(json: &str) -> Result<Manifest, AbiError> {
    from_json::<Document>(json, "manifest").map(Manifest::from)
}

/// The answer of a program to a request for a runtime: with abilities where its settings change them.
pub fn encode_made(abilities: Option<Abilities>) -> String {
    let made = Made { v: Version, must: Must, abilities: abilities.map(OfSettings) };
    to_json(&made, "runtime").expect("abilities are words")
}

/// The abilities in the answer to a request for a runtime, where they are other than in the manifest.
///
/// # Errors
/// [`AbiError::INVALID`] where it is none.
pub fn decode_made(json: &str) -> Result<Option<Abilities>, AbiError> {
    from_json::<Made>(json, "runtime")
        .map(|made| made.abilities.map(|OfSettings(abilities)| abilities))
}

#[derive(Serialize, Deserialize)]
struct Made {
    v: Version,
    #[serde(default, skip_serializing_if = "Must::is_empty")]
    must: Must,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    abilities: Option<OfSettings>,
}

#[derive(Serialize, Deserialize)]
struct OfSettings(#[serde(with = "Able")] Abilities);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    v: Version,
    #[serde(default, skip_serializing_if = "Must::is_empty")]
    must: Must,
    name: String,
    version: String,
    /// A program need not say it: its package does.
    #[serde(default)]
    abi: String,
    /// A program has none.
    #[serde(default)]
    panic: Panic,
    #[serde(default)]
    description: String,
    #[serde(default)]
    license: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    config_schema: Option<JsonText>,
    #[serde(default)]
    runtimes: Vec<RuntimeEntry>,
    #[serde(default)]
    merges: Vec<MergeEntry>,
}

/// Abilities: `serde`'s `with`.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Abilities")]
struct Able {
    #[serde(deserialize_with = "cost")]
    cost: CostKnowledge,
    #[serde(default)]
    turns: bool,
    #[serde(default)]
    resumes: bool,
    /// Null where it can take away any right; none where it is not said.
    #[serde(default = "none_at_all")]
    enforces: Option<BTreeSet<String>>,
}

/// The knowledge of a cost. A word that is not known promises none.
fn cost<'de, D: Deserializer<'de>>(deserializer: D) -> Result<CostKnowledge, D::Error> {
    // No plugin counts as the meter does, so its word for that is none.
    let known = Word::deserialize(deserializer)?.known();
    Ok(known.filter(|cost| *cost != CostKnowledge::Metered).unwrap_or(CostKnowledge::Unknown))
}

/// The rights that a runtime takes away if it does not say any.
fn none_at_all() -> Option<BTreeSet<String>> {
    Some(BTreeSet::new())
}

impl From<Manifest> for Document {
    fn from(manifest: Manifest) -> Self {
        Self {
            v: Version,
            must: Must,
            name: manifest.name,
            version: manifest.version,
            abi: manifest.abi,
            panic: manifest.panic,
            description: manifest.description,
            license: manifest.license,
            config_schema: manifest.config_schema,
            runtimes: manifest.runtimes,
            merges: manifest.merges,
        }
    }
}

impl From<Document> for Manifest {
    fn from(document: Document) -> Self {
        Self {
            name: document.name,
            version: document.version,
            abi: document.abi,
            panic: document.panic,
            description: document.description,
            license: document.license,
            config_schema: document.config_schema,
            runtimes: document.runtimes,
            merges: document.merges,
        }
    }
}
