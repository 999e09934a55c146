//! Every form a key can take, and every way in which one can be malformed, as tables.

use offshoot_session_key::{
    AgentId, KeyKind, NameFault, ParseKeyErrorKind as Kind, Segment, SessionKey,
    parent_subagent_key, subagent_depth,
};

const UUID: &str = "01987d2e-7b5a-7c1e-9a51-3f6f0c4d2b10";

/// `parent` is the textual parent.
#[track_caller]
fn check(input: &str, kind: KeyKind, agent: &str, depth: usize, parent: Option<&str>) {
    let key = SessionKey::parse(input).unwrap_or_else(|error| panic!("{input:?}: {error}"));
    assert_eq!(key.as_str(), input.trim().to_ascii_lowercase(), "text of {input:?}");
    assert_eq!((key.kind(), key.depth()), (kind, depth), "kind and depth of {input:?}");
    assert_eq!(key.agent_id(), agent, "agent of {input:?}");
    assert_eq!(key.parent().as_ref().map(SessionKey::as_str), parent, "parent of {input:?}");
    assert_eq!(key.is_root(), depth == 0);
    assert_eq!(key.is_subagent(), depth > 0);

    assert_eq!(subagent_depth(Some(input)), depth);
    assert_eq!(parent_subagent_key(Some(input)).as_deref(), parent);
}

#[track_caller]
fn check_malformed(input: &str, position: usize, kind: Kind) {
    let error = SessionKey::parse(input).expect_err(input);
    assert_eq!((error.position, error.kind), (position, kind), "{input:?}");
    assert_eq!(subagent_depth(Some(input)), 0);
    assert_eq!(parent_subagent_key(Some(input)), None);
}

#[test]
fn roots() {
    #[track_caller]
    fn check(input: &str, kind: KeyKind, agent: &str) {
        crate::grammar::check(input, kind, agent, 0, None);
    }
    check("agent:main:main", KeyKind::Main, "main");
    check("agent:7:main", KeyKind::Main, "7");
    check("agent:a-b_c:main", KeyKind::Main, "a-b_c");
    check(&format!("agent:{}:main", "x".repeat(64)), KeyKind::Main, &"x".repeat(64));
    check(&format!("agent:main:run:{UUID}"), KeyKind::Other, "main");
    check(&format!("agent:main:mcp:{UUID}"), KeyKind::Other, "main");
    check("agent:main:telegram:group:subagent:1", KeyKind::Other, "main");
    check("agent:main:main:subagent:a", KeyKind::Other, "main");
    check("agent:main:subagents:a", KeyKind::Other, "main");
    check("agent:main:sub:a", KeyKind::Other, "main");
    check("agent:main:subagent-x", KeyKind::Other, "main");
    check("agent:main:+49-30", KeyKind::Other, "main");
    check("agent:main:überall:日本", KeyKind::Other, "main");
    check("agent:main:café:É", KeyKind::Other, "main");
}

#[test]
fn subagents() {
    let first = format!("agent:main:subagent:{UUID}");
    let second = format!("{first}:sub:b");
    let third = format!("{second}:sub:{UUID}");
    check(&first, KeyKind::Subagent, "main", 1, Some("agent:main:main"));
    check(&second, KeyKind::Subagent, "main", 2, Some(&first));
    check(&third, KeyKind::Subagent, "main", 3, Some(&second));
    check("agent:x:subagent:sub", KeyKind::Subagent, "x", 1, Some("agent:x:main"));
    check("agent:x:subagent:sub:sub:sub", KeyKind::Subagent, "x", 2, Some("agent:x:subagent:sub"));
    check("agent:x:subagent:subagent", KeyKind::Subagent, "x", 1, Some("agent:x:main"));
    check("agent:x:subagent:-_", KeyKind::Subagent, "x", 1, Some("agent:x:main"));
    let widest = format!("agent:x:subagent:{}", "s".repeat(64));
    check(&widest, KeyKind::Subagent, "x", 1, Some("agent:x:main"));
}

#[test]
fn input_is_trimmed_and_lower_cased() {
    check(" agent:main:main\n", KeyKind::Main, "main", 0, None);
    check("\u{a0}agent:main:main\u{2003}", KeyKind::Main, "main", 0, None);
    check("AGENT:Main:MAIN", KeyKind::Main, "main", 0, None);
    check("Agent:A:SubAgent:X:SUB:Y", KeyKind::Subagent, "a", 2, Some("agent:a:subagent:x"));
}

