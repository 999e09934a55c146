//! A value that a tool takes as JSON.

use offshoot_model::JsonText;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A value that is given as a text of JSON, because a schema names one type; or as the JSON itself. A text that is no JSON is
/// a JSON string.
#[derive(Debug)]
pub(super) struct JsonArgument(pub(super) JsonText);

impl<'de> Deserialize<'de> for JsonArgument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = Box::<RawValue>::deserialize(deserializer)?;
        let text = serde_json::from_str::<String>(given.get());
        let json = text.ok().and_then(|text| JsonText::parse(text).ok());
        let as_given = || JsonText::parse(given.get().to_owned()).expect("it was read as JSON");
        Ok(Self(json.unwrap_or_else(as_given)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_json_is_the_json() {
        #[track_caller]
        fn check(given: &str, expected: &str) {
            let value = serde_json::from_str(given).expect("JSON");
            let JsonArgument(found) = serde_json::from_value(value).expect("any JSON will do");
            assert_eq!(found.as_str(), expected);
        }
        check(r#""{\"a\": [1]}""#, r#"{"a": [1]}"#);
        check(r#"{"a":[1]}"#, r#"{"a":[1]}"#);
        check(r#""7""#, "7");
        check("7", "7");
        check(r#""yes""#, r#""yes""#);
        check("null", "null");
    }
}
