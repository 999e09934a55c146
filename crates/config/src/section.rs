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

use crate::field::{Difference, Listing, Took};
use crate::node::Node;
use crate::problem::Problem;
use crate::reader::Reader;
use crate::template::Template;

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
    fn narrow_keys(&mut self, below: &Self, path: &str, took: Took<'_>);
    fn differ_keys(&self, now: &Self, path: &str, out: &mut Vec<Difference>);
    fn limit_keys(path: &str, out: &mut Vec<String>);
    fn trusted_word_keys<'a>(&'a self, out: &mut Vec<&'a str>);

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
            struct Rows;

            impl Rows {
                $(
                    fn $field() -> $crate::field::Row<<$type as $crate::field::Field>::Value> {
                        $crate::field::Row {
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
                        $( $key => $crate::field::Field::read(&mut self.$field, &Rows::$field(), node, cx), )*
                        _ => unreachable!("only the declared keys are read"),
                    }
                }

                fn overlay_keys(&mut self, over: &Self) {
                    $( $crate::field::Field::overlay(&mut self.$field, &over.$field); )*
                }

                fn list_keys(&self, path: &str, out: &mut $crate::field::Listing) {
                    $( $crate::field::Field::list(&self.$field, &Rows::$field(), path, out); )*
                }

                fn properties(
                    definitions: &mut serde_json::Map<String, serde_json::Value>,
                ) -> serde_json::Map<String, serde_json::Value> {
                    let mut properties = serde_json::Map::new();
                    $(
                        let schema = <$type as $crate::field::Field>::schema(&Rows::$field(), definitions);
                        properties.insert($key.into(), schema);
                    )*
                    properties
                }

                fn template_keys(out: &mut $crate::template::Template) {
                    $( <$type as $crate::field::Field>::template(&Rows::$field(), out); )*
                }

                fn check_keys(&self, ceiling: &Self, path: &str, out: &mut Vec<$crate::problem::Problem>) {
                    $(
                        $crate::field::Field::check(
                            &self.$field, &ceiling.$field, &Rows::$field(), path, out,
                        );
                    )*
                }

                fn fill_keys(&mut self, ceiling: &Self) {
                    $( $crate::field::Field::fill(&mut self.$field, &ceiling.$field, &Rows::$field()); )*
                }

                fn check_boundable_keys(&self, path: &str, out: &mut Vec<$crate::problem::Problem>) {
                    $( $crate::field::Field::check_boundable(&self.$field, &Rows::$field(), path, out); )*
                }

                fn narrow_keys(&mut self, below: &Self, path: &str, took: $crate::field::Took<'_>) {
                    $( $crate::field::Field::narrow(
                        &mut self.$field, &below.$field, &Rows::$field(), path, took,
                    ); )*
                }

                fn differ_keys(&self, now: &Self, path: &str, out: &mut Vec<$crate::field::Difference>) {
                    $( $crate::field::Field::differ(&self.$field, &now.$field, &Rows::$field(), path, out); )*
                }

                fn limit_keys(path: &str, out: &mut Vec<String>) {
                    $( <$type as $crate::field::Field>::limits(&Rows::$field(), path, out); )*
                }

                fn trusted_word_keys<'a>(&'a self, out: &mut Vec<&'a str>) {
                    $( $crate::field::Field::trusted_words(&self.$field, out); )*
                }
            }
        };
    };
}

pub(crate) use section;