#[test]
fn a_malformed_key_is_an_error() {
    let segment = |fault| Kind::Segment(fault);
    let check = check_malformed;
    check("", 0, Kind::Empty);
    check(" \t\n", 0, Kind::Empty);
    check("main", 0, Kind::Prefix);
    check("agent", 5, Kind::Prefix);
    check("agents:main:main", 5, Kind::Prefix);
    check(":agent:main", 0, Kind::Prefix);
    check("äagent:main:main", 0, Kind::Prefix);
    check("agent:", 6, Kind::AgentId(NameFault::Empty));
    check("agent::x", 6, Kind::AgentId(NameFault::Empty));
    check("agent:ma in:x", 8, Kind::AgentId(NameFault::Character(' ')));
    check("agent:naïve:x", 8, Kind::AgentId(NameFault::Character('ï')));
    check("agent:-a:x", 6, Kind::AgentId(NameFault::First('-')));
    check("agent:_a:x", 6, Kind::AgentId(NameFault::First('_')));
    check(&format!("agent:{}:main", "x".repeat(65)), 70, Kind::AgentId(NameFault::TooLong));
    check("agent:main", 10, Kind::NoRest);
    check("agent:main:", 11, Kind::NoRest);
    check("agent:main::", 11, Kind::EmptyToken);
    check("agent:main:x::y", 13, Kind::EmptyToken);
    check("agent:main:x:", 13, Kind::EmptyToken);
    check("agent:main:main:", 16, Kind::EmptyToken);
    check("agent:main:a b", 12, Kind::TokenCharacter(' '));
    check("agent:main:a\u{2003}b", 12, Kind::TokenCharacter('\u{2003}'));
    check("agent:main:é\u{7}", 13, Kind::TokenCharacter('\u{7}'));
    check("agent:main:run:a\nb", 16, Kind::TokenCharacter('\n'));
    check("agent:main:subagent", 19, segment(NameFault::Empty));
    check("agent:main:subagent:", 20, segment(NameFault::Empty));
    check("agent:main:subagent:a:sub", 25, segment(NameFault::Empty));
    check("agent:main:subagent:a:sub:", 26, segment(NameFault::Empty));
    check("agent:main:subagent::sub:b", 20, segment(NameFault::Empty));
    check("agent:main:subagent:a:sub::sub:b", 26, segment(NameFault::Empty));
    check("agent:main:subagent:a:", 22, Kind::NotSub);
    check("agent:main:subagent:a:thread:x", 22, Kind::NotSub);
    check("agent:main:subagent:a:subagent:b", 22, Kind::NotSub);
    check("agent:main:subagent:a:sub:b:c", 28, Kind::NotSub);
    check("agent:main:subagent:a b", 21, segment(NameFault::Character(' ')));
    check("agent:main:subagent:a.b", 21, segment(NameFault::Character('.')));
    check("agent:main:subagent:a:sub:ß", 26, segment(NameFault::Character('ß')));
    let long = "s".repeat(65);
    check(&format!("agent:main:subagent:{long}"), 84, segment(NameFault::TooLong));
    check(&format!("agent:main:subagent:a:sub:{long}"), 90, segment(NameFault::TooLong));
    // A wrong character is named before the length it also has.
    let wrong = format!("agent:main:subagent:.{long}");
    check(&wrong, 20, segment(NameFault::Character('.')));
    // Positions are those of the trimmed input, in its own case.
    check("  AGENT:MAIN:SUBAGENT:A:THREAD:X", 22, Kind::NotSub);
}

#[test]
fn a_message_is_one_line_and_the_caret_two() {
    #[track_caller]
    fn check(input: &str, expected: &str) {
        assert_eq!(SessionKey::parse(input).expect_err(input).report(), expected);
    }
    check("", "malformed session key at byte 0: it is empty\n\n^");
    check(
        " agent:Main:subagent: ",
        "malformed session key at byte 20: the segment is missing\n\
         agent:Main:subagent:\n                    ^",
    );
    // The caret counts characters, not bytes.
    check(
        "agent:main:éé é",
        "malformed session key at byte 15: it cannot contain ' '\nagent:main:éé é\n             ^",
    );
    // Nothing in a key reaches the terminal as a command to it.
    check(
        "agent:main:\u{1b}[2J",
        "malformed session key at byte 11: it cannot contain '\\u{1b}'\n\
         agent:main:\\u{1b}[2J\n           ^",
    );
}

