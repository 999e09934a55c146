//! Sections: tables of the configuration whose keys are known.
//!
//! One declaration gives a section its fields, its reading, its merging, its listing, its schema and its template, so
//! none of them can forget a key.
//!
//! ```text
//!  Node ──read──▶ Section ──overlay──▶ Section ──list──▶ (key, value, origin)
//!                    │ check · fill against a ceiling
//!  the declaration ──┴──▶ schema · template · nearest key
//! ```

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::ceiling::Bound;
use crate::foreign;
use crate::node::Node;
use crate::origin::{Origin, Valued};
use crate::problem::{Place, Problem, ProblemKind};
use crate::reader::Reader;
use crate::setting::Setting;
use crate::template::Template;

/// What is known about a key besides its type.
pub(crate) struct Row<T> {
    pub(crate) key: &'static str,
    /// For the schema and the template.
    pub(crate) doc: &'static str,
    pub(crate) built_in: Option<T>,
    pub(crate) bound: Option<Bound<T>>,
}

/// What a field of a section can do.
pub(crate) trait Field {
    /// The type of its value, for [`Row`].
    type Value;

    fn read(&mut self, row: &Row<Self::Value>, node: &Node, cx: &mut Reader<'_>);
    /// What the other one sets holds.
    fn overlay(&mut self, over: &Self);
    fn list(&self, row: &Row<Self::Value>, path: &str, out: &mut Listing);
    fn schema(row: &Row<Self::Value>, definitions: &mut Map<String, Value>) -> Value;
    fn template(row: &Row<Self::Value>, out: &mut Template);
    /// Reports every value above the ceiling.
    fn check(&self, ceiling: &Self, row: &Row<Self::Value>, path: &str, out: &mut Vec<Problem>);
    /// Where nothing is set and the built-in exceeds the ceiling, the ceiling's value holds.
    fn fill(&mut self, ceiling: &Self, row: &Row<Self::Value>);
    /// Reports what is set although it has no more and less.
    fn check_boundable(&self, row: &Row<Self::Value>, path: &str, out: &mut Vec<Problem>);
}

/// A table whose keys are known: see [`section!`].
pub(crate) trait Section: Default {
    const KEYS: &'static [&'static str];
    /// Keys of another system, accepted and reported.
    const FOREIGN: &'static [&'static str];
    const NAME: &'static str;

    /// Reads one of [`Section::KEYS`].
    fn read_key(&mut self, key: &str, node: &Node, cx: &mut Reader<'_>);
    fn overlay_keys(&mut self, over: &Self);
    fn list_keys(&self, path: &str, out: &mut Listing);
    fn properties(definitions: &mut Map<String, Value>) -> Map<String, Value>;
    fn template_keys(out: &mut Template);
    fn check_keys(&self, ceiling: &Self, path: &str, out: &mut Vec<Problem>);
    fn fill_keys(&mut self, ceiling: &Self);
    fn check_boundable_keys(&self, path: &str, out: &mut Vec<Problem>);

    fn read_table(&mut self, node: &Node, cx: &mut Reader<'_>) {
        let Some(entries) = node.table() else {
            return cx.wrong(node, "a table");
        };
        cx.no_duplicates(&entries);
        for (key, value) in entries.iter() {
            if let Some(known) = Self::KEYS.iter().find(|known| key.is(known)) {
                cx.at_key(known, |cx| self.read_key(known, value, cx));
            } else if Self::FOREIGN.contains(&key.name.as_str()) {
                cx.foreign(key);
            } else {
                let known = Self::KEYS.iter().map(|&known| known.to_owned()).collect();
                let nearest = foreign::nearest(&key.name, Self::KEYS).map(str::to_owned);
                let kind = ProblemKind::UnknownKey { nearest, known };
                cx.at_key(&key.name, |cx| cx.report(key.offset, kind));
            }
        }
    }
}

/// Keys with their values, collected for `config show` and `config resolve`.
pub(crate) struct Listing {
    pub(crate) values: Vec<(String, Valued<Value>)>,
    /// What of the unset is listed.
    pub(crate) unset: Unset,
}

/// What a listing says about keys that nobody set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unset {
    Omitted,
    /// Their built-in value, where there is one.
    BuiltIn,
    /// Their built-in value, or null.
    All,
}

pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

impl<T: Setting> Field for Option<Valued<T>> {
    type Value = T;

    fn read(&mut self, _row: &Row<T>, node: &Node, cx: &mut Reader<'_>) {
        if let Some(value) = T::read(node, cx) {
            *self = Some(cx.valued(value, node));
        }
    }

    fn overlay(&mut self, over: &Self) {
        if over.is_some() {
            self.clone_from(over);
        }
    }

    fn list(&self, row: &Row<T>, path: &str, out: &mut Listing) {
        let value = match (self, &row.built_in, out.unset) {
            (Some(set), ..) => Valued::new(set.value.to_json(), set.origin.clone()),
            (None, Some(value), Unset::BuiltIn | Unset::All) => {
                Valued::new(value.to_json(), Origin::BuiltIn)
            }
            (None, None, Unset::All) => Valued::new(Value::Null, Origin::BuiltIn),
            (None, ..) => return,
        };
        out.values.push((join(path, row.key), value));
    }

