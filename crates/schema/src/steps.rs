//! The number of steps that a check takes at most, counted without taking them.

use std::collections::HashMap;

use serde_json::Value;

use crate::SchemaError;
use crate::graph::{Into, parts};

/// A check with more steps takes too long; it is about a second.
const STEPS: u64 = 20_000_000;

/// So many pairs of a part of the schema and a part of the value are looked at.
const PAIRS: usize = 1_000_000;

/// So deep may a check call itself.
const DEEP: usize = 2000;

/// The count so far.
struct Counter<'a> {
    root: &'a Value,
    /// The steps of each pair; parts of a schema and of a value are the same where they lie in the same place.
    known: HashMap<(*const Value, *const Value), u64>,
}

/// Checks that the steps of a check are few enough.
pub(crate) fn check(schema: &Value, value: &Value) -> Result<(), SchemaError> {
    let mut counter = Counter { root: schema, known: HashMap::new() };
    let steps = counter.count(schema, value, 0);
    if steps.is_some_and(|steps| steps <= STEPS) {
        return Ok(());
    }
    Err(SchemaError::whole("to compare the answer with its schema takes too many steps"))
}

impl Counter<'_> {
    /// Returns the steps for a part of the schema and a part of the value; none where it gives up.
    fn count(&mut self, schema: &Value, value: &Value, deep: usize) -> Option<u64> {
        let pair = (std::ptr::from_ref(schema), std::ptr::from_ref(value));
        if let Some(steps) = self.known.get(&pair) {
            return Some(*steps);
        }
        if deep > DEEP || self.known.len() > PAIRS {
            return None;
        }
        let fields = schema.as_object();
        // These look once more at what was looked at in place.
        let again = ["unevaluatedProperties", "unevaluatedItems"];
        let times = 1 + fields.map_or(0, |fields| {
            again.iter().filter(|name| fields.contains_key(**name)).count() as u64
        });
        let mut steps = 1_u64;
        let parts = parts(self.root, schema, "/").ok()?;
        for part in &parts {
            let mut below = 0_u64;
            match (part.into, value) {
                (Into::Same, _) => below = self.count(part.schema, value, deep + 1)?,
                (Into::Property(name), Value::Object(fields)) => {
                    if let Some(value) = fields.get(name) {
                        below = self.count(part.schema, value, deep + 1)?;
                    }
                }
                (Into::Properties, Value::Object(fields)) => {
                    for value in fields.values() {
                        below = below.saturating_add(self.count(part.schema, value, deep + 1)?);
                    }
                }
                (Into::Items, Value::Array(items)) => {
                    for value in items {
                        below = below.saturating_add(self.count(part.schema, value, deep + 1)?);
                    }
                }
                (Into::Nothing, Value::Object(fields)) => below = fields.len() as u64,
                _ => {}
            }
            let times = if part.into == Into::Same { times } else { 1 };
            steps = steps.saturating_add(below.saturating_mul(times));
        }
        self.known.insert(pair, steps);
        Some(steps)
    }
}
