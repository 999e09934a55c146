//! Programs over results, good and bad.

use offshoot_plugin_merge_jq::MergeJq;
use offshoot_plugin_sdk::model::{JsonText, RunStatus, ValueKind};
use offshoot_plugin_sdk::{Merge, MergeFault, MergeInput, MergeValue, RunHost};
use offshoot_test_support::Listener;
use serde_json::{Value, json};

fn input(key: &str, value: MergeValue) -> MergeInput {
    MergeInput { key: key.into(), status: RunStatus::Completed, value }
}

fn text(key: &str, text: &str) -> MergeInput {
    input(key, MergeValue::Text(text.into()))
}

fn json_value(key: &str, json: &str) -> MergeInput {
    input(key, MergeValue::Json(JsonText::parse(json.to_owned()).expect("JSON")))
}

async fn merge(params: &Value, results: Vec<(u32, MergeInput)>) -> Result<String, MergeFault> {
    let params = JsonText::of(params).expect("plain data does not serialise");
    let mut job = MergeJq.begin(&params, RunHost::new(Listener::default()))?;
    for (index, result) in results {
        assert_eq!(job.push(index, result)?, None);
    }
    job.finish().await.map(|answer| answer.as_str().to_owned())
}

/// A program that is given nothing to merge.
async fn run(program: &str) -> Result<String, String> {
    let params = json!({"program": program, "seconds": 20});
    merge(&params, Vec::new()).await.map_err(|fault| fault.message)
}

#[tokio::test]
async fn results_keep_the_order_of_the_request() {
    let results = || vec![(2, text("c", "3")), (0, json_value("a", "[1]")), (1, text("b", "zwei"))];
    let whole = merge(&json!("."), results()).await.expect("an answer");
    assert_eq!(
        whole,
        r#"[{"key":"a","value":[1],"status":"completed"},{"key":"b","value":"zwei","status":"completed"},{"key":"c","value":"3","status":"completed"}]"#
    );
    let keys = merge(&json!("map(.key) | join(\"-\")"), results()).await;
    assert_eq!(keys.as_deref(), Ok("\"a-b-c\""));
    let twice = vec![(0, text("a", "first")), (0, text("a", "again"))];
    assert_eq!(merge(&json!("map(.value)"), twice).await.as_deref(), Ok("[\"first\"]"));
    assert_eq!(merge(&json!("length"), Vec::new()).await.as_deref(), Ok("0"));
}

