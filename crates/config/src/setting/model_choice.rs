//! `model`: which model, and which others when it cannot be had.

use serde::Serialize;
use serde_json::{Value, json};

use super::{Scalar, Setting, read_items};
use crate::node::Node;
use crate::reader::Reader;

/// A model and its stand-ins. In a file either a name or `{ primary, fallbacks }`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ModelChoice {
    /// The one that is meant; `None` inherits and only names stand-ins.
    pub primary: Option<String>,
    /// Tried in this order. Models of the run's own runtime stand before other runtimes.
    pub fallbacks: Vec<Fallback>,
}

/// A stand-in for a model. In a file a model's name, or `{ runtime, model }`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Fallback {
    /// Another model of the same runtime, which goes over to it within an attempt.
    Model(String),
    /// Another runtime, which has an attempt of its own.
    Runtime(RuntimeFallback),
}

/// A runtime that stands in for another one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RuntimeFallback {
    /// The name of the runtime.
    pub runtime: String,
    /// The model; where absent the one that the runtime takes by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl ModelChoice {
    /// Returns the stand-ins that the runtime of the run goes over to by itself.
    pub fn models(&self) -> Vec<String> {
        let model = |fallback: &Fallback| match fallback {
            Fallback::Model(model) => Some(model.clone()),
            Fallback::Runtime(_) => None,
        };
        self.fallbacks.iter().filter_map(model).collect()
    }

    /// Returns the other runtimes that stand in.
    pub fn runtimes(&self) -> impl Iterator<Item = &RuntimeFallback> {
        self.fallbacks.iter().filter_map(|fallback| match fallback {
            Fallback::Model(_) => None,
            Fallback::Runtime(runtime) => Some(runtime),
        })
    }
}

impl Setting for ModelChoice {
    fn read(node: &Node, cx: &mut Reader<'_>) -> Option<Self> {
        const KEYS: &[&str] = &["primary", "fallbacks"];
        // In untyped text a table has braces; everything else is a name.
        let Some(entries) = node.table() else {
            let allowed = "a model's name, or { primary, fallbacks }";
            let name = cx.or_wrong(String::from_node(node), node, allowed);
            return name.map(|name| Self { primary: Some(name), fallbacks: Vec::new() });
        };
        let mut model = Self::default();
        let right = cx.keys(&entries, KEYS, &[], |key, value, cx| {
            if key == "fallbacks" {
                return read_fallbacks(value, cx).map(|all| model.fallbacks = all).is_some();
            }
            model.primary = <String as Setting>::read(value, cx);
            model.primary.is_some()
        });
        right.then_some(model)
    }

    fn schema() -> Value {
        json!({
            "anyOf": [
                <String as Scalar>::schema(),
                {
                    "type": "object",
                    "properties": {
                        "primary": <String as Scalar>::schema(),
                        "fallbacks": { "type": "array", "items": Fallback::schema() },
                    },
                    "additionalProperties": false,
                },
            ],
        })
    }

    fn example() -> Value {
        json!({ "primary": "sonnet", "fallbacks": ["haiku"] })
    }

    fn trusted_words(&self) -> Vec<&str> {
        Vec::new()
    }
}

/// Reads the stand-ins of a model. A run that has gone over to another runtime does not come back to models of its first one.
fn read_fallbacks(node: &Node, cx: &mut Reader<'_>) -> Option<Vec<Fallback>> {
    let allowed = "a list of models, or of { runtime, model }";
    let fallbacks = read_items(node, cx, allowed, Fallback::read)?;
    let is_model = |fallback: &Fallback| matches!(fallback, Fallback::Model(_));
    if !fallbacks.is_sorted_by_key(|fallback| !is_model(fallback)) {
        cx.wrong(node, "models first, then other runtimes");
        return None;
    }
    Some(fallbacks)
}

impl Fallback {
    fn read(node: &Node, cx: &mut Reader<'_>) -> Option<Self> {
        const KEYS: &[&str] = &["runtime", "model"];
        let Some(entries) = node.table() else {
            let allowed = "a model's name, or { runtime, model }";
            return cx.or_wrong(String::from_node(node), node, allowed).map(Self::Model);
        };
        let mut other = RuntimeFallback::default();
        let right = cx.keys(&entries, KEYS, &[], |key, value, cx| {
            let text = <String as Setting>::read(value, cx);
            let is_right = text.is_some();
            match (key, text) {
                ("runtime", Some(name)) => other.runtime = name,
                (_, model) => other.model = model,
            }
            is_right
        });
        if right && other.runtime.is_empty() {
            cx.wrong(node, "a table with a runtime: { runtime, model }");
            return None;
        }
        right.then_some(Self::Runtime(other))
    }

    fn schema() -> Value {
        json!({
            "anyOf": [
                <String as Scalar>::schema(),
                {
                    "type": "object",
                    "properties": {
                        "runtime": <String as Scalar>::schema(),
                        "model": <String as Scalar>::schema(),
                    },
                    "required": ["runtime"],
                    "additionalProperties": false,
                },
            ],
        })
    }
}
