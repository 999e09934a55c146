//! Fields: what stands behind one key, be it a value, values by depth, or a section of its own.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};

use offshoot_model::{Cleanup, MicroUsd, RetryOn};
use serde_json::{Map, Value, json};

use crate::ceiling::Bound;
use crate::node::Node;
use crate::origin::{Origin, Valued};
use crate::problem::{Place, Problem, ProblemKind};
use crate::reader::Reader;
use crate::section::Section;
use crate::setting::{
    Fraction, MaxChildren, MaxDepth, OnCap, OnInterrupt, OnParentEnd, OnRepeat, OnWall, PrimeCache,
    Setting, Share,
};
use crate::template::Template;

/// The facts of a key besides its type.
pub(crate) struct Row<T> {
    pub(crate) key: &'static str,
    /// For the schema and the template.
    pub(crate) doc: &'static str,
    pub(crate) built_in: Option<T>,
    /// Stands in the template where there is no built-in value and the type's own example says too little.
    pub(crate) such_as: Option<&'static str>,
    pub(crate) bound: Option<Bound<T>>,
    /// True if the strictest value along a chain of agents holds.
    pub(crate) is_limit: bool,
}

impl Row<()> {
    /// Stands for a section by itself, whose path is whole.
    pub(crate) const WHOLE: Self =
        Self { key: "", doc: "", built_in: None, such_as: None, bound: None, is_limit: false };
}

impl<T> Row<T> {
    /// Returns the dotted path of the key, in a section with this path.
    pub(crate) fn path(&self, section: &str) -> String {
        if self.key.is_empty() { section.to_owned() } else { join(section, self.key) }
    }

    /// True if its value is a time in seconds, which may be written as a text with a unit too. The name says so.
    fn is_in_seconds(&self) -> bool {
        self.key.ends_with("Seconds")
    }

    /// The order by which a ceiling bounds the key; none where no ceiling may name it.
    fn ceiling(&self) -> Option<&Bound<T>> {
        self.bound.as_ref().filter(|bound| bound.is_ceiling)
    }
}

/// A field of a section.
pub(crate) trait Field {
    /// The type of its value, for [`Row`].
    type Value;

    fn read(&mut self, row: &Row<Self::Value>, node: &Node, cx: &mut Reader<'_>);
    /// Replaces the values that the other one sets.
    fn overlay(&mut self, over: &Self);
    fn list(&self, row: &Row<Self::Value>, path: &str, out: &mut Listing);
    fn schema(row: &Row<Self::Value>, definitions: &mut Map<String, Value>) -> Value;
    fn template(row: &Row<Self::Value>, out: &mut Template);
    /// Collects the words in it by which files are named that are trusted with a project.
    fn trusted_words<'a>(&'a self, out: &mut Vec<&'a str>);
    /// Reports every value above the ceiling.
    fn check(
        &self,
        _ceiling: &Self,
        _row: &Row<Self::Value>,
        _path: &str,
        _out: &mut Vec<Problem>,
    ) {
    }
    /// Sets the ceiling's value where nothing is set and the built-in one exceeds the ceiling.
    fn fill(&mut self, _ceiling: &Self, _row: &Row<Self::Value>) {}
    /// Reports what is set although it has no more and less.
    fn check_boundable(&self, _row: &Row<Self::Value>, _path: &str, _out: &mut Vec<Problem>) {}
    /// Takes the value of `below` where this is a limit and that value is stricter, or this one is unset; calls `took` with the key then.
    fn narrow(&mut self, _below: &Self, _row: &Row<Self::Value>, _path: &str, _took: Took<'_>) {}
    /// Limits that differ from those of `now`.
    fn differ(
        &self,
        _now: &Self,
        _row: &Row<Self::Value>,
        _path: &str,
        _out: &mut Vec<Difference>,
    ) {
    }
    /// The keys of limits.
    fn limits(_row: &Row<Self::Value>, _path: &str, _out: &mut Vec<String>) {}
}

/// Told the key of each value that a fold took from further down.
pub(crate) type Took<'a> = &'a mut dyn FnMut(String);

/// A limit that was one thing and is another.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The key within `subagents`.
    pub key: String,
    /// The earlier value; none where nothing bounded it.
    pub was: Option<Value>,
    /// The value now.
    pub is: Option<Value>,
    /// True if the earlier value is the stricter.
    pub was_stricter: bool,
}

/// A limit as it is declared.
pub trait Limit {
    /// The value, as a plain number where it is one.
    type Plain;

