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

use serde_json::{Map, Value, json};

use crate::field::{Field, Row};
use crate::node::Node;
use crate::reader::Reader;
use crate::template::Template;

/// A table whose keys are known: see [`section!`].
pub(crate) trait Section: Field<Value = ()> + Default {
    const KEYS: &'static [&'static str];
    /// Keys of another system, accepted and reported.
    const FOREIGN: &'static [&'static str];
    const NAME: &'static str;

    /// Reads one of [`Section::KEYS`].
    fn read_key(&mut self, key: &str, node: &Node, cx: &mut Reader<'_>);
    fn properties(definitions: &mut Map<String, Value>) -> Map<String, Value>;
    fn template_keys(out: &mut Template);

    fn read_table(&mut self, node: &Node, cx: &mut Reader<'_>) {
        let Some(entries) = node.table() else {
            return cx.wrong(node, "a table");
        };
        cx.keys(&entries, Self::KEYS, Self::FOREIGN, |key, value, cx| {
            self.read_key(key, value, cx);
            true
        });
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

/// The same for a section within a section.
pub(crate) fn field_schema<S: Section>(
    row: &Row<()>,
    definitions: &mut Map<String, Value>,
) -> Value {
    let mut reference = section_schema::<S>(definitions);
    if !row.doc.is_empty() {
        reference["description"] = json!(row.doc);
    }
    reference
}

pub(crate) fn object_schema<S: Section>(mut properties: Map<String, Value>) -> Value {
    for key in S::FOREIGN {
        properties
            .insert((*key).into(), json!({ "description": "accepted, and without effect here" }));
    }
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

/// Declares a section: a struct whose fields are keys.
///
/// `field: Type = "key", built_in VALUE, such_as "EXAMPLE", bound ORDER;` where all after the key may be absent. The
/// field's documentation becomes the description in the schema and in the template. With `limit ORDER` instead of `bound`, the
/// strictest value along a chain of agents holds, and a function of the field's name returns it, or what is built in.
macro_rules! section {
    (@or_none) => { None };
    (@or_none $value:expr) => { Some($value) };
    (@value [$($doc:literal)*] $field:ident: $type:ty, [$($built_in:expr)?]) => {};
    (@value [$($doc:literal)*] $field:ident: $type:ty, [], $limit:expr) => {
        $(#[doc = $doc])*
        pub fn $field(&self) -> Option<<$type as $crate::field::Limit>::Plain> {
            $crate::field::Limit::plain(&self.$field)
        }
    };
    (@value [$($doc:literal)*] $field:ident: $type:ty, [$built_in:expr], $limit:expr) => {
        $(#[doc = $doc])*
        pub fn $field(&self) -> <$type as $crate::field::Limit>::Plain {
            $crate::field::Limit::plain(&self.$field)
                .unwrap_or_else(|| $crate::field::Plain::plain($built_in))
        }
    };
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident, foreign $foreign:expr => {
            $(
                $(#[doc = $doc:literal])*
                $field_vis:vis $field:ident: $type:ty = $key:literal
                    $(, built_in $built_in:expr)? $(, such_as $such_as:literal)?
                    $(, bound $bound:expr)? $(, limit $limit:expr)?;
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq)]
        $vis struct $name {
            $( $(#[doc = $doc])* $field_vis $field: $type, )*
        }

        impl $name {
            $( $crate::section::section!(
                @value [$($doc)*] $field: $type, [$($built_in)?] $(, $limit)?
            ); )*
        }

        // In a scope of its own, so that what is generated for a field cannot meet a method of the type.
        const _: () = {
            use serde_json::{Map, Value};
            use $crate::field::{Difference, Field, Listing, Row, Took};
            use $crate::node::Node;
            use $crate::problem::Problem;
            use $crate::reader::Reader;
            use $crate::section::{Section, field_schema};
            use $crate::template::Template;

            struct Rows;

            impl Rows {
                $(
                    fn $field() -> Row<<$type as Field>::Value> {
                        Row {
                            key: $key,
                            doc: concat!($($doc),*).trim_ascii(),
                            built_in: $crate::section::section!(@or_none $($built_in)?),
                            such_as: $crate::section::section!(@or_none $($such_as)?),
                            bound: $crate::section::section!(@or_none $($bound)? $($limit)?),
                            is_limit: !concat!($(stringify!($limit))?).is_empty(),
                        }
                    }
                )*
            }

            impl Section for $name {
                const KEYS: &'static [&'static str] = &[$($key),*];
                const FOREIGN: &'static [&'static str] = $foreign;
                const NAME: &'static str = stringify!($name);

                fn read_key(&mut self, key: &str, node: &Node, cx: &mut Reader<'_>) {
                    match key {
                        $( $key => Field::read(&mut self.$field, &Rows::$field(), node, cx), )*
                        _ => unreachable!("only the declared keys are read"),
                    }
                }

                fn properties(definitions: &mut Map<String, Value>) -> Map<String, Value> {
                    let mut properties = Map::new();
                    $(
                        let schema = <$type as Field>::schema(&Rows::$field(), definitions);
                        properties.insert($key.into(), schema);
                    )*
                    properties
                }

                fn template_keys(out: &mut Template) {
                    $( <$type as Field>::template(&Rows::$field(), out); )*
                }
            }

            impl Field for $name {
                type Value = ();

                fn read(&mut self, _row: &Row<()>, node: &Node, cx: &mut Reader<'_>) {
                    self.read_table(node, cx);
                }

                fn overlay(&mut self, over: &Self) {
                    $( Field::overlay(&mut self.$field, &over.$field); )*
                }

                fn list(&self, row: &Row<()>, path: &str, out: &mut Listing) {
                    let path = row.path(path);
                    $( Field::list(&self.$field, &Rows::$field(), &path, out); )*
                }

                fn schema(row: &Row<()>, definitions: &mut Map<String, Value>) -> Value {
                    field_schema::<Self>(row, definitions)
                }

                fn template(row: &Row<()>, out: &mut Template) {
                    out.table(row.key, row.doc, Self::template_keys);
                }

                fn check(&self, ceiling: &Self, row: &Row<()>, path: &str, out: &mut Vec<Problem>) {
                    let path = row.path(path);
                    $( Field::check(&self.$field, &ceiling.$field, &Rows::$field(), &path, out); )*
                }

                fn fill(&mut self, ceiling: &Self, _row: &Row<()>) {
                    $( Field::fill(&mut self.$field, &ceiling.$field, &Rows::$field()); )*
                }

                fn check_boundable(&self, row: &Row<()>, path: &str, out: &mut Vec<Problem>) {
                    let path = row.path(path);
                    $( Field::check_boundable(&self.$field, &Rows::$field(), &path, out); )*
                }

                fn narrow(&mut self, below: &Self, row: &Row<()>, path: &str, took: Took<'_>) {
                    let path = row.path(path);
                    $( Field::narrow(&mut self.$field, &below.$field, &Rows::$field(), &path, took); )*
                }

                fn differ(&self, now: &Self, row: &Row<()>, path: &str, out: &mut Vec<Difference>) {
                    let path = row.path(path);
                    $( Field::differ(&self.$field, &now.$field, &Rows::$field(), &path, out); )*
                }

                fn limits(row: &Row<()>, path: &str, out: &mut Vec<String>) {
                    let path = row.path(path);
                    $( <$type as Field>::limits(&Rows::$field(), &path, out); )*
                }

                fn trusted_words<'a>(&'a self, out: &mut Vec<&'a str>) {
                    $( Field::trusted_words(&self.$field, out); )*
                }
            }
        };
    };
}
pub(crate) use section;
