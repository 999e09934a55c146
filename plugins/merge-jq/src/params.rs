//! The parameters of a merge: the text of a program, or an object with it and its bounds. Pure.

use std::sync::Arc;
use std::time::Duration;

use offshoot_plugin_sdk::{JsonText, MergeFault};
use serde::Deserialize;

/// The parameters of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Params {
    /// Runs over all results, or over what `each` made of them.
    pub(crate) program: Arc<str>,
    /// Runs over each result as it comes.
    pub(crate) each: Option<Arc<str>>,
    /// For each run of a program.
    pub(crate) limit: Duration,
    /// Of what is kept of results until the end.
    pub(crate) max_bytes: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Object {
    #[serde(default)]
    program: Option<String>,
    #[serde(default)]
    each: Option<String>,
    #[serde(default = "default_seconds")]
    seconds: u64,
    #[serde(default = "default_bytes")]
    max_bytes: u64,
}

impl Params {
    /// Of the JSON that stands behind the merge's name.
    pub(crate) fn read(params: &JsonText) -> Result<Self, MergeFault> {
        let text = params.as_str();
        let program = text.trim_start().starts_with('"').then(|| serde_json::from_str(text));
        let object = match program {
            Some(program) => program.map(|program| Object {
                program: Some(program),
                each: None,
                seconds: default_seconds(),
                max_bytes: default_bytes(),
            }),
            None => serde_json::from_str(text),
        };
        let wrong = |why: &str| {
            MergeFault::new(format!(
                "merge-jq takes a program, or an object with `program`, `each`, `seconds` and `maxBytes`: {why}"
            ))
        };
        let Object { program, each, seconds, max_bytes } =
            object.map_err(|error| wrong(&error.to_string()))?;
        let program = match (program, &each) {
            (Some(program), _) => program,
            (None, Some(_)) => ".".to_owned(),
            (None, None) => return Err(wrong("there is neither `program` nor `each`")),
        };
        let limit = Duration::from_secs(seconds);
        Ok(Self { program: program.into(), each: each.map(Into::into), limit, max_bytes })
    }
}

/// Long enough for a gigabyte, short enough for a user who waits.
fn default_seconds() -> u64 {
    300
}

/// A tree of values takes up to ten times its text, and a machine that merges has some gigabytes.
fn default_bytes() -> u64 {
    256 << 20
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters() {
        type Read<'a> = (&'a str, Option<&'a str>, u64, u64);
        #[track_caller]
        fn check(params: &str, expected: Result<Read<'_>, &str>) {
            let params = JsonText::parse(params.to_owned()).expect("JSON");
            let found = Params::read(&params);
            match expected {
                Ok((program, each, seconds, max_bytes)) => {
                    let (program, each) = (program.into(), each.map(Into::into));
                    let limit = Duration::from_secs(seconds);
                    assert_eq!(found, Ok(Params { program, each, limit, max_bytes }));
                }
                Err(part) => {
                    let message = found.expect_err("refused").message;
                    assert!(message.contains(part), "{message}");
                }
            }
        }
        const MOST: u64 = 268_435_456;
        check(r#"".""#, Ok((".", None, 300, MOST)));
        check(r#"{"program": "add", "seconds": 5}"#, Ok(("add", None, 5, MOST)));
        check(r#"{"each": ".value", "maxBytes": 7}"#, Ok((".", Some(".value"), 300, 7)));
        check(r#"{"each": ".n", "program": "add"}"#, Ok(("add", Some(".n"), 300, MOST)));
        check("null", Err("merge-jq takes a program"));
        check("{}", Err("there is neither `program` nor `each`"));
        check(r#"{"program": ".", "limit": 1}"#, Err("unknown field `limit`"));
    }
}