    /// Returns the value that is set.
    fn plain(&self) -> Option<Self::Plain>;
}

/// Makes a value of a setting plain.
pub trait Plain: Copy {
    /// A plain number where it is one, else the value itself.
    type Plain;

    /// Converts it.
    fn plain(self) -> Self::Plain;
}

impl<T: Plain> Limit for Option<Valued<T>> {
    type Plain = T::Plain;

    fn plain(&self) -> Option<T::Plain> {
        self.as_ref().map(|set| set.value.plain())
    }
}

/// `type as plain type, by this conversion;`, or the types that are plain already.
macro_rules! plain {
    (by itself: $($type:ty),*) => {
        plain! { $($type as $type, |value| value;)* }
    };
    ($($type:ty as $plain:ty, $convert:expr;)*) => {
        $(
            impl Plain for $type {
                type Plain = $plain;

                fn plain(self) -> $plain {
                    let convert: fn(Self) -> $plain = $convert;
                    convert(self)
                }
            }
        )*
    };
}

plain! { by itself: bool, u32, u64, MicroUsd, Fraction, Share, RetryOn, Cleanup }
plain! { by itself: OnParentEnd, OnInterrupt, OnCap, OnRepeat, OnWall, PrimeCache }
plain! {
    NonZeroU32 as u32, Self::get;
    NonZeroU64 as u64, Self::get;
    MaxDepth as u32, |depth| depth.get().into();
    MaxChildren as u32, |children| children.get().into();
}

/// Keys with their values, collected for `config show` and `config resolve`.
pub(crate) struct Listing {
    pub(crate) values: Vec<(String, Valued<Value>)>,
    /// The part of the unset keys that is listed.
    pub(crate) unset: Unset,
}

impl Listing {
    /// Returns the keys of a section with this path.
    pub(crate) fn of(
        section: &impl Section,
        path: &str,
        unset: Unset,
    ) -> Vec<(String, Valued<Value>)> {
        let mut out = Self { values: Vec::new(), unset };
        section.list(&Row::WHOLE, path, &mut out);
        out.values
    }
}

/// The listing of keys that are not set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unset {
    Omitted,
    /// The built-in value, where there is one.
    BuiltIn,
    /// The built-in value, or null.
    All,
}

pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

impl<T: Setting> Field for Option<Valued<T>> {
    type Value = T;