    fn schema(row: &Row<T>, _definitions: &mut Map<String, Value>) -> Value {
        let mut schema = T::schema();
        schema["description"] = json!(row.doc);
        if let Some(value) = &row.built_in {
            schema["default"] = value.to_json();
        }
        schema
    }

    fn template(row: &Row<T>, out: &mut Template) {
        match &row.built_in {
            Some(value) => out.setting(row.key, row.doc, &value.to_json(), true),
            None => out.setting(row.key, row.doc, &T::example(), false),
        }
    }

    fn check(&self, ceiling: &Self, row: &Row<T>, path: &str, out: &mut Vec<Problem>) {
        let (Some(set), Some(ceiling), Some(bound)) = (self, ceiling, &row.bound) else { return };
        if (bound.exceeds)(&set.value, &ceiling.value) {
            out.push(above(set, ceiling, join(path, row.key)));
        }
    }

    fn fill(&mut self, ceiling: &Self, row: &Row<T>) {
        let (None, Some(highest), Some(bound)) = (&self, ceiling, &row.bound) else { return };
        let exceeds = match &row.built_in {
            Some(value) => (bound.exceeds)(value, &highest.value),
            None => bound.unset_is_unbounded,
        };
        if exceeds {
            self.clone_from(ceiling);
        }
    }

    fn check_boundable(&self, row: &Row<T>, path: &str, out: &mut Vec<Problem>) {
        if let (Some(set), None) = (self, &row.bound) {
            let place = Place { origin: set.origin.clone(), column: None };
            out.push(Problem { place, key: join(path, row.key), kind: ProblemKind::NotBoundable });
        }
    }
}

/// Values by depth: each depth is merged and bounded by itself.
impl<T: Setting> Field for BTreeMap<u8, Valued<T>> {
    type Value = T;

    fn read(&mut self, _row: &Row<T>, node: &Node, cx: &mut Reader<'_>) {
        let Some(entries) = node.table() else {
            return cx.wrong(node, "a table by depth");
        };
        cx.no_duplicates(&entries);
        for (key, value) in entries.iter() {
            cx.at_key(&key.name, |cx| match key.name.parse() {
                Ok(depth @ 0..=10) => {
                    if let Some(setting) = T::read(value, cx) {
                        self.insert(depth, cx.valued(setting, value));
                    }
                }
                _ => cx.report(
                    key.offset,
                    ProblemKind::WrongValue {
                        found: format!("{:?}", key.name),
                        allowed: "a depth from 0 to 10".into(),
                    },
                ),
            });
        }
    }

    fn overlay(&mut self, over: &Self) {
        self.extend(over.iter().map(|(depth, value)| (*depth, value.clone())));
    }

    fn list(&self, row: &Row<T>, path: &str, out: &mut Listing) {
        for (depth, set) in self {
            let path = format!("{}.{depth}", join(path, row.key));
            out.values.push((path, Valued::new(set.value.to_json(), set.origin.clone())));
        }
        if self.is_empty() && out.unset == Unset::All {
            out.values.push((join(path, row.key), Valued::new(json!({}), Origin::BuiltIn)));
        }
    }

    fn schema(row: &Row<T>, _definitions: &mut Map<String, Value>) -> Value {
        json!({
            "type": "object",
            "description": row.doc,
            "patternProperties": { "^([0-9]|10)$": T::schema() },
            "additionalProperties": false,
        })
    }

    fn template(row: &Row<T>, out: &mut Template) {
        out.setting(row.key, row.doc, &json!({ "2": T::example() }), false);
    }

    fn check(&self, ceiling: &Self, row: &Row<T>, path: &str, out: &mut Vec<Problem>) {
        let Some(bound) = &row.bound else { return };
        for (depth, set) in self {
            if let Some(ceiling) = ceiling.get(depth)
                && (bound.exceeds)(&set.value, &ceiling.value)
            {
                out.push(above(set, ceiling, format!("{}.{depth}", join(path, row.key))));
            }
        }
    }

    fn fill(&mut self, ceiling: &Self, row: &Row<T>) {
        if row.bound.is_some() {
            for (depth, ceiling) in ceiling {
                self.entry(*depth).or_insert_with(|| ceiling.clone());
            }
        }
    }

    fn check_boundable(&self, row: &Row<T>, path: &str, out: &mut Vec<Problem>) {
        for set in self.values() {
            Some(set.clone()).check_boundable(row, path, out);
        }
    }
}

/// A section within a section.
impl<S: Section> Field for S {
    type Value = ();

    fn read(&mut self, _row: &Row<()>, node: &Node, cx: &mut Reader<'_>) {
        self.read_table(node, cx);
    }

    fn overlay(&mut self, over: &Self) {
        self.overlay_keys(over);
    }

    fn list(&self, row: &Row<()>, path: &str, out: &mut Listing) {
        self.list_keys(&join(path, row.key), out);
    }

    fn schema(row: &Row<()>, definitions: &mut Map<String, Value>) -> Value {
        let mut reference = section_schema::<S>(definitions);
        if !row.doc.is_empty() {
            reference["description"] = json!(row.doc);
        }
        reference
    }