#[test]
fn a_long_key_is_cut_around_the_fault() {
    let input = format!("agent:main:{} {}", "a".repeat(10_000), "b".repeat(10_000));
    let error = SessionKey::parse(&input).unwrap_err();
    assert_eq!(error.position, 10_011);
    let shown = format!("…{} {}…\n{}^", "a".repeat(80), "b".repeat(79), " ".repeat(81));
    assert_eq!(error.caret(), shown);
}

#[test]
fn every_malformed_key_has_a_hint() {
    for input in ["", "x", "agent::x", "agent:a", "agent:a:subagent:", "agent:a:subagent:b:c"] {
        assert!(SessionKey::parse(input).unwrap_err().hint().len() > 20, "{input}");
    }
}

#[test]
fn ancestors_are_nearest_first() {
    let key = SessionKey::parse("agent:x:subagent:a:sub:b:sub:c").unwrap();
    let above = key.ancestors();
    assert_eq!(above.len(), 3);
    let above: Vec<_> = above.map(|key| (key.to_string(), key.kind(), key.depth())).collect();
    let expected = [
        ("agent:x:subagent:a:sub:b", KeyKind::Subagent, 2),
        ("agent:x:subagent:a", KeyKind::Subagent, 1),
        ("agent:x:main", KeyKind::Main, 0),
    ];
    assert_eq!(above, expected.map(|(key, kind, depth)| (key.to_owned(), kind, depth)));
    assert_eq!(SessionKey::parse("agent:x:run:a").unwrap().ancestors().next(), None);
}

#[test]
fn children_are_minted_below_what_asks() {
    let scanner = AgentId::parse("scanner").unwrap();
    let segment = |text| Segment::parse(text).unwrap();
    let root = SessionKey::root_run(&AgentId::main(), &segment(UUID));
    assert_eq!(root.as_str(), format!("agent:main:run:{UUID}"));
    let opened = SessionKey::root_mcp(&AgentId::main(), &segment(UUID));
    assert_eq!(opened.as_str(), format!("agent:main:mcp:{UUID}"));
    assert!(opened.is_root());
    let child = root.child(&scanner, &segment("b"));
    assert_eq!(child.as_str(), "agent:scanner:subagent:b");
    assert_eq!(SessionKey::main(&scanner).child(&scanner, &segment("b")), child);
    // Below a sub-agent the key keeps its agent, whatever agent runs there.
    let grandchild = child.child(&AgentId::main(), &segment("c"));
    assert_eq!(grandchild.as_str(), "agent:scanner:subagent:b:sub:c");
    assert_eq!(grandchild.agent_id(), scanner);
}

#[test]
fn text_helpers_accept_nothing() {
    assert_eq!(subagent_depth(None), 0);
    assert_eq!(parent_subagent_key(None), None);
}

#[test]
fn agent_ids_and_segments() {
    #[track_caller]
    fn check(input: &str, agent: Result<&str, &str>, segment: Result<&str, &str>) {
        let ours = AgentId::parse(input).map(|id| id.to_string()).map_err(|e| e.to_string());
        assert_eq!(ours, agent.map(str::to_owned).map_err(str::to_owned), "{input:?}");
        let ours = Segment::parse(input).map(|id| id.to_string()).map_err(|e| e.to_string());
        assert_eq!(ours, segment.map(str::to_owned).map_err(str::to_owned), "{input:?}");
    }
    check("a", Ok("a"), Ok("a"));
    check(" Template-Sync_2\n", Ok("template-sync_2"), Ok("template-sync_2"));
    check("-a", Err("agent id cannot begin with '-' (byte 0)"), Ok("-a"));
    check("", Err("agent id is missing (byte 0)"), Err("segment is missing (byte 0)"));
    check(
        "a:b",
        Err("agent id cannot contain ':' (byte 1)"),
        Err("segment cannot contain ':' (byte 1)"),
    );
    check(
        &"a".repeat(65),
        Err("agent id is longer than 64 characters (byte 64)"),
        Err("segment is longer than 64 characters (byte 64)"),
    );
}