    fn read(&mut self, row: &Row<T>, node: &Node, cx: &mut Reader<'_>) {
        let seconds = row.is_in_seconds().then(|| node.seconds());
        let read = match &seconds {
            Some(Some(seconds)) => T::read(seconds, cx),
            Some(None) if node.is_text() => {
                return cx.wrong(
                    node,
                    "a whole number of seconds, or a text such as \"90s\" or \"1h30m\"",
                );
            }
            _ => T::read(node, cx),
        };
        if let Some(value) = read {
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
        out.values.push((row.path(path), value));
    }

    fn schema(row: &Row<T>, _definitions: &mut Map<String, Value>) -> Value {
        let mut schema = T::schema();
        if row.is_in_seconds() {
            schema["type"] = json!([schema["type"], "string"]);
        }
        schema["description"] = json!(row.doc);
        if let Some(value) = &row.built_in {
            schema["default"] = value.to_json();
        }
        schema
    }

    fn template(row: &Row<T>, out: &mut Template) {
        match &row.built_in {
            Some(value) => out.setting(row.key, row.doc, &value.to_json(), true),
            None => {
                let example = row.such_as.map_or_else(T::example, Value::from);
                out.setting(row.key, row.doc, &example, false);
            }
        }
    }

    fn check(&self, ceiling: &Self, row: &Row<T>, path: &str, out: &mut Vec<Problem>) {
        let (Some(set), Some(ceiling), Some(bound)) = (self, ceiling, row.ceiling()) else {
            return;
        };
        if (bound.exceeds)(&set.value, &ceiling.value) {
            out.push(above(set, ceiling, row.path(path)));
        }
    }

    fn fill(&mut self, ceiling: &Self, row: &Row<T>) {
        let (Some(highest), Some(bound)) = (ceiling, row.ceiling()) else { return };
        // A value of a layer was checked before, so a value that is set and exceeds is that of another ceiling.
        let exceeds = match (self.as_ref().map(|set| &set.value), &row.built_in) {
            (Some(value), _) | (None, Some(value)) => (bound.exceeds)(value, &highest.value),
            (None, None) => bound.unset_is_unbounded,
        };
        if exceeds {
            self.clone_from(ceiling);
        }
    }

    fn check_boundable(&self, row: &Row<T>, path: &str, out: &mut Vec<Problem>) {
        if let (Some(set), None) = (self, row.ceiling()) {
            let place = Place { origin: set.origin.clone(), column: None };
            out.push(Problem { place, key: row.path(path), kind: ProblemKind::NotBoundable });
        }
    }

    fn narrow(&mut self, below: &Self, row: &Row<T>, path: &str, took: Took<'_>) {
        let (Some(set), Some(bound), true) = (below, &row.bound, row.is_limit) else { return };
        if self.as_ref().is_none_or(|above| (bound.exceeds)(&above.value, &set.value)) {
            *self = Some(set.clone());
            took(row.path(path));
        }
    }

    fn differ(&self, now: &Self, row: &Row<T>, path: &str, out: &mut Vec<Difference>) {
        let (Some(bound), true) = (&row.bound, row.is_limit) else { return };
        let value = |set: &Self| set.as_ref().map(|set| set.value.clone()).or(row.built_in.clone());
        let (was, is) = (value(self), value(now));
        let was_stricter = match (&was, &is) {
            (Some(was), Some(is)) => (bound.exceeds)(is, was),
            (was, _) => was.is_some(),
        };
        let [was, is] = [was, is].map(|value| value.map(|value| value.to_json()));
        if was != is {
            out.push(Difference { key: row.path(path), was, is, was_stricter });
        }
    }

    fn limits(row: &Row<T>, path: &str, out: &mut Vec<String>) {
        out.extend(row.is_limit.then(|| row.path(path)));
    }

    fn trusted_words<'a>(&'a self, out: &mut Vec<&'a str>) {
        out.extend(self.iter().flat_map(|set| set.value.trusted_words()));
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
            let path = format!("{}.{depth}", row.path(path));
            out.values.push((path, Valued::new(set.value.to_json(), set.origin.clone())));
        }
        if self.is_empty() && out.unset == Unset::All {
            out.values.push((row.path(path), Valued::new(json!({}), Origin::BuiltIn)));
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
        let Some(bound) = row.ceiling() else { return };
        for (depth, set) in self {
            if let Some(ceiling) = ceiling.get(depth)
                && (bound.exceeds)(&set.value, &ceiling.value)
            {
                out.push(above(set, ceiling, format!("{}.{depth}", row.path(path))));
            }
        }
    }

    fn fill(&mut self, ceiling: &Self, row: &Row<T>) {
        for (depth, highest) in ceiling {
            let mut at_depth = self.remove(depth);
            at_depth.fill(&Some(highest.clone()), row);
            self.extend(at_depth.map(|set| (*depth, set)));
        }
    }

    fn check_boundable(&self, row: &Row<T>, path: &str, out: &mut Vec<Problem>) {
        for set in self.values() {
            Some(set.clone()).check_boundable(row, path, out);
        }
    }

    fn trusted_words<'a>(&'a self, out: &mut Vec<&'a str>) {
        out.extend(self.values().flat_map(|set| set.value.trusted_words()));
    }
}

/// The problem of a value above a ceiling.
pub(crate) fn above(
    set: &Valued<impl Setting>,
    ceiling: &Valued<impl Setting>,
    key: String,
) -> Problem {
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