    fn template(row: &Row<()>, out: &mut Template) {
        out.table(row.key, row.doc, S::template_keys);
    }

    fn check(&self, ceiling: &Self, row: &Row<()>, path: &str, out: &mut Vec<Problem>) {
        self.check_keys(ceiling, &join(path, row.key), out);
    }

    fn fill(&mut self, ceiling: &Self, _row: &Row<()>) {
        self.fill_keys(ceiling);
    }

    fn check_boundable(&self, row: &Row<()>, path: &str, out: &mut Vec<Problem>) {
        self.check_boundable_keys(&join(path, row.key), out);
    }
}

/// A reference to the section's schema, which is defined once.
pub(crate) fn section_schema<S: Section>(definitions: &mut Map<String, Value>) -> Value {
    if !definitions.contains_key(S::NAME) {
        let schema = object_schema::<S>(S::properties(definitions));
        definitions.insert(S::NAME.into(), schema);
    }
    json!({ "$ref": format!("#/$defs/{}", S::NAME) })
}

pub(crate) fn object_schema<S: Section>(mut properties: Map<String, Value>) -> Value {
    for key in S::FOREIGN {
        properties
            .insert((*key).into(), json!({ "description": "accepted, and without effect here" }));
    }
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn above<T: Setting>(set: &Valued<T>, ceiling: &Valued<T>, key: String) -> Problem {
    Problem {
        place: Place { origin: set.origin.clone(), column: None },
        key,
        kind: ProblemKind::AboveCeiling {
            found: set.value.to_json().to_string(),
            allowed: ceiling.value.to_json().to_string(),
            ceiling: ceiling.origin.clone(),
        },
    }
}

/// Declares a section: a struct whose fields are keys.
///
/// `field: Type = "key", built_in VALUE, bound BOUND;` where the last two may be absent. The first paragraph of the
/// field's documentation becomes the description in the schema and in the template.
macro_rules! section {
    (@or_none) => { None };
    (@or_none $value:expr) => { Some($value) };
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident, foreign $foreign:expr => {
            $(
                $(#[doc = $doc:literal])*
                $field_vis:vis $field:ident: $type:ty = $key:literal
                    $(, built_in $built_in:expr)? $(, bound $bound:expr)?;
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq)]
        $vis struct $name {
            $( $(#[doc = $doc])* $field_vis $field: $type, )*
        }

        // In a scope of its own, so that what is generated for a field cannot meet a method of the type.
        const _: () = {
        struct Rows;

        impl Rows {
            $(
                fn $field() -> $crate::section::Row<<$type as $crate::section::Field>::Value> {
                    $crate::section::Row {
                        key: $key,
                        doc: concat!($($doc),*).trim_ascii(),
                        built_in: $crate::section::section!(@or_none $($built_in)?),
                        bound: $crate::section::section!(@or_none $($bound)?),
                    }
                }
            )*
        }

        impl $crate::section::Section for $name {
            const KEYS: &'static [&'static str] = &[$($key),*];
            const FOREIGN: &'static [&'static str] = $foreign;
            const NAME: &'static str = stringify!($name);

            fn read_key(
                &mut self,
                key: &str,
                node: &$crate::node::Node,
                cx: &mut $crate::reader::Reader<'_>,
            ) {
                match key {
                    $( $key => $crate::section::Field::read(&mut self.$field, &Rows::$field(), node, cx), )*
                    _ => unreachable!("only the declared keys are read"),
                }
            }

            fn overlay_keys(&mut self, over: &Self) {
                $( $crate::section::Field::overlay(&mut self.$field, &over.$field); )*
            }

            fn list_keys(&self, path: &str, out: &mut $crate::section::Listing) {
                $( $crate::section::Field::list(&self.$field, &Rows::$field(), path, out); )*
            }

            fn properties(
                definitions: &mut serde_json::Map<String, serde_json::Value>,
            ) -> serde_json::Map<String, serde_json::Value> {
                let mut properties = serde_json::Map::new();
                $(
                    let schema = <$type as $crate::section::Field>::schema(&Rows::$field(), definitions);
                    properties.insert($key.into(), schema);
                )*
                properties
            }

            fn template_keys(out: &mut $crate::template::Template) {
                $( <$type as $crate::section::Field>::template(&Rows::$field(), out); )*
            }

            fn check_keys(&self, ceiling: &Self, path: &str, out: &mut Vec<$crate::problem::Problem>) {
                $(
                    $crate::section::Field::check(
                        &self.$field, &ceiling.$field, &Rows::$field(), path, out,
                    );
                )*
            }

            fn fill_keys(&mut self, ceiling: &Self) {
                $( $crate::section::Field::fill(&mut self.$field, &ceiling.$field, &Rows::$field()); )*
            }

            fn check_boundable_keys(&self, path: &str, out: &mut Vec<$crate::problem::Problem>) {
                $( $crate::section::Field::check_boundable(&self.$field, &Rows::$field(), path, out); )*
            }
        }
        };
    };
}

pub(crate) use section;
