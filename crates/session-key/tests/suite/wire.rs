//! Names and keys in JSON: strings, checked on arrival.

use std::collections::{BTreeMap, HashMap};

use offshoot_session_key::{AgentId, KeyKind, Segment, SessionKey};

#[test]
fn a_key_is_a_string() {
    let key: SessionKey = serde_json::from_str("\" Agent:Main:subagent:A \"").unwrap();
    assert_eq!(serde_json::to_string(&key).unwrap(), "\"agent:main:subagent:a\"");
    let kind = serde_json::to_string(&KeyKind::Subagent).unwrap();
    assert_eq!(kind, format!("\"{}\"", KeyKind::Subagent));
}

#[test]
fn a_key_is_checked_when_it_arrives() {
    #[track_caller]
    fn check<T: serde::de::DeserializeOwned + std::fmt::Debug>(json: &str, expected: &str) {
        assert_eq!(serde_json::from_str::<T>(json).unwrap_err().to_string(), expected);
    }
    check::<SessionKey>(
        r#""agent:main:subagent:""#,
        "malformed session key at byte 20: the segment is missing at line 1 column 22",
    );
    check::<SessionKey>("7", "invalid type: integer `7`, expected a string at line 1 column 1");
    check::<AgentId>(r#""a b""#, "agent id cannot contain ' ' (byte 1) at line 1 column 5");
    check::<Segment>(r#""""#, "segment is missing (byte 0) at line 1 column 2");
}

#[test]
fn text_with_escapes_and_readers_work_too() {
    let key: SessionKey = serde_json::from_str(r#""agent:main:\u006dain""#).unwrap();
    assert_eq!(key.kind(), KeyKind::Main);
    let key: SessionKey = serde_json::from_reader(&b"\"agent:main:main\""[..]).unwrap();
    assert_eq!(key.kind(), KeyKind::Main);
}

#[test]
fn keys_and_ids_are_keys_of_maps() {
    let map: BTreeMap<AgentId, u32> = serde_json::from_str(r#"{"B":2,"a":1}"#).unwrap();
    assert_eq!(serde_json::to_string(&map).unwrap(), r#"{"a":1,"b":2}"#);
    assert_eq!(map.get("b"), Some(&2));

    let key = SessionKey::parse("agent:main:main").unwrap();
    let sessions = HashMap::from([(key, 1)]);
    assert_eq!(sessions.get("agent:main:main"), Some(&1), "the hash is that of the text");
}
