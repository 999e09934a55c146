//! Properties of every key and of every input.

use offshoot_session_key::{AgentId, KeyKind, Segment, SessionKey, subagent_depth};
use proptest::prelude::*;

fn agent_id() -> impl Strategy<Value = AgentId> {
    "[a-z0-9][a-z0-9_-]{0,63}".prop_map(|id| AgentId::parse(&id).expect("made by the grammar"))
}

fn segment() -> impl Strategy<Value = Segment> {
    "[a-z0-9_-]{1,64}".prop_map(|text| Segment::parse(&text).expect("made by the grammar"))
}

/// A key of any kind, as text made by the grammar.
fn key() -> impl Strategy<Value = String> {
    let rest = prop_oneof![
        Just("main".to_owned()),
        "subagent:[a-z0-9_-]{1,64}(:sub:[a-z0-9_-]{1,64}){0,12}",
        "(run|telegram|main:x|sub|[^\\s\\p{Cc}:A-Z]{1,9}x)(:[^\\s\\p{Cc}:A-Z]{1,20}){0,5}",
    ];
    (agent_id(), rest).prop_map(|(id, rest)| format!("agent:{id}:{rest}"))
}

/// Text that is nearly a key: the words of the grammar in any order.
fn nearly_a_key() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        8 => Just(":"),
        2 => Just("agent"),
        2 => Just("subagent"),
        2 => Just("sub"),
        1 => Just("main"),
        1 => Just("a"),
        1 => Just("B"),
        1 => Just(" "),
        1 => Just("ß"),
        1 => Just("-"),
    ];
    let tail = proptest::collection::vec(word, 0..12).prop_map(|words| words.concat());
    (prop_oneof![Just(""), Just("agent:main:"), Just("agent:main:subagent:")], tail)
        .prop_map(|(head, tail)| head.to_owned() + &tail)
}

/// The grammar read literally: slow, and nothing of it is shared with the parser.
fn is_a_key(input: &str) -> bool {
    let text = input.trim().to_ascii_lowercase();
    let parts: Vec<&str> = text.split(':').collect();
    let name = |part: &str| {
        (1..=64).contains(&part.len())
            && part.chars().all(|c| "abcdefghijklmnopqrstuvwxyz0123456789_-".contains(c))
    };
    let token = |part: &&str| {
        !part.is_empty() && !part.chars().any(|c| c.is_whitespace() || c.is_control())
    };
    let ["agent", id, rest @ ..] = parts.as_slice() else { return false };
    let id_stands = name(id) && !id.starts_with(['-', '_']);
    let rest_stands = match rest {
        [] => false,
        ["subagent", levels @ ..] => {
            levels.len() % 2 == 1
                && levels.iter().step_by(2).all(|part| name(part))
                && levels.iter().skip(1).step_by(2).all(|part| *part == "sub")
        }
        tokens => tokens.iter().all(token),
    };
    id_stands && rest_stands
}

proptest! {
    #[test]
    fn parse_after_print_is_identity(text in key()) {
        let key = SessionKey::parse(&text).unwrap();
        let printed = key.to_string();
        prop_assert_eq!(&printed, &text);
        let again = SessionKey::parse(&printed).unwrap();
        prop_assert_eq!(again.kind(), key.kind());
        prop_assert_eq!(again.depth(), key.depth());
        prop_assert_eq!(again.agent_id(), key.agent_id());
        prop_assert_eq!(&again, &key);
        let json = serde_json::to_string(&key).unwrap();
        prop_assert_eq!(serde_json::from_str::<SessionKey>(&json).unwrap(), key);
    }

    #[test]
    fn a_child_is_one_deeper(text in key(), target in agent_id(), segment in segment()) {
        let key = SessionKey::parse(&text).unwrap();
        let child = key.child(&target, &segment);
        prop_assert_eq!(child.depth(), key.depth() + 1);
        prop_assert_eq!(child.kind(), KeyKind::Subagent);
        prop_assert_eq!(child.ancestors().len(), child.depth());
        prop_assert_eq!(child.ancestors().count(), child.depth());
        if key.is_subagent() {
            prop_assert_eq!(child.parent(), Some(key));
        } else {
            prop_assert_eq!(child.parent(), Some(SessionKey::main(&target)));
        }
        // What was minted is what parsing would have made of the text.
        let parsed = SessionKey::parse(child.as_str()).unwrap();
        prop_assert_eq!((parsed.depth(), parsed.agent_id()), (child.depth(), child.agent_id()));
    }

    #[test]
    fn every_ancestor_is_a_key_of_its_own(text in key()) {
        let key = SessionKey::parse(&text).unwrap();
        for above in key.ancestors() {
            let parsed = SessionKey::parse(above.as_str()).unwrap();
            prop_assert_eq!(parsed.depth(), above.depth());
            prop_assert_eq!(parsed.kind(), above.kind());
            prop_assert_eq!(parsed.agent_str(), key.agent_str());
        }
    }

    #[test]
    fn keys_compare_as_their_text(one in key(), other in key()) {
        let (a, b) = (SessionKey::parse(&one).unwrap(), SessionKey::parse(&other).unwrap());
        prop_assert_eq!(a.cmp(&b), one.cmp(&other));
        prop_assert_eq!(a == b, one == other);
    }

    #[test]
    fn no_input_panics(input in any::<String>()) {
        accepted_or_explained(&input)?;
    }

    #[test]
    fn the_parser_agrees_with_the_grammar(input in nearly_a_key()) {
        accepted_or_explained(&input)?;
    }
}

/// Input is a key exactly where the grammar has it so; else the error can be shown.
fn accepted_or_explained(input: &str) -> Result<(), TestCaseError> {
    match SessionKey::parse(input) {
        Ok(key) => {
            prop_assert!(is_a_key(input), "{input:?} was accepted");
            prop_assert_eq!(subagent_depth(Some(input)), key.depth());
        }
        Err(error) => {
            prop_assert!(!is_a_key(input), "{input:?} was refused: {error}");
            prop_assert!(input.trim().is_char_boundary(error.position));
            prop_assert_eq!(error.to_string().lines().count(), 1);
            prop_assert_eq!(error.caret().split('\n').count(), 2);
            prop_assert!(error.caret().ends_with('^'));
        }
    }
    Ok(())
}
