//! The documents that `docs/plugins.md` shows are those that cross.

use offshoot_plugin_abi::wire::{
    delegate, event, finished, group, launch, manifest, merge, offshoot, probe, shutdown, spawn,
    turn, wait,
};
use offshoot_plugin_abi::{AbiError, Outcome, event as kind};

const PAGE: &str = include_str!("../../../../docs/plugins.md");

type Read = fn(&str) -> Result<String, AbiError>;

/// Each reader, in the order of the page, with a word that must be in what it has read.
const DOCUMENTS: &[(Read, &str)] = &[
    (|json| manifest::decode(json).map(|read| format!("{read:?}")), "largest"),
    (|json| launch::decode(json).map(|read| format!("{read:?}")), "hello"),
    (
        |json| {
            let body = b"HELLO".as_slice().into();
            let outcome = Outcome { head_json: json.into(), body };
            finished::decode(outcome).map(|read| format!("{read:?}"))
        },
        "HELLO",
    ),
    (|json| event::decode(kind::STATUS, json).map(|read| format!("{read:?}")), "4711"),
    (|json| event::decode(kind::STATUS, json).map(|read| format!("{read:?}")), "429 slow down"),
    (|json| event::decode(kind::STATUS, json).map(|read| format!("{read:?}")), "small"),
    (|json| event::decode(kind::USAGE, json).map(|read| format!("{read:?}")), "Known(12)"),
    (|json| spawn::decode(json).map(|read| format!("{read:?}")), "count the words"),
    (|json| delegate::decode(json).map(|read| format!("{read:?}")), "format the commit"),
    (|json| delegate::decode_observed(json).map(|read| format!("{read:?}")), "(1, true)"),
    (|json| wait::decode(json).map(|read| format!("{read:?}")), "All"),
    (|json| turn::decode(json).map(|read| format!("{read:?}")), "so far"),
    (|json| turn::decode_letter(json).map(|read| read.to_string()), "one more thing"),
    (|json| group::decode(json).map(|read| format!("{read:?}")), "4711"),
    (|json| offshoot::decode(json).map(|read| format!("{read:?}")), "/usr/bin/offshoot"),
    (|json| manifest::decode_made(json).map(|read| format!("{read:?}")), "turns: true"),
    (|json| merge::decode(json).map(|read| format!("{read:?}")), "part-3"),
    (
        |json| probe::decode(json).map(|read| format!("{read:?}")).ok_or_else(no_probe),
        "Events(10000)",
    ),
    (|json| shutdown::decode(json).map(|read| read.to_string()), "0"),
];

fn no_probe() -> AbiError {
    AbiError::new(AbiError::INVALID, "no probe")
}

#[test]
fn the_page_shows_what_crosses() {
    let shown: Vec<&str> =
        PAGE.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(shown.len(), DOCUMENTS.len());
    for (json, (read, word)) in shown.into_iter().zip(DOCUMENTS) {
        let read = read(json).unwrap_or_else(|error| panic!("{error} in {json}"));
        assert!(read.contains(word), "{word} is not in {read}");
    }
}
