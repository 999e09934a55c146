use std::collections::HashMap;
use std::io;
use std::num::NonZeroU32;

use offshoot_model::{
    AgentId, ContentHash, Ending, Reason, RunId, RunStatus, ValueKind, VariableRef,
};

use super::*;
use crate::{AnswerKind, NothingStored, Values};

#[derive(Default)]
struct Map(HashMap<ContentHash, Vec<u8>>);

impl Map {
    fn store(&mut self, bytes: &[u8], kind: ValueKind) -> Payload {
        let hash = ContentHash::of(bytes);
        self.0.insert(hash, bytes.to_vec());
        Payload::Stored(VariableRef { hash, size: bytes.len() as u64, kind })
    }
}

impl Values for Map {
    fn open(&self, reference: &VariableRef) -> io::Result<Box<dyn io::BufRead + '_>> {
        Ok(Box::new(self.0[&reference.hash].as_slice()))
    }
}

fn json(text: &str) -> Payload {
    Payload::json(text.to_owned()).expect(text)
}

fn failed(reason: Reason) -> Box<Envelope> {
    let ending = Ending { output: Some(Payload::text("half")), ..Ending::of(reason) };
    let key = "agent:main:subagent:a".parse().expect("a key");
    Box::new(Envelope::of(&ending, key, RunId::from_bytes([7; 16]), AgentId::main(), 1))
}

fn fold(strategy: &str, values: &[Payload]) -> Fold {
    let mut fold = Fold::new(strategy.parse().expect(strategy), OnFailure::Fail);
    for (index, value) in values.iter().enumerate() {
        fold.push(index as u32, format!("k{index}").into(), Ok(value.clone()));
    }
    fold
}

fn text_of(answer: &Answer, values: &dyn Values) -> String {
    let mut out = Vec::new();
    answer.write_to(&mut out, values).expect("writing to memory failed");
    if let Some(length) = answer.len() {
        assert_eq!(length, out.len() as u64);
    }
    String::from_utf8(out).expect("text")
}

