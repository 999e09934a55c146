//! Tables of sections by a name that the user chooses: `runtimes` and `prices`.

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use crate::field::{Field, Listing, Row, join};
use crate::node::Node;
use crate::problem::ProblemKind;
use crate::reader::Reader;
use crate::section::{Section, section_schema};
use crate::template::Template;

/// A section that stands behind a name.
pub(crate) trait Named: Section + Clone {
    /// Ends the sentence "allowed is".
    const ALLOWED: &'static str;
    /// The same as a regular expression, for the schema.
    const PATTERN: &'static str;
    /// An example, as a TOML header.
    const HEADER: &'static str;

    fn is_name(name: &str) -> bool;
}

impl<S: Named> Field for IndexMap<String, S> {
    type Value = ();

    fn read(&mut self, _row: &Row<()>, node: &Node, cx: &mut Reader<'_>) {
        let Some(entries) = node.table() else {
            return cx.wrong(node, "a table by name");
        };
        cx.no_duplicates(&entries);
        for (key, value) in entries.iter() {
            // Environment variables are written in capitals, names are not.
            let name = if key.any_case { key.name.to_ascii_lowercase() } else { key.name.clone() };
            cx.at_key(&name, |cx| {
                if S::is_name(&name) {
                    self.entry(name.clone()).or_default().read_table(value, cx);
                } else {
                    let (found, allowed) = (format!("{name:?}"), S::ALLOWED.into());
                    cx.report(key.offset, ProblemKind::WrongValue { found, allowed });
                }
            });
        }
    }

    fn overlay(&mut self, over: &Self) {
        for (name, section) in over {
            self.entry(name.clone()).or_default().overlay(section);
        }
    }

    fn list(&self, row: &Row<()>, path: &str, out: &mut Listing) {
        for (name, section) in self {
            section.list(&Row::WHOLE, &join(&row.path(path), name), out);
        }
    }

    fn schema(row: &Row<()>, definitions: &mut Map<String, Value>) -> Value {
        json!({
            "type": "object",
            "description": row.doc,
            "propertyNames": { "pattern": S::PATTERN },
            "additionalProperties": section_schema::<S>(definitions),
        })
    }

    fn template(_row: &Row<()>, out: &mut Template) {
        out.example_table(S::HEADER, S::template_keys);
    }

    fn trusted_words<'a>(&'a self, out: &mut Vec<&'a str>) {
        self.values().for_each(|section| section.trusted_words(out));
    }
}
