//! Documents of a later version.

use super::*;

type Read = fn(&str) -> Result<String, AbiError>;

/// Reads what a later version may write, and compares it with words that must be in what is read, or in the error.
#[test]
fn documents_of_a_later_version_are_read_as_far_as_they_can_be() {
    fn shown<T: Debug>(read: Result<T, AbiError>) -> Result<String, AbiError> {
        read.map(|read| format!("{read:?}"))
    }
    let manifest: Read = |json| shown(manifest::decode(json));
    let launch: Read = |json| shown(launch::decode(json));
    let ended: Read = |json| shown(finished::decode(outcome(json, "so far")));
    let result: Read = |json| shown(merge::decode(json));
    let spawned: Read = |json| shown(spawn::decode_answer(json));
    let delegated: Read = |json| shown(delegate::decode_answer(json));
    let refused: Read = |json| shown(Ok(refused::decode(&refused_by(json))));
    let waited: Read = |json| shown(wait::decode_answer(json));
    let letter: Read = |json| shown(turn::decode_letter(json));
    let usage: Read = |json| shown(event::decode(kind::USAGE, json));
    let status: Read = |json| shown(event::decode(kind::STATUS, json));
    let spawn: Read = |json| shown(spawn::decode(json));
    let wait: Read = |json| shown(wait::decode(json));
    let group: Read = |json| shown(group::decode(json));

    let mut files = Files::of(folder().join("later"));
    let mut check = |name: &str, read: Read, expected: Result<&[&str], &str>| {
        let file = files.take(name);
        match (read(&file), expected) {
            (Ok(read), Ok(words)) => {
                for word in words {
                    assert!(read.contains(word), "{name}: no {word} in {read}");
                }
            }
            (Err(error), Err(words)) => assert!(error.message.contains(words), "{name}: {error}"),
            (read, _) => panic!("{name}: {read:?}"),
        }
    };

    // What happened is read as what promises least.
    check("manifest-cost", manifest, Ok(&["cost: Unknown", "turns: true"]));
    check("launch", launch, Ok(&["output: Text", "kind: Bytes", "max_depth: 3"]));
    let unknown = r#"RuntimeError { message: "it ended for a reason that is not known here: {"#;
    check("outcome-reason", ended, Ok(&[unknown, "dissolved", "retryable: false", "so far"]));
    check("outcome-cancelled", ended, Ok(&[unknown, "neighbour", "retryable: false"]));
    check("outcome-output", ended, Ok(&["Completed", "Bytes([115, 111, 32, 102, 97, 114])"]));
    check("outcome-file", ended, Ok(&["Completed", "kind: Bytes"]));
    check("result", result, Ok(&["status: Lost", "kind: Bytes"]));
    let why =
        r#"CannotDelegate, field: None, message: "not tonight (full_moon)", hint: Some("wait")"#;
    check("spawn-refusal", spawned, Ok(&[why]));
    check("wait-refusal", refused, Ok(&[why]));
    let words = ["ExecuteDirectly", "reason: NoMatch", "it may not (its reason is `full_moon`)"];
    check("delegate-reason", delegated, Ok(&words));
    let words = ["ExecuteDirectly", "message: \" (its status is `auctioned`)\""];
    check("delegate-status", delegated, Ok(&words));
    check(
        "wait-answer",
        waited,
        Ok(&[
            "status: Lost",
            "code: \"dissolved\", message: \"its status is `dissolved`, which is not known here\"",
            "status: Completed, data: None",
            "message: \"its kind of answer is `paged`, which is not known here\"",
            "kind: Bytes",
        ]),
    );
    check("status", status, Ok(&["None"]));
    check("usage", usage, Ok(&["input: AtLeast(12)", "output: Known(3)"]));
    // What is asked for is not guessed.
    check("launch-input", launch, Err("unknown variant `pages`"));
    check("manifest-panic", manifest, Err("unknown variant `resume`"));
    check("spawn-cleanup", spawn, Err("unknown variant `archive`"));
    check("wait-mode", wait, Err("unknown variant `most`"));
    check("group-change", group, Err("unknown variant `frozen`"));
    // A word that is known, without what belongs to it, is a mistake.
    check("outcome-mistake", ended, Err("missing field `code`"));
    check("result-mistake", result, Err("invalid type"));
    // What must be known is refused by name.
    let must = "its reader must know `ink`, which is not known here";
    check("letter-must", letter, Err(must));
    check("launch-must", launch, Err(must));
    check("outcome-must", ended, Err(must));
    check("letter-must-nothing", letter, Ok(&["x"]));
    check("letter-version", letter, Err("version 2 is not known here, 1 is"));
    files.none_is_left();
}

/// Every document asks its reader for the same.
#[test]
fn what_a_reader_must_know_is_asked_for_in_every_document() {
    let files = fs::read_dir(folder()).expect("the folder of the documents");
    for path in files.map(|file| file.expect("an entry").path()).filter(|path| path.is_file()) {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let json = fs::read_to_string(&path).expect("a file");
        if name == "outcomes" {
            continue;
        }
        let json = json.replacen('{', r#"{"must":["ink"],"#, 1);
        let read = match name.split('-').next().expect("a word") {
            "manifest" => manifest::decode(&json).map(drop),
            "made" => manifest::decode_made(&json).map(drop),
            "offshoot" => offshoot::decode(&json).map(drop),
            "shutdown" => shutdown::decode(&json).map(drop),
            "launch" => launch::decode(&json).map(drop),
            "outcome" => finished::decode(outcome(&json, "")).map(drop),
            "usage" => event::decode(kind::USAGE, &json).map(drop),
            "status" => event::decode(kind::STATUS, &json).map(drop),
            "tool" => event::decode(kind::TOOL_START, &json).map(drop),
            "note" => event::decode(kind::NOTE, &json).map(drop),
            "raw" => event::decode(kind::RAW, &json).map(drop),
            "spawn" if name == "spawn" => spawn::decode(&json).map(drop),
            "spawn" => spawn::decode_answer(&json).map(drop),
            "delegate" if ["delegate", "delegate-choose"].contains(&&*name) => {
                delegate::decode(&json).map(drop)
            }
            "delegate" => delegate::decode_answer(&json).map(drop),
            "observed" => delegate::decode_observed(&json).map(drop),
            "wait" if name == "wait-answer" => wait::decode_answer(&json).map(drop),
            "wait" if name == "wait-refusal" => {
                assert_eq!(refused::decode(&refused_by(&json)), None, "the text is left");
                continue;
            }
            "wait" => wait::decode(&json).map(drop),
            "turn" if name == "turn" => turn::decode(&json).map(drop),
            "turn" => turn::decode_answer(&json).map(drop),
            "letter" => turn::decode_letter(&json).map(drop),
            "group" if name == "group-answer" => group::decode_answer(&json).map(drop),
            "group" => group::decode(&json).map(drop),
            "orphans" => orphans::decode_answer(&json).map(drop),
            "result" => merge::decode(&json).map(drop),
            "probe" => {
                assert_eq!(probe::decode(&json), None, "a probe that is not known is none");
                continue;
            }
            _ => panic!("{name} is read by nothing"),
        };
        let error = read.expect_err(&name);
        assert!(error.message.contains("its reader must know `ink`"), "{name}: {error}");
    }
}
