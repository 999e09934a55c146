//! Paths in records and documents. A path is any bytes but NUL, and JSON has text alone.
//!
//! A path that is UTF-8 is a string. Any other one is an object with its bytes in Base64: `{"base64": "L2RhdGEv/w=="}`.
//!
//! ```
//! use std::path::PathBuf;
//!
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct Document {
//!     #[serde(with = "offshoot_model::path_text")]
//!     folder: PathBuf,
//! }
//!
//! let document: Document = serde_json::from_str(r#"{"folder": "/data"}"#)?;
//! assert_eq!(document.folder, PathBuf::from("/data"));
//! # Ok::<(), serde_json::Error>(())
//! ```

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use data_encoding::BASE64;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A path as it stands in JSON. Also an optional path, and a list of paths: a field of any of these types says
/// `#[serde(with = "offshoot_model::path_text")]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathText<P = PathBuf>(pub P);

/// A type of field that holds paths.
pub trait PathField: Sized {
    /// Writes the field.
    ///
    /// # Errors
    ///
    /// Fails as the serializer does.
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error>;

    /// Reads the field.
    ///
    /// # Errors
    ///
    /// Fails where the text holds no path.
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;
}

/// The key of the object that stands for a path that is not UTF-8.
const BYTES: &str = "base64";

/// Writes paths: for `serde`'s `with`.
///
/// # Errors
///
/// Fails as the serializer does.
pub fn serialize<P: PathField, S: Serializer>(paths: &P, to: S) -> Result<S::Ok, S::Error> {
    paths.write(to)
}

/// Reads paths: for `serde`'s `with`.
///
/// # Errors
///
/// Fails if there is no path.
pub fn deserialize<'de, P: PathField, D: Deserializer<'de>>(from: D) -> Result<P, D::Error> {
    P::read(from)
}

impl<P: PathField> Serialize for PathText<P> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.write(serializer)
    }
}

impl<'de, P: PathField> Deserialize<'de> for PathText<P> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        P::read(deserializer).map(Self)
    }
}

impl PathField for PathBuf {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write(self, serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Either)
    }
}

impl PathField for Arc<PathBuf> {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write(self, serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        PathBuf::read(deserializer).map(Self::new)
    }
}

impl<P: PathField + Clone> PathField for Option<P> {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.clone().map(PathText).serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(|path| path.map(|PathText(path)| path))
    }
}

impl<P: PathField + Clone> PathField for Vec<P> {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().cloned().map(PathText))
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let paths = Vec::deserialize(deserializer)?.into_iter();
        Ok(paths.map(|PathText(path)| path).collect())
    }
}

fn write<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    if let Some(text) = path.to_str() {
        return serializer.serialize_str(text);
    }
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry(BYTES, &BASE64.encode(path.as_os_str().as_bytes()))?;
    map.end()
}

/// Text, or an object with bytes.
struct Either;

impl<'de> Visitor<'de> for Either {
    type Value = PathBuf;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a path, which is a string or {{\"{BYTES}\": …}}")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<PathBuf, E> {
        Ok(text.into())
    }

    fn visit_string<E: Error>(self, text: String) -> Result<PathBuf, E> {
        Ok(text.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PathBuf, A::Error> {
        let mut path = None;
        while let Some(key) = map.next_key::<Cow<'_, str>>()? {
            if key != BYTES {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let text: Cow<'_, str> = map.next_value()?;
            let bytes = BASE64
                .decode(text.as_bytes())
                .map_err(|error| A::Error::custom(format_args!("a path is not Base64: {error}")))?;
            path = Some(OsString::from_vec(bytes).into());
        }
        path.ok_or_else(|| A::Error::missing_field(BYTES))
    }
}

impl JsonSchema for PathText {
    fn schema_name() -> Cow<'static, str> {
        "Path".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                {"type": "string"},
                {
                    "type": "object",
                    "description": "A path that is not UTF-8, by its bytes in Base64.",
                    "properties": {BYTES: {"type": "string"}},
                    "required": [BYTES]
                }
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_crosses_whole() {
        let check = |bytes: &[u8], json: &str| {
            let path = PathBuf::from(OsString::from_vec(bytes.to_vec()));
            let fields = PathText(vec![Some(Arc::new(path))]);
            let written = serde_json::to_string(&fields).expect("a path is written");
            assert_eq!(written, format!("[{json}]"));
            assert_eq!(serde_json::from_str::<PathText<_>>(&written).expect("a path"), fields);
        };
        check(b"/a b/\xc3\xa4", r#""/a b/ä""#);
        check(b"", r#""""#);
        check(b"/\xff", r#"{"base64":"L/8="}"#);
        check(b"\xed\xa0\x80", r#"{"base64":"7aCA"}"#);
        let absent = PathText(None::<PathBuf>);
        assert_eq!(serde_json::to_string(&absent).expect("none"), "null");
        let later = r#"{"later": {"x": 1}, "base64": "\u004c/8="}"#;
        let PathText(later): PathText = serde_json::from_str(later).expect("more than is known");
        assert_eq!(later.as_os_str().as_bytes(), b"/\xff");
        for (json, expected) in [
            ("7", "a path, which is a string or {\"base64\": …}"),
            ("{}", "missing field `base64`"),
            (r#"{"base64":"/"}"#, "a path is not Base64"),
        ] {
            let error = serde_json::from_str::<PathText>(json).expect_err(json).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
