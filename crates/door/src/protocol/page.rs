//! `docs/protocol.md` says what the types say.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::*;

const PAGE: &str = include_str!("../../../../docs/protocol.md");

/// Reads a value and writes it again, and checks that nothing changed: no field of the page is unknown here, or is called
/// otherwise.
#[track_caller]
fn same<T: DeserializeOwned + Serialize>(text: &RawValue, line: &str) -> T {
    let read: T =
        serde_json::from_str(text.get()).unwrap_or_else(|error| panic!("{error}: {line}"));
    equal(text, &read, line);
    read
}

#[track_caller]
fn equal(text: &RawValue, read: &impl Serialize, line: &str) {
    let given: Value = serde_json::from_str(text.get()).expect("JSON");
    let written = serde_json::to_value(read).expect("JSON");
    assert_eq!(given, written, "{line}");
}

/// Words of the reader that say nothing to the author of a request.
const READER: [&str; 20] = [
    "struct", "enum", "tuple", "newtype", "variant", "sequence", "map", "unit", "elements", "u8",
    "u16", "u32", "u64", "usize", "i32", "i64", "f32", "f64", "nonzero", "invalid",
];

/// Each field of each request on the page, with something else in its place.
#[test]
fn what_is_wrong_in_a_request_is_said_in_words_of_json() {
    let wrong = [
        "null",
        "true",
        "-1",
        "1.5",
        "1e99",
        "99999999999999999999",
        "\"x\"",
        "[]",
        "[[]]",
        "[1]",
        "{}",
    ];
    let mut tried = 0;
    let mut check = |method: &str, params: &str| {
        let raw = RawValue::from_string(params.to_owned()).expect("JSON");
        if let Err(ParamsError::Invalid { message, .. }) = Request::parse(method, Some(&raw)) {
            let mut words = message.split(|it: char| !it.is_alphanumeric());
            assert!(words.all(|word| !READER.contains(&word)), "{method} {params}: {message}");
            tried += 1;
        }
    };
    for line in PAGE.lines().filter_map(|line| line.strip_prefix("→ ")) {
        let Ok(Incoming::Request { method, params: Some(params), .. }) =
            Incoming::parse(line.as_bytes())
        else {
            continue;
        };
        let given: serde_json::Map<String, Value> =
            serde_json::from_str(params.get()).expect("an object");
        for wrong in wrong {
            check(&method, wrong);
            for field in given.keys() {
                let mut params = given.clone();
                params.insert(field.clone(), serde_json::from_str(wrong).expect("JSON"));
                check(&method, &Value::Object(params).to_string());
            }
        }
    }
    assert!(tried > 500, "{tried} of them were wrong");
    for method in Request::METHODS {
        let raw = RawValue::from_string("[]".to_owned()).expect("JSON");
        match Request::parse(method, Some(&raw)) {
            Err(ParamsError::Invalid { message, .. }) => {
                assert_eq!(message, "found array, expected an object", "{method}");
            }
            other => panic!("{method}: {other:?}"),
        }
    }
}

#[test]
fn the_sessions_on_the_page_are_possible() {
    let mut open: BTreeMap<String, String> = BTreeMap::new();
    let mut asked = BTreeSet::new();
    let mut answered = BTreeSet::new();
    for line in PAGE.lines() {
        if let Some(text) = line.strip_prefix("→ ") {
            match Incoming::parse(text.as_bytes()).expect("a message") {
                Incoming::Request { id, method, params } => {
                    let params = params.expect("the page shows them");
                    if method == "hello" {
                        let _: Hello = same(&params, line);
                    } else {
                        let request = match Request::parse(&method, Some(&params)) {
                            Ok(request) => request,
                            Err(error) => panic!("{error:?}: {line}"),
                        };
                        equal(&params, &request.params(), line);
                    }
                    asked.insert(method.clone());
                    let earlier = open.insert(id.to_string(), method);
                    assert_eq!(earlier, None, "{line}");
                }
                Incoming::Notification { method, params } => {
                    assert_eq!(method, CANCEL_REQUEST);
                    let cancel: CancelRequest = same(&params.expect("the request has no id"), line);
                    assert!(open.contains_key(&cancel.id.to_string()), "{line}");
                }
                Incoming::Answer { .. } => panic!("a client answers nothing: {line}"),
            }
        } else if let Some(text) = line.strip_prefix("← ") {
            match Incoming::parse(text.as_bytes()).expect("a message") {
                Incoming::Answer { id, result } => {
                    let id = id.expect("the page shows it").to_string();
                    let method = open.remove(&id).unwrap_or_else(|| panic!("not asked: {line}"));
                    match result {
                        Ok(result) if method == "hello" => {
                            let _: Welcome = same(&result, line);
                        }
                        Ok(result) => {
                            let response = Response::parse(&method, &result)
                                .unwrap_or_else(|error| panic!("{error}: {line}"));
                            equal(&result, &response.result(), line);
                            answered.insert(method);
                        }
                        Err(error) => {
                            let code = ErrorCode::from_number(error.code);
                            assert!(!matches!(code, ErrorCode::Unknown(_)), "{line}");
                            if let Some(data) = error.data {
                                let refused: WireRefusal = same(&data, line);
                                assert_eq!(refused.message, error.message, "{line}");
                            }
                        }
                    }
                }
                Incoming::Notification { method, params } => {
                    assert_eq!(method, PROGRESS);
                    let progress: RequestProgress = same(&params.expect("one"), line);
                    assert!(open.contains_key(&progress.id.to_string()), "{line}");
                }
                Incoming::Request { .. } => panic!("a server asks nothing: {line}"),
            }
        }
    }
    assert_eq!(open, BTreeMap::new(), "every request on the page is answered");
    let methods: BTreeSet<String> = Request::METHODS.iter().copied().map(str::to_owned).collect();
    assert_eq!(answered, methods, "every method is shown, and no other");
    assert!(asked.contains("hello"));
}

#[test]
fn the_page_has_every_method_error_and_feature_and_no_other() {
    let heads = |prefix: &'static str, suffix: &'static str| -> Vec<&'static str> {
        let cut = move |line: &'static str| line.strip_prefix(prefix)?.split_once(suffix);
        PAGE.lines().filter_map(cut).map(|(name, _)| name).collect()
    };
    assert_eq!(heads("### `", "`"), Request::METHODS);
    let numbers: Vec<String> = ErrorCode::all().map(|(number, _)| number.to_string()).collect();
    assert_eq!(heads("| -", " "), numbers.iter().map(|number| &number[1..]).collect::<Vec<_>>());
    for feature in FEATURES {
        assert!(PAGE.contains(&format!("\"{feature}\"")), "{feature}");
    }
    for variable in [crate::SOCKET_VARIABLE, crate::TICKET_VARIABLE, crate::TICKET_FILE_VARIABLE] {
        assert!(PAGE.contains(&format!("| `{variable}` |")), "{variable}");
    }
}