#[test]
fn every_strategy() {
    let check = |strategy: &str, values: &[Payload], expected: &str| {
        let fold = fold(strategy, values);
        let count = values.len() as u32;
        let answer = fold.finish(count).expect(strategy);
        assert_eq!(text_of(&answer, &NothingStored), expected, "{strategy} {values:?}");
        let kind = answer.kind();
        match answer.to_payload().expect("all at hand") {
            Payload::Text(text) => assert_eq!((kind, &*text), (AnswerKind::Text, expected)),
            Payload::Json(json) => {
                serde_json::from_str::<serde_json::Value>(json.as_str()).expect("valid JSON");
            }
            Payload::Stored(_) => panic!("nothing is stored"),
        }
    };
    let mixed = [
        Payload::text("a\nb"),
        json(r#" { "x" : [ 1.0 , "y z" ] } "#),
        json(r#""q\"\u00e4""#),
        json("null"),
    ];

    check("concatenate", &[], "");
    check("concatenate", &[Payload::text("")], "");
    check("concatenate", &[Payload::text(""), Payload::text("")], "\n---\n");
    check("concatenate", &mixed, "a\nb\n---\n{\"x\":[1.0,\"y z\"]}\n---\nq\"ä\n---\nnull");

    check("structured", &[], "{}");
    check(
        "structured",
        &mixed,
        r#"{"k0":"a\nb","k1":{"x":[1.0,"y z"]},"k2":"q\"\u00e4","k3":null}"#,
    );

    check("vote", &[], r#"{"winner":null,"votes":{}}"#);
    check(
        "vote",
        &[
            Payload::text("no"),
            json("1"),
            json(r#""yes""#),
            Payload::text("yes"),
            json("1.0"),
            json("[]"),
        ],
        concat!(
            r#"{"winner":1,"tie":true,"votes":{"\"no\"":{"count":1,"value":"no"},"1":{"count":2,"value":1},"#,
            r#""\"yes\"":{"count":2,"value":"yes"},"[]":{"count":1,"value":[]}}}"#
        ),
    );

    check("summarize", &[], "");
    check(
        "summarize",
        &mixed,
        "[Result 1 from k0]:\na\nb\n\n[Result 2 from k1]:\n{\n  \"x\": [\n    1.0,\n    \"y z\"\n  ]\n}\n\n\
         [Result 3 from k2]:\nq\"ä\n\n[Result 4 from k3]:\nnull",
    );

    check("sum", &[], "0");
    check("sum", &[Payload::text(" 12\n"), json("30"), json(r#""-0.5""#)], "41.5");
    check("sum", &[json("9007199254740993"), json("1e0")], "9007199254740994");

    check("first", &[], "null");
    check("first", &[Payload::text("x"), Payload::text("y")], "x");
    check("first", &[json(r#""x\t""#)], "x\t");
    check("first", &[json("{ \"a\" : 1 }")], "{\"a\":1}");

    check("quorum:2", &[], "null");
    check("quorum:1", &[json("[ 1 ]")], "[1]");
    check("quorum:2", &[json("1"), Payload::text("1"), json("1.0")], "1");
}

#[test]
fn stored_values_pass_through() {
    let mut map = Map::default();
    let long = "ä\"\n".repeat(100_000);
    let text = map.store(long.as_bytes(), ValueKind::Text);
    let bytes = map.store(b"a\xffb", ValueKind::Bytes);
    let object = map.store(b" { \"a\" : [ ] } ", ValueKind::Result);
    let string = map.store(br#" "s\ud83e\udd80" "#, ValueKind::Json);
    let values = [text.clone(), object.clone(), string.clone()];
    let quoted = serde_json::to_string(&long).expect("a string");

    let check = |strategy: &str, values: &[Payload], length: Option<usize>, expected: &str| {
        let answer = fold(strategy, values).finish(values.len() as u32).expect(strategy);
        assert_eq!(text_of(&answer, &map), expected, "{strategy}");
        assert_eq!(answer.len(), length.map(|length| length as u64), "{strategy}");
    };
    check("concatenate", &values, None, &format!("{long}\n---\n{{\"a\":[]}}\n---\ns🦀"));
    let twice = format!("{long}\n---\n{long}");
    check("concatenate", &[text.clone(), text.clone()], Some(twice.len()), &twice);
    check(
        "structured",
        &[text.clone(), object.clone(), string.clone()],
        None,
        &format!(r#"{{"k0":{quoted},"k1":{{"a":[]}},"k2":"s\ud83e\udd80"}}"#),
    );
    check(
        "vote",
        &[string.clone(), object.clone(), object.clone()],
        None,
        concat!(
            r#"{"winner":{"a":[]},"votes":{"\"s\\ud83e\\udd80\"":{"count":1,"value":"s\ud83e\udd80"},"#,
            r#""{\"a\":[]}":{"count":2,"value":{"a":[]}}}}"#
        ),
    );
    // What makes text of its results takes no others, and changes none.
    for strategy in ["structured", "vote", "summarize"] {
        let refused = fold(strategy, &[text.clone(), bytes.clone(), bytes.clone()]).check(3);
        let refused = refused.expect_err(strategy).to_string();
        assert_eq!(refused, format!("{strategy}: the result of `k1` is not UTF-8 text"));
    }
    // Base64 is what carries them where it is asked for.
    check(
        "structured:base64",
        &[object.clone(), bytes.clone()],
        None,
        r#"{"k0":{"a":[]},"k1":{"base64":"Yf9i"}}"#,
    );
    check(
        "summarize",
        &[object.clone(), string],
        None,
        "[Result 1 from k0]:\n{\n  \"a\": []\n}\n\n[Result 2 from k1]:\ns🦀",
    );
    check("first", std::slice::from_ref(&text), Some(long.len()), &long);
    check("quorum:2", &[text, object.clone(), object.clone()], None, "{\"a\":[]}");

    // Bytes pass byte for byte.
    let mut out = Vec::new();
    let answer = fold("concatenate", &[bytes.clone(), Payload::text("c")]).into_partial();
    answer.write_to(&mut out, &map).expect("writing to memory failed");
    assert_eq!(out, b"a\xffb\n---\nc");

    // One stored value is its own answer; two need a store.
    assert_eq!(
        fold("concatenate", std::slice::from_ref(&bytes)).into_partial().to_payload(),
        Some(bytes.clone())
    );
    assert_eq!(
        fold("first", std::slice::from_ref(&object)).into_partial().to_payload(),
        Some(object.clone())
    );
    assert_eq!(fold("concatenate", &[object]).into_partial().to_payload(), None);
    assert_eq!(fold("concatenate", &[bytes.clone(), bytes]).into_partial().to_payload(), None);
}

/// Puts large values into the output itself, as `[…]`.
struct Putting<'a> {
    map: &'a Map,
    out: std::cell::RefCell<Vec<u8>>,
}

impl Values for Putting<'_> {
    fn open(&self, reference: &VariableRef) -> io::Result<Box<dyn io::BufRead + '_>> {
        self.map.open(reference)
    }

    fn put_whole(&self, reference: &VariableRef) -> io::Result<bool> {
        let mut bytes = Vec::new();
        self.map.open(reference)?.read_to_end(&mut bytes)?;
        let is_large = bytes.len() > 3;
        if is_large {
            self.out.borrow_mut().extend([b"[", &*bytes, b"]"].concat());
        }
        Ok(is_large)
    }
}

impl io::Write for &Putting<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn values_are_put_whole_where_they_are_a_part_of_the_answer_as_they_are() {
    let mut map = Map::default();
    let large = map.store(b"large", ValueKind::Text);
    let small = map.store(b"s", ValueKind::Text);
    let json = map.store(b"{\"a\": 1}", ValueKind::Result);
    for (strategy, expected) in [
        ("concatenate", "[large]\n---\ns\n---\n{\"a\":1}\n---\n[large]"),
        ("first", "[large]"),
        ("structured", r#"{"k0":"large","k1":"s","k2":{"a":1},"k3":"large"}"#),
    ] {
        let values = [large.clone(), small.clone(), json.clone(), large.clone()];
        let answer = fold(strategy, &values).into_partial();
        let putting = Putting { map: &map, out: Vec::new().into() };
        answer.write_to(&mut &putting, &putting).expect("writing to memory failed");
        let out = String::from_utf8(putting.out.into_inner()).expect("text");
        assert_eq!(out, expected, "{strategy}");
    }
}

#[test]
fn a_value_that_lost_bytes_is_an_error() {
    let mut map = Map::default();
    let Payload::Stored(mut reference) = map.store(b"12345", ValueKind::Text) else {
        panic!("stored values are references")
    };
    reference.size = 6;
    let answer = fold("concatenate", &[Payload::Stored(reference)]).into_partial();
    let error = answer.write_to(&mut io::sink(), &map).expect_err("a byte is missing");
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    let error = answer.write_to(&mut io::sink(), &NothingStored).expect_err("no store");
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}

#[test]
fn what_did_not_complete() {
    let push_all = |strategy: &str, on_failure| {
        let mut fold = Fold::new(strategy.parse().expect(strategy), on_failure);
        fold.push(2, "c".into(), Err(failed(Reason::Signal { signal: 11 })));
        fold.push(0, "a".into(), Ok(Payload::text("1")));
        fold.push(1, "b".into(), Err(failed(Reason::ExitCode { code: 7 })));
        fold
    };
    let fold = push_all("concatenate", OnFailure::Fail);
    assert_eq!(text_of(fold.partial(), &NothingStored), "1");
    let error = fold.finish(3).expect_err("two failed");
    assert_eq!(error.to_string(), "2 of 3 pieces did not complete, first b: exited with code 7");
    assert!(error.hint().is_some_and(|hint| hint.contains("--on-failure skip")));

    let answer = push_all("summarize", OnFailure::Skip).finish(3).expect("skipped");
    assert_eq!(text_of(&answer, &NothingStored), "[Result 1 from a]:\n1");
    assert_eq!(answer.merged(), 1);
    let failures: Vec<String> = answer.failures().map(|failure| failure.to_string()).collect();
    assert_eq!(failures, ["b: exited with code 7", "c: killed by signal 11"]);
    assert!(answer.failures().all(|failure| failure.status == RunStatus::Failed));

    let answer = push_all("structured", OnFailure::Include).finish(3).expect("included");
    let value: serde_json::Value =
        serde_json::from_str(&text_of(&answer, &NothingStored)).expect("JSON");
    assert_eq!(value["a"], "1");
    assert_eq!(value["b"]["status"], "failed");
    assert_eq!(value["b"]["data"], "half");
    assert_eq!(value["c"]["error"]["code"], "signal");
    assert_eq!((answer.merged(), answer.failures().len()), (3, 2));

    let error = push_all("sum", OnFailure::Include).finish(3).expect_err("an envelope");
    assert!(error.to_string().starts_with("sum: the result of `b` is not a number"), "{error}");
    assert_eq!(
        text_of(&push_all("sum", OnFailure::Skip).finish(3).expect("1"), &NothingStored),
        "1"
    );

    // An envelope is neither a first result nor a vote.
    for strategy in ["first", "quorum:1"] {
        let mut fold = Fold::new(strategy.parse().expect(strategy), OnFailure::Include);
        assert_eq!(fold.push(0, "a".into(), Err(failed(Reason::Deadline))), Step::More);
        assert_eq!(fold.push(1, "b".into(), Ok(Payload::text("x"))), Step::Early);
        assert_eq!(fold.push(2, "c".into(), Err(failed(Reason::Deadline))), Step::Early);
        let answer = fold.finish(3).expect("the merge has no answer");
        assert_eq!(text_of(&answer, &NothingStored), "x");
        assert_eq!(answer.failures().len(), 1);
    }
    let none = || {
        let mut fold = Fold::new(Strategy::First, OnFailure::Fail);
        fold.push(0, "a".into(), Err(failed(Reason::Deadline)));
        fold
    };
    assert!(matches!(none().finish(1), Err(MergeError::PiecesFailed { total: 1, .. })));
}

#[test]
fn why_there_is_no_answer() {
    let check = |strategy: &str, values: &[Payload], expected: &str| {
        let error = fold(strategy, values).finish(values.len() as u32).expect_err(expected);
        assert_eq!(error.to_string(), expected);
    };
    check(
        "sum",
        &[json("1"), Payload::text("x y"), json("[]")],
        r#"sum: the result of `k1` is not a number: "x y""#,
    );
    check("sum", &[Payload::text("")], r#"sum: the result of `k0` is not a number: """#);
    check("sum", &[json("true")], r#"sum: the result of `k0` is not a number: "true""#);
    check("sum", &[json("1e999")], r#"sum: the result of `k0` is not a number: "1e999""#);
    let long = Payload::text("é".repeat(100));
    check(
        "sum",
        &[long],
        &format!("sum: the result of `k0` is not a number: \"{}…\"", "é".repeat(60)),
    );
    let stored = Map::default().store(b"12", ValueKind::Bytes);
    check("sum", &[stored], "sum: the result of `k0` is not a number: a bytes value of 2 bytes");
    check(
        "quorum:3",
        &[json("1"), json("2"), json("1")],
        "no value was given 3 times; the most frequent was given 2 times",
    );
    check(
        "quorum:2",
        &[json("1"), json("2")],
        "no value was given 2 times; the most frequent was given once",
    );
    for on_failure in [OnFailure::Skip, OnFailure::Include] {
        for (strategy, said) in
            [("first", "first: no piece completed"), ("quorum:1", "quorum: no piece completed")]
        {
            let mut fold = Fold::new(strategy.parse().expect(strategy), on_failure);
            fold.push(0, "a".into(), Err(failed(Reason::Deadline)));
            assert_eq!(fold.finish(1).expect_err(said).to_string(), said);
        }
    }

    let mut twice = Fold::new(Strategy::Structured, OnFailure::Fail);
    for (index, key) in ["a", "b", "b", "a"].into_iter().enumerate() {
        twice.push(index as u32, key.into(), Ok(json("1")));
    }
    assert_eq!(
        twice.finish(4).expect_err("`b` repeats first").to_string(),
        "structured: two results are called `b`"
    );
    let error = fold("vote", &[json("1")]).finish(3).expect_err("two are missing");
    assert_eq!(error, MergeError::Missing { missing: 2, expected: 3 });
    assert_eq!(fold("first", &[json("1")]).finish(3).map(|answer| answer.merged()), Ok(1));
}

#[test]
fn readable_meanwhile_and_never_pushed_twice() {
    let mut fold = Fold::new(Strategy::Concatenate, OnFailure::Fail);
    assert_eq!(text_of(fold.partial(), &NothingStored), "");
    fold.push(2, "c".into(), Ok(Payload::text("c")));
    assert_eq!(text_of(fold.partial(), &NothingStored), "c");
    fold.push(0, "a".into(), Ok(Payload::text("a")));
    fold.push(0, "a".into(), Ok(Payload::text("again")));
    fold.push(2, "c".into(), Err(failed(Reason::Deadline)));
    assert_eq!(text_of(fold.partial(), &NothingStored), "a\n---\nc");
    fold.push(1, "b".into(), Ok(Payload::text("b")));
    assert_eq!(text_of(&fold.finish(3).expect("all there"), &NothingStored), "a\n---\nb\n---\nc");

    let needed = NonZeroU32::new(2).expect("two");
    let mut quorum = Fold::new(Strategy::Quorum(needed), OnFailure::Fail);
    assert_eq!(quorum.push(5, "f".into(), Ok(json("2"))), Step::More);
    assert_eq!(quorum.push(5, "f".into(), Ok(json("2"))), Step::More);
    // A value that is ahead is not agreed on.
    assert!(!quorum.partial().is_made());
    assert_eq!(text_of(quorum.partial(), &NothingStored), "null");
    assert_eq!(quorum.push(1, "b".into(), Ok(json("1"))), Step::More);
    assert_eq!(quorum.push(0, "a".into(), Ok(json("1.0"))), Step::Early);
    assert_eq!(quorum.push(2, "c".into(), Ok(json("2"))), Step::Early);
    assert_eq!(text_of(&quorum.finish(9).expect("the merge has no answer"), &NothingStored), "1.0");
}

#[test]
fn an_answer_from_elsewhere_is_counted_here() {
    let mut fold = Fold::elsewhere(OnFailure::Fail);
    assert_eq!(fold.push(0, "a".into(), Ok(Payload::text("x"))), Step::More);
    assert_eq!(fold.push(1, "b".into(), Ok(Payload::text("y"))), Step::More);
    assert!(fold.check(3).is_err(), "one is missing");
    let mut early = fold.clone();
    early.give(Payload::text("both"), true);
    assert_eq!(early.push(2, "c".into(), Ok(Payload::text("z"))), Step::Early);
    assert_eq!(
        early.finish(3).expect("the merge has no answer").to_payload(),
        Some(Payload::text("both"))
    );
    fold.push(2, "c".into(), Ok(Payload::text("z")));
    fold.give(Payload::text("all"), false);
    let answer = fold.finish(3).expect("none is missing");
    assert_eq!((answer.merged(), answer.to_payload()), (3, Some(Payload::text("all"))));
}

#[test]
fn stored_json_votes_by_value() {
    let mut map = Map::default();
    let long = |space: &str| format!("[{}]", ["\"yes\""; 2000].join(&format!(",{space}")));
    let values = [
        map.store(long(" ").as_bytes(), ValueKind::Result),
        map.store(b"\"no\"", ValueKind::Text),
        map.store(long("\n").as_bytes(), ValueKind::Result),
        map.store(long(" ").as_bytes(), ValueKind::Result),
    ];
    for (strategy, expected) in [("vote", [3_u64, 1].as_slice()), ("quorum:3", [].as_slice())] {
        let mut fold = Fold::new(strategy.parse().expect(strategy), OnFailure::Fail);
        let mut read = 0;
        for (place, value) in values.iter().enumerate() {
            if let Some(reference) = fold.unread(value) {
                fold.learn(&reference, &map.0[&reference.hash]);
                read += 1;
            }
            fold.push(place as u32, "key".into(), Ok(value.clone()));
        }
        assert_eq!(read, 3, "what was read is not read again");
        let answer = fold.finish(4).expect("a winner");
        let written = text_of(&answer, &map);
        let written: serde_json::Value = serde_json::from_str(&written).expect("JSON");
        let winner = written.get("winner").unwrap_or(&written);
        assert_eq!(winner.as_array().map(Vec::len), Some(2000), "{strategy}");
        let counts = written.get("votes").and_then(serde_json::Value::as_object);
        let counts =
            counts.map(|votes| votes.values().map(|vote| vote["count"].as_u64()).collect());
        let counts: Vec<_> = counts.unwrap_or_default();
        assert_eq!(counts, expected.iter().map(|count| Some(*count)).collect::<Vec<_>>());
    }
}

#[test]
fn what_is_not_held_is_read_again() {
    /// Knows each result by its place.
    struct Again(Vec<Payload>);

    impl Values for Again {
        fn open(&self, _reference: &VariableRef) -> io::Result<Box<dyn io::BufRead + '_>> {
            unreachable!("nothing is stored")
        }

        fn result(&self, place: u32) -> io::Result<Payload> {
            Ok(self.0[place as usize].clone())
        }
    }

    let results =
        [Payload::text("one"), json(r#"{ "two" : 2 }"#), Payload::text("three"), json("4")];
    for strategy in ["concatenate", "structured", "summarize"] {
        let whole = fold(strategy, &results).finish(4).expect(strategy);
        for room in [0, 3, 5, 1000] {
            let some = Fold::new(strategy.parse().expect(strategy), OnFailure::Fail);
            let mut some = some.hold_at_most(room);
            // Not in the order of the request.
            for place in [2, 0, 3, 1] {
                let key = format!("k{place}").into();
                some.push(place, key, Ok(results[place as usize].clone()));
            }
            let answer = some.finish(4).expect(strategy);
            let again = Again(results.to_vec());
            assert_eq!(
                text_of(&answer, &again),
                text_of(&whole, &NothingStored),
                "{strategy} {room}"
            );
            assert_eq!(answer.to_payload().is_some(), room == 1000, "{strategy} {room}");
        }
    }
}

#[test]
fn of_many_failures_the_first_are_named_and_all_are_counted() {
    const FAILED: u32 = 1500;
    for on_failure in [OnFailure::Fail, OnFailure::Skip, OnFailure::Include] {
        let mut fold = Fold::new(Strategy::Concatenate, on_failure).hold_at_most(10_000);
        for place in (0..FAILED).rev() {
            let key = format!("k{place}").into();
            fold.push(place, key, Err(failed(Reason::ExitCode { code: 7 })));
        }
        fold.push(FAILED, "done".into(), Ok(Payload::text("done")));
        let answer = fold.partial();
        let named: Vec<u32> = answer.failures().map(|failure| failure.index).collect();
        assert_eq!(named, (0..1000).collect::<Vec<_>>());
        assert!(answer.failed().eq(0..FAILED));
        match fold.finish(FAILED + 1) {
            Ok(answer) => {
                let included = if on_failure == OnFailure::Include { FAILED } else { 0 };
                assert_eq!(answer.merged(), included + 1);
            }
            Err(error) => {
                assert_eq!(on_failure, OnFailure::Fail);
                let expected = "1500 of 1501 pieces did not complete, first k0: exited with code 7";
                assert_eq!(error.to_string(), expected);
            }
        }
    }
}
