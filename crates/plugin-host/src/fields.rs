//! The fields of a line of a plugin for the log, as `name=value` pairs.

use std::fmt;

use serde_json::{Map, Value};

/// The fields, as they stand in a line of the log. Text is quoted and escaped, so that a plugin can write no line of another.
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    /// Reads them; none where there are none. What is no object of JSON is the field `text`.
    pub(crate) fn read(json: &str) -> Option<Self> {
        match serde_json::from_str(json) {
            Ok(Value::Object(fields)) => Some(fields),
            _ if json.is_empty() => None,
            _ => Some(Map::from_iter([("text".to_owned(), json.into())])),
        }
        .filter(|fields| !fields.is_empty())
        .map(Self)
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (place, (name, value)) in self.0.iter().enumerate() {
            let space = if place == 0 { "" } else { " " };
            let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
            match !name.is_empty() && name.chars().all(plain) {
                true => write!(f, "{space}{name}=")?,
                false => write!(f, "{space}{name:?}=")?,
            }
            match value {
                Value::Null | Value::Bool(_) | Value::Number(_) => write!(f, "{value}")?,
                Value::String(text) => write!(f, "{text:?}")?,
                Value::Array(_) | Value::Object(_) => write!(f, "{:?}", value.to_string())?,
            }
        }
        f.write_str("}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_pairs_on_one_line() {
        let check = |json: &str, expected: Option<&str>| {
            let read = Fields::read(json).map(|fields| fields.to_string());
            assert_eq!(read.as_deref(), expected, "{json}");
        };
        check("", None);
        check("{}", None);
        check(r#"{"count":3}"#, Some("{count=3}"));
        check(r#"{"a":true,"b":null,"c":-1.5}"#, Some("{a=true b=null c=-1.5}"));
        check(r#"{"name":"x y"}"#, Some(r#"{name="x y"}"#));
        check(r#"{"list":[1,"a"]}"#, Some(r#"{list="[1,\"a\"]"}"#));
        check("[1]", Some(r#"{text="[1]"}"#));
        check("no JSON", Some(r#"{text="no JSON"}"#));
        // No line of its own, and no field that looks like another's.
        check(r#"{"text":"a\nWARN b"}"#, Some(r#"{text="a\nWARN b"}"#));
        check(r#"{"a\nb=1 c":2}"#, Some(r#"{"a\nb=1 c"=2}"#));
        check(r#"{"":"\u001b[31m"}"#, Some(r#"{""="\u{1b}[31m"}"#));
    }
}
