use std::fs;

use offshoot_model::{ContentHash, InputRange, VariableRef};
use offshoot_runtime::ContextFile;
use serde_json::Value;
use tempfile::TempDir;

use super::*;

fn launch(context: Vec<ContextFile>, input: Input) -> Launch {
    Launch { context, input, ..Launch::bare("Count.") }
}

fn file(folder: &TempDir, name: &str, kind: ValueKind, bytes: &[u8]) -> ContextFile {
    let path = folder.path().join(name);
    fs::write(&path, bytes).expect("a file");
    let value = VariableRef { hash: ContentHash::of(bytes), size: bytes.len() as u64, kind };
    ContextFile { name: name.into(), path, value }
}

fn read(sources: &Sources, name: &str, offset: u64, bytes: Option<u64>) -> Value {
    let answer = sources.read(&Read { name: name.into(), offset, bytes });
    serde_json::from_str(&answer).expect("JSON")
}

#[test]
fn short_values_stand_in_the_prompt() {
    let folder = tempfile::tempdir().expect("a folder");
    let context = vec![
        file(&folder, "log", ValueKind::Text, b"a\nb"),
        file(&folder, "data", ValueKind::Json, br#"{"ref": "x", "value": {"n": 1}}"#),
        file(&folder, "raw", ValueKind::Bytes, &[0xff, 0xfe]),
        file(&folder, "long", ValueKind::Text, &[b'x'; 200]),
    ];
    let (prompt, sources) =
        first(&launch(context, Input::Prompt), 100, Some("You have 9 tokens to spend."))
            .expect("readable");
    assert_eq!(
        prompt,
        "Context variable \"log\" (3 bytes, type: text):\na\nb\n\n\
         Context variable \"data\" (31 bytes, type: json):\n{\"n\": 1}\n\n\
         You have 9 tokens to spend.\n\nCount.\n\n\
         Context variable \"raw\" (2 bytes, type: bytes):\nRead it with the tool context_read.\n\n\
         Context variable \"long\" (200 bytes, type: text):\nRead it with the tool context_read."
    );
    let part = read(&sources, "long", 190, None);
    assert_eq!((&part["text"], &part["of"]), (&"xxxxxxxxxx".into(), &200.into()));
    assert_eq!(read(&sources, "long", 999, None)["bytes"], 0);
    let refused = read(&sources, "log", 0, None);
    assert_eq!(refused["code"], "invalid_request", "it stands in the prompt");
    assert_eq!(refused["message"], "there is no value `log`; there are: raw, long");
}

#[test]
fn parts_end_between_characters() {
    let folder = tempfile::tempdir().expect("a folder");
    let context = vec![file(&folder, "umlauts", ValueKind::Text, "äöü".as_bytes())];
    let (_, sources) = first(&launch(context, Input::Prompt), 0, None).expect("readable");
    let part = read(&sources, "umlauts", 0, Some(3));
    assert_eq!((&part["text"], &part["bytes"]), (&"ä".into(), &2.into()));
    assert_eq!(read(&sources, "umlauts", 2, Some(4))["text"], "öü");
}

#[test]
fn a_piece_is_what_the_task_is_about() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = file(&folder, "big", ValueKind::Text, b"onetwothree").path;
    let piece = || {
        Input::Piece(InputRange {
            path: Arc::new(path.clone()),
            offset: 3,
            length: 3,
            header: 0,
            hash: None,
        })
    };
    let (prompt, sources) = first(&launch(Vec::new(), piece()), 100, None).expect("readable");
    assert_eq!(prompt, "Count.\n\ntwo");
    assert!(sources.is_empty());
    let (prompt, sources) = first(&launch(Vec::new(), piece()), 2, None).expect("readable");
    assert_eq!(
        prompt,
        "Count.\n\nPiece of the input \"the input\" (3 bytes, type: text):\nRead it with the tool context_read."
    );
    assert_eq!(read(&sources, "the input", 1, None)["text"], "wo");
}

#[test]
fn what_cannot_be_read_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut gone = file(&folder, "gone", ValueKind::Text, b"x");
    gone.path = folder.path().join("elsewhere");
    assert!(first(&launch(vec![gone], Input::Prompt), 100, None).is_err());
}