#[tokio::test]
async fn one_that_failed_is_there_with_its_envelope() {
    let envelope = r#"{"status":"timed_out","error":{"code":"idle"}}"#;
    let failed = MergeInput { status: RunStatus::TimedOut, ..json_value("b", envelope) };
    let results = vec![(0, text("a", "x")), (1, failed)];
    let program = json!("map(select(.status != \"completed\") | {key, why: .value.error.code})");
    assert_eq!(merge(&program, results).await.as_deref(), Ok(r#"[{"key":"b","why":"idle"}]"#));
}

#[tokio::test]
async fn values_stay_what_they_are() {
    let big = "[123456789012345678901234567890, 0.1, -0, \"\\u0000ä\\ud83d\\ude00\"]";
    let found = merge(&json!(".[0].value"), vec![(0, json_value("a", big))]).await;
    assert_eq!(found.as_deref(), Ok("[123456789012345678901234567890,0.1,0,\"\\u0000ä😀\"]"));
    let sum = merge(&json!("map(.value[0]) | add + 1"), vec![(0, json_value("a", big))]).await;
    assert_eq!(sum.as_deref(), Ok("123456789012345678901234567891"));
}

#[tokio::test]
async fn large_ones_come_as_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, bytes: &[u8], kind| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("a file");
        input(name, MergeValue::File { path, kind, size: bytes.len() as u64 })
    };
    let results = vec![
        (0, file("text", b"1\n2", ValueKind::Text)),
        (1, file("json", b"{\"n\": 1}", ValueKind::Result)),
    ];
    let found = merge(&json!("map(.value)"), results).await;
    assert_eq!(found.as_deref(), Ok(r#"["1\n2",{"n":1}]"#));
    let bytes = vec![(0, file("bytes", &[0xff], ValueKind::Bytes))];
    let message = merge(&json!("length"), bytes).await.expect_err("no text").message;
    assert_eq!(message, "the result of `bytes` is no text");
}

#[tokio::test]
async fn the_language_is_whole() {
    for (program, expected) in [
        ("[1, 2, 3] | map(. * 2) | add", "12"),
        ("[range(5)] | .[1:3]", "[1,2]"),
        ("{a: {b: 1}} | .a.b += 2 | .a", r#"{"b":3}"#),
        ("{a: [1, 2]} | [paths]", r#"[["a"],["a",0],["a",1]]"#),
        ("[[1, {a: 2}]] | [.. | numbers]", "[1,2]"),
        ("{a: 1, b: 2} | with_entries(.value += 1) | to_entries | map(.value)", "[2,3]"),
        ("[3, 1, 2] | sort | reverse | map(tostring) | join(\",\")", "\"3,2,1\""),
        ("reduce range(10) as $n (0; . + $n)", "45"),
        ("[foreach (1, 2, 3) as $n (0; . + $n; [$n, .])]", "[[1,1],[2,3],[3,6]]"),
        ("[1, [2, {x: 3}]] as [$a, [$b, {x: $c}]] | $a + $b + $c", "6"),
        ("\"a\\(1 + 1)b\"", "\"a2b\""),
        ("@base64 \"\\(\"hi\")\"", "\"aGk=\""),
        ("try error(\"x\") catch .", "\"x\""),
        ("[.[]?, (1 | .a?)]", "[]"),
        ("label $out | 1, break $out, 2", "1"),
        ("first(range(10; 0; -3))", "10"),
        ("[limit(3; repeat(7))]", "[7,7,7]"),
        ("def fac: if . <= 1 then 1 else . * (. - 1 | fac) end; 20 | fac", "2432902008176640000"),
        ("def f(g): [g]; f(1, 2)", "[1,2]"),
        ("def f($a; $b): $a + $b; f(1; 2)", "3"),
        ("\"2015-03-05T23:51:47Z\" | fromdateiso8601", "1425599507"),
        ("\"a1b22\" | [match(\"[0-9]+\"; \"g\").string]", r#"["1","22"]"#),
        ("[{k: 1, v: 2}, {k: 1, v: 3}] | group_by(.k) | map(map(.v) | add)", "[5]"),
        ("[1, null, 2] | map(. // 0)", "[1,0,2]"),
        ("{a: {b: 1}} | .a.b |= 5 | del(.a.b) | .a", "{}"),
        ("[1, [2]] | walk(if type == \"number\" then . + 1 else . end) | tojson", "\"[2,[3]]\""),
        ("[splits(\"x\")?]", "[]"),
        ("-(1 - 3)", "2"),
        ("[true, false | not]", "[false,true]"),
        ("[1,2] | any(. > 1), all(. > 1) | [.] | select(.[0])", "[true]"),
    ] {
        assert_eq!(run(program).await.as_deref(), Ok(expected), "{program}");
    }
}

/// Last calls take no stack, and many steps take no more than time.
#[tokio::test]
async fn long_ways_are_no_deep_ones() {
    for (program, expected) in [
        ("def f: if . > 100000 then . else . + 1 | f end; 0 | f", "100001"),
        ("0 | until(. > 100000; . + 1)", "100001"),
        ("last(range(100000))", "99999"),
        ("[limit(100000; repeat(1))] | add", "100000"),
        ("last(0 | recurse(if . < 100000 then . + 1 else empty end))", "100000"),
        ("def f(g): if . > 2000 then . else g | f(g) end; 0 | f(. + 1)", "2001"),
    ] {
        assert_eq!(run(program).await.as_deref(), Ok(expected), "{program}");
    }
}

#[tokio::test]
async fn what_is_wrong_is_said_with_its_place() {
    for (program, expected) in [
        ("", "line 1, column 1: expected term, found the end"),
        (".[] | ", "line 1, column 7: expected term, found the end"),
        ("map(.value", "line 1, column 11: expected closing parenthesis, found the end"),
        ("map(\n  .value |\n  sum)", "line 3, column 3: there is no filter `sum` with 0 arguments"),
        ("\"ä\" | $x", "line 1, column 7: there is no variable `$x`"),
        (". as $x | if 1 then 2", "line 1, column 22: expected else or end, found the end"),
        (". | env", "line 1, column 5: there is no filter `env` with 0 arguments"),
        ("now", "line 1, column 1: there is no filter `now` with 0 arguments"),
        ("1 | halt", "line 1, column 5: there is no filter `halt` with 0 arguments"),
        ("input", "line 1, column 1: there is no filter `input` with 0 arguments"),
        ("a::b", "line 1, column 1: there is no module `a`"),
        ("add ]", "line 1, column 5: expected token, found `]`"),
        ("import \"x\" as x; .", "line 1, column 8: expected the end, found `\"x\"`"),
    ] {
        let found = run(program).await.expect_err(program);
        assert_eq!(found, format!("the jq program is wrong at {expected}"), "{program}");
    }
    let long = format!("\"{}\"", "x".repeat(20_000));
    assert_eq!(run(&long).await, Err("the jq program is longer than 16 KiB".to_owned()));
}

#[tokio::test]
async fn what_fails_is_said_in_its_own_words() {
    for (program, expected) in [
        ("error(\"no good\")", "the jq program failed: \"no good\""),
        (". + 1", "the jq program failed: cannot calculate [] + 1"),
        ("empty", "the jq program gave no value instead of one; put [ ] around it to get them all"),
        (
            "1, 2",
            "the jq program gave several values instead of one; put [ ] around it to get them all",
        ),
        ("nan", "the jq program gave a value that is no JSON: expected value at line 1 column 1"),
    ] {
        assert_eq!(run(program).await, Err(expected.to_owned()), "{program}");
    }
    let large = run("[range(1000)] | .a").await.expect_err("an array has no fields");
    assert!(large.chars().count() < 400, "{large}");
}

#[tokio::test]
async fn a_program_without_end_is_ended() {
    for program in [
        "def f: f; f",
        "def f: . | f; f",
        "def f: f, f; f",
        "last(range(infinite))",
        "reduce range(infinite) as $n (0; .)",
        "reduce repeat(1) as $n (0; .)",
        "[range(infinite) | {}[]]",
        "first(repeat(empty))",
        "first(range(infinite) | select(. < 0))",
        "isempty(repeat(empty))",
        "repeat(false) // 1 | empty",
        "until(false; .)",
        "last(while(true; .))",
        "last(recurse(.))",
        "try (def f: f; f) catch 1",
        "(def f: f; f)? // 1",
        "[path(repeat(.)) | empty]",
        "def f: (. |= .) | f; f",
        "label $out | foreach range(infinite) as $n (0; .; empty)",
        "\"\\(def f: f; f)\"",
        "{(def f: f; f): 1}",
        "if (def f: f; f) then 1 else 2 end",
        ".[def f: f; f]",
        "def f(g): f(g); f(1)",
        "limit(1; range(0; 1; 0))| def f: f; f",
        "range(0; 1; 0) | empty",
    ] {
        let params = json!({"program": program, "seconds": 0});
        let Err(fault) = merge(&params, Vec::new()).await else { panic!("{program} has ended") };
        if fault.message.contains("is wrong at") {
            panic!("{program}: {}", fault.message);
        }
        assert_eq!(fault.message, "the program did not end within 0 s", "{program}");
    }
}

#[tokio::test]
async fn calls_too_deep_are_an_error_and_no_crash() {
    for program in [
        "def f: 1 + f; f",
        "def f: [f]; f",
        "def f: f | f; f",
        "def f: {a: f}; f",
        "def f: if f then 1 else 2 end; f",
    ] {
        let found = run(program).await.expect_err(program);
        assert_eq!(found, "the program calls itself too deep", "{program}");
    }
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let fault = merge(&json!("length"), vec![(0, json_value("deep", &deep))]).await;
    let message = fault.expect_err("too deep").message;
    assert_eq!(message, "the result of `deep` is nested deeper than 1000 levels");
    for (open, close) in [("[", "]"), ("(", ")"), ("{a:", "}")] {
        let nested = open.repeat(4000) + "1" + &close.repeat(4000);
        assert!(run(&nested).await.is_ok() || nested.len() > 16 * 1024, "{open}");
    }
    assert!(run(&("try ".repeat(4000) + "1")).await.is_ok());
}

#[tokio::test]
async fn each_keeps_what_is_made_of_a_result_and_the_order() {
    let results = || vec![(2, text("c", "3")), (0, json_value("a", "[1,2]")), (1, text("b", "4"))];
    for (params, expected) in [
        (json!({"each": ".value"}), r#"[[1,2],"4","3"]"#),
        (json!({"each": ".value | strings | tonumber"}), "[4,3]"),
        (json!({"each": ".value | .[]? // tonumber", "program": "add"}), "10"),
        (json!({"each": "empty", "program": "length"}), "0"),
        (json!({"each": "{(.key): 1}", "program": "add | keys | join(\"\")"}), r#""abc""#),
        (
            json!({"each": "123456789012345678901234567890, \"\\u0000ä😀\"", "program": ".[:2]"}),
            "[123456789012345678901234567890,\"\\u0000ä😀\"]",
        ),
    ] {
        let found = merge(&params, results()).await.map_err(|fault| fault.message);
        assert_eq!(found.as_deref(), Ok(expected), "{params}");
    }
}

#[tokio::test]
async fn what_is_kept_is_bounded() {
    let large = || "x".repeat(1000);
    let results = |count: u32| (0..count).map(|place| (place, text("k", &large()))).collect();
    let too_many = |instead: &str| {
        Err(format!(
            "the results are larger than 2000 bytes together; {instead}, or raise `maxBytes`"
        ))
    };
    let merged = async |params: Value, count| {
        merge(&params, results(count)).await.map_err(|fault| fault.message)
    };
    let whole = json!({"program": "map(.value | length) | add", "maxBytes": 2000});
    assert_eq!(merged(whole.clone(), 2).await, Ok("2000".to_owned()));
    assert_eq!(merged(whole, 30).await, too_many("keep less of each with `each`"));
    let each = json!({"each": ".value | length", "program": "add", "maxBytes": 2000});
    assert_eq!(merged(each, 400).await, Ok("400000".to_owned()));
    let all = json!({"each": ".value, .value", "maxBytes": 2000});
    assert_eq!(merged(all, 30).await, too_many("make less of each"));
    let none = json!({"each": "repeat(1)", "maxBytes": 2000});
    assert_eq!(merged(none, 1).await, too_many("make less of each"));
    let file = json!({"each": ".key", "maxBytes": 999});
    assert_eq!(
        merged(file, 1).await.map_err(|told| told.contains("larger than 999 bytes")),
        Err(true)
    );
}

#[tokio::test]
async fn what_is_wrong_with_each_is_said() {
    let check = async |each: &str, expected: &str| {
        let params = json!({"each": each, "seconds": 1});
        let fault = merge(&params, vec![(0, text("one", "x"))]).await.expect_err(each);
        assert_eq!(fault.message, expected, "{each}");
    };
    check(
        ".value |",
        "`each`: the jq program is wrong at line 1, column 9: expected term, found the end",
    )
    .await;
    check("error(\"no\")", "the result of `one`: `each`: the jq program failed: \"no\"").await;
    check("def f: f; f", "the result of `one`: `each`: the program did not end within 1 s").await;
}
