//! `offshoot key`.

use crate::command::{Place, check};

#[test]
fn a_key_is_taken_apart() {
    let place = Place::new();
    let key = "agent:main:subagent:a:sub:b";
    check("key_parse", &place.run(&["key", "parse", key]));
    check("key_parse_json", &place.run(&["key", "parse", key, "--json"]));
    check("key_parse_root_json", &place.run(&["--json", "key", "parse", " Agent:Main:Main "]));
}

#[test]
fn a_malformed_key_is_an_error_with_a_caret() {
    let place = Place::new();
    check("key_parse_malformed", &place.run(&["key", "parse", "agent:ma in:x"]));
    for key in [
        "",
        "agent:main:subagent:",
        "agent:main:subagent:a:sub",
        "agent:main:subagent:a:sub:",
        "agent:main:subagent::sub:b",
        "agent:main:subagent:a:thread:x",
        "agent::x",
        "-",
    ] {
        let outcome = place.run(&["key", "parse", key]).expect_code(2);
        assert_eq!(outcome.stdout(), "", "{key}");
        assert!(outcome.stderr.contains("\nhint: "), "{key}: {}", outcome.stderr);
    }
}

#[test]
fn depth_and_parent_are_for_scripts() {
    let place = Place::new();
    for (key, depth, parent) in [
        ("agent:main:subagent:a:sub:b", "2\n", "agent:main:subagent:a\n"),
        ("agent:main:subagent:a", "1\n", "agent:main:main\n"),
        ("agent:main:main", "0\n", ""),
        ("agent:main:telegram:group:subagent:1", "0\n", ""),
        ("no key", "0\n", ""),
        ("", "0\n", ""),
    ] {
        let outcome = place.run(&["key", "depth", key]).expect_code(0);
        assert_eq!(outcome.stdout(), depth, "{key}");
        let outcome = place.run(&["key", "parent", key]);
        assert_eq!(
            (outcome.stdout(), outcome.code),
            (parent, i32::from(parent.is_empty())),
            "{key}"
        );
        assert_eq!(outcome.stderr, "");
    }
    assert_eq!(place.run(&["key", "depth"]).expect_code(0).stdout(), "0\n");
}
