use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

fn json(text: &str) -> JsonText {
    JsonText::parse(text.to_owned()).expect("JSON")
}

#[track_caller]
fn refused(schema: &str, expected: &str) {
    let error = check_schema(&json(schema)).expect_err(expected).to_string();
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn a_schema_that_is_none_is_named_with_the_path() {
    for schema in
        ["{}", "true", r#"{"type": "string"}"#, r##"{"$ref": "#/$defs/a", "$defs": {"a": {}}}"##]
    {
        check_schema(&json(schema)).expect("a schema");
    }
    refused("7", "a schema is an object, true or false");
    refused(r#"{"type": "nothing"}"#, "/type: ");
    refused(r#"{"properties": {"a": {"type": "nothing"}}}"#, "/properties/a/type: ");
    refused(r#"{"properties": {"a": 7}}"#, "/properties/a: a schema is an object, true or false");
    refused(r#"{"items": {"pattern": "("}}"#, "/items/pattern: ");
    refused(r#"{"pattern": "^(a|a)*(?=b)$"}"#, "/pattern: ");
}

#[test]
fn nothing_leads_out_of_the_document() {
    for to in ["https://a.example/x.json", "file:///etc/passwd", "other.json#/a", "#anchor"] {
        refused(
            &format!(r#"{{"items": {{"$ref": "{to}"}}}}"#),
            &format!("/items/$ref: \"{to}\" leads out"),
        );
    }
    refused(r##"{"$ref": "#/$defs/none"}"##, "/$ref: \"#/$defs/none\" leads to nothing");
    refused(r##"{"$dynamicRef": "#a"}"##, "`$dynamicRef` is not possible");
    refused(r#"{"items": {"$id": "https://a.example"}}"#, "/items: `$id`");
}

#[test]
fn what_leads_back_to_itself_goes_into_the_value_first() {
    refused(r##"{"$ref": "#"}"##, "it leads back to itself");
    refused(
        r##"{"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}}}"##,
        "/$defs/a: it leads back to itself",
    );
    let tree = json(
        r##"{"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}, "required": ["name"]}"##,
    );
    check_schema(&tree).expect("a tree is recursive");
    let whole = r#"{"name": "a", "children": [{"name": "b", "children": []}]}"#;
    check_answer(&tree, whole).expect("a tree");
    let wrong = r#"{"name": "a", "children": [{"name": "b", "children": [{}]}]}"#;
    let error = check_answer(&tree, wrong).expect_err("a name is missing");
    assert_eq!(error.path, "/children/0/children/0");
}

#[test]
fn huge_schemas_are_refused() {
    let large = format!(r#"{{"description": "{}"}}"#, "x".repeat(SCHEMA_BYTES));
    refused(&large, "it has 65555 bytes, and at most 65536 are possible");
    let many = format!(r#"{{"allOf": [{}]}}"#, vec!["{}"; 5000].join(","));
    refused(&many, "it has more than 4096 parts");
    // Each part leads twice into the next one.
    let mut doubling = String::from(r##"{"$ref": "#/$defs/a0", "$defs": {"##);
    for at in 0..1000 {
        let next = at + 1;
        let _ = write!(doubling, r##""a{at}":{{"$ref":"#/$defs/a{next}"}},"##);
    }
    doubling.push_str(r#""a1000": {}}}"#);
    let error = check_schema(&json(&doubling)).expect_err("it is too deep").to_string();
    assert!(error.contains("lead here"), "{error}");
    let deep = format!("{}{}", r#"{"not":"#.repeat(300), "{}".to_owned() + &"}".repeat(300));
    refused(&deep, "recursion limit exceeded");
}

#[test]
fn a_check_that_would_take_for_ever_is_not_begun() {
    let mut doubling = String::from(r##"{"$ref": "#/$defs/a0", "$defs": {"##);
    for at in 0..40 {
        let next = at + 1;
        let part = format!(r##"{{"$ref":"#/$defs/a{next}"}}"##);
        let _ = write!(doubling, r#""a{at}":{{"allOf":[{part}]}},"#);
    }
    doubling.push_str(r#""a40": {}}}"#);
    let error = check_schema(&json(&doubling)).expect_err("80 in a row").to_string();
    assert!(error.contains("without going into the value"), "{error}");
    // Two branches look into the same property, and each of them again.
    let twice = json(
        r##"{"anyOf": [{"properties": {"a": {"$ref": "#"}}, "required": ["x"]}, {"properties": {"a": {"$ref": "#"}}}]}"##,
    );
    check_schema(&twice).expect("it is short");
    let deep = format!("{}1{}", r#"{"a":"#.repeat(100), "}".repeat(100));
    let error = check_answer(&twice, &deep).expect_err("two to the power of a hundred");
    assert!(error.message.contains("too many steps"), "{error}");
    check_answer(&twice, r#"{"a": {"a": {"a": 1}}}"#).expect("it is not deep");
    let huge = format!("[{}1]", "1,".repeat(ANSWER_BYTES));
    let error = check_answer(&json("{}"), &huge).expect_err("it is too large");
    assert!(error.message.starts_with("the answer has"), "{error}");
}

#[test]
fn answers_are_json_or_a_string() {
    let commit = json(
        r#"{"type": "object", "properties": {"sha": {"type": "string"}}, "required": ["sha"]}"#,
    );
    let word = json(r#"{"type": "string", "pattern": "^[0-9a-f]{6}$"}"#);
    let is_json = |text: &str| Ok(Fit::Json(text.to_owned()));
    let table = [
        (&commit, "{\"sha\": \"abc\"}\n", is_json("{\"sha\": \"abc\"}")),
        (&commit, "```json\n{\"sha\": \"abc\"}\n```", is_json("{\"sha\": \"abc\"}")),
        (&commit, "{\"sha\": 1}", Err("/sha: 1 is not of type \"string\"")),
        (&commit, "{}", Err("\"sha\" is a required property")),
        (&commit, "abc", Err("the answer is not JSON: a value must stand here")),
        (&commit, "{\"sha\":", Err("the answer is not JSON: ")),
        (&commit, "", Err("the answer is not JSON: ")),
        (&word, "abc123\n", Ok(Fit::Text)),
        (&word, "123456", Ok(Fit::Text)),
        (&word, "\"abc123\"", is_json("\"abc123\"")),
        (&word, "nothing", Err("\"nothing\" does not match \"^[0-9a-f]{6}$\"")),
        (&word, "[1", Err("the answer is not JSON: ")),
    ];
    for (schema, answer, expected) in table {
        match (check_answer(schema, answer), expected) {
            (Err(found), Err(expected)) => {
                assert!(found.to_string().starts_with(expected), "{answer}: {found}");
            }
            (found, expected) => assert_eq!(found.ok(), expected.ok(), "{answer}"),
        }
    }
}

#[test]
fn a_message_is_short_whatever_the_value() {
    let long = format!("[{}1]", "1,".repeat(10_000));
    let error = check_answer(&json(r#"{"type": "string"}"#), &long).expect_err("an array");
    assert!(error.message.chars().count() <= 301, "{}", error.message.len());
}

proptest! {
    #[test]
    fn no_schema_and_no_answer_is_too_strange(schema in value(), answer in value()) {
        let (schema, answer) = (json(&schema.to_string()), answer.to_string());
        if check_schema(&schema).is_ok() {
            let _ = check_answer(&schema, &answer);
        }
    }
}

/// JSON with the words of schemas in it.
fn value() -> impl Strategy<Value = Value> {
    const WORDS: &[&str] = &[
        "type",
        "object",
        "items",
        "$ref",
        "#",
        "#/items",
        "not",
        "allOf",
        "properties",
        "$defs",
        "a",
    ];
    let word = prop::sample::select(WORDS);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i8>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((word.clone(), inner), 0..4).prop_map(|fields| {
                fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Value>()
            }),
        ]
    })
}
