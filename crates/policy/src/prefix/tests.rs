use offshoot_config::{Loader, Source, SourceKind};
use offshoot_model::VariableRef;

use super::*;

const LONG: u64 = 9_000;

fn run(number: u8) -> RunId {
    RunId::from_bytes([number; 16])
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

fn prefix(model: Option<&str>, context: &[&str]) -> Prefix {
    let value = |name: &&str| (Arc::from(*name), ContentHash::of(name.as_bytes()));
    Prefix {
        runtime: "claude".into(),
        agent: AgentId::main(),
        model: model.map(Into::into),
        tools: None,
        parent: None,
        context: context.iter().map(value).collect(),
    }
}

/// A prefix that one run primes since the first second.
fn primed() -> (Prefixes, PrefixId) {
    let mut prefixes = Prefixes::default();
    let id = prefixes.add(prefix(None, &[]), LONG).expect("it is long enough");
    assert_eq!(prefixes.waits_until(id, at(1)), None);
    assert_eq!(prefixes.starts(id, run(1), at(1)), Some(at(31)));
    (prefixes, id)
}

#[test]
fn values_that_fit_and_are_text_stand_in_front_with_the_instructions() {
    let source = Source::new(
        SourceKind::User,
        "/c.toml",
        "[[agents.list]]\nid = \"a\"\nsystemPrompt = \"answer in few words\"\n",
    );
    let config = Loader::new().file(source).load().expect("a configuration");
    let entry = |(name, size, kind): &(&str, u64, ValueKind)| ContextEntry {
        name: Arc::from(*name),
        value: VariableRef { hash: ContentHash::of(name.as_bytes()), size: *size, kind: *kind },
    };
    let check = |agent: &str, values: &[(&str, u64, ValueKind)], names: &[&str], tokens: u64| {
        let context: Vec<_> = values.iter().map(entry).collect();
        let agent = AgentId::parse(agent).expect("the text is no id");
        let (found, estimate) = in_front(&config, &agent, (1_000, 100), &context);
        let expected =
            names.iter().map(|name| (Arc::<str>::from(*name), ContentHash::of(name.as_bytes())));
        assert_eq!(found, expected.collect::<Vec<_>>(), "{values:?}");
        assert_eq!(estimate, tokens, "{values:?}");
    };
    let (text, bytes) = (ValueKind::Text, ValueKind::Bytes);
    check("main", &[], &[], 1_000);
    // The instructions of the agent have 19 bytes.
    check("a", &[], &[], 1_004);
    check("main", &[("v", 60, text)], &["v"], 1_015);
    check("a", &[("v", 60, text)], &["v"], 1_019);
    check("main", &[("v", 60, text), ("w", 41, text), ("x", 40, text)], &["v", "x"], 1_025);
    check("main", &[("v", 60, bytes), ("w", 10, text)], &["w"], 1_002);
    check("main", &[("v", 101, text)], &[], 1_000);
}

#[test]
fn a_short_prefix_is_not_waited_for() {
    let mut prefixes = Prefixes::default();
    assert_eq!(prefixes.add(prefix(None, &[]), Prefixes::LEAST_TOKENS - 1), None);
    assert!(prefixes.add(prefix(None, &[]), Prefixes::LEAST_TOKENS).is_some());
}

#[test]
fn runs_with_the_same_prefix_wait_for_one_and_no_others() {
    let (mut prefixes, id) = primed();
    assert_eq!(prefixes.add(prefix(None, &[]), LONG), Some(id));
    for other in [prefix(Some("opus"), &[]), prefix(None, &["a"])] {
        let other = prefixes.add(other, LONG).expect("it is long enough");
        assert_ne!(other, id);
        assert_eq!(prefixes.waits_until(other, at(2)), None);
    }
    assert_eq!(prefixes.waits_until(id, at(2)), Some(at(31)));
    assert_eq!(prefixes.starts(id, run(2), at(2)), None, "one goes first");
}

#[test]
fn the_first_that_waits_is_told_of_once() {
    let (mut prefixes, id) = primed();
    assert_eq!(prefixes.awaited(id), Some(Priming { run: run(1), tokens: LONG }));
    assert_eq!(prefixes.awaited(id), None);
    assert_eq!(prefixes.answered(id, at(3)), Some(run(1)));
    assert_eq!(prefixes.answered(id, at(4)), None);
    // Where none has waited, nothing is told.
    let (mut prefixes, id) = primed();
    assert_eq!(prefixes.answered(id, at(3)), None);
}

#[test]
fn an_answer_keeps_it_warm_for_five_minutes() {
    let (mut prefixes, id) = primed();
    prefixes.answered(id, at(10));
    assert_eq!(prefixes.starts(id, run(2), at(309)), None);
    // Each answer begins the time anew.
    prefixes.answered(id, at(300));
    assert_eq!(prefixes.starts(id, run(3), at(599)), None);
    assert_eq!(prefixes.starts(id, run(4), at(600)), Some(at(630)));
}

#[test]
fn one_that_ends_without_an_answer_leaves_it_to_the_next() {
    let (mut prefixes, id) = primed();
    prefixes.awaited(id);
    assert_eq!(prefixes.over(id, run(2)), None, "it is not the one that goes first");
    assert_eq!(prefixes.waits_until(id, at(2)), Some(at(31)));
    assert_eq!(prefixes.over(id, run(1)), Some(run(1)));
    assert_eq!(prefixes.waits_until(id, at(2)), None);
    assert_eq!(prefixes.starts(id, run(2), at(2)), Some(at(32)));
}

#[test]
fn one_that_does_not_answer_is_waited_for_no_longer_than_half_a_minute() {
    let (mut prefixes, id) = primed();
    prefixes.awaited(id);
    assert_eq!(prefixes.run_out(at(30)), []);
    assert_eq!(prefixes.waits_until(id, at(31)), None);
    assert_eq!(prefixes.run_out(at(31)), [run(1)]);
    assert_eq!(
        prefixes.starts(id, run(2), at(31)),
        None,
        "the next ones do not wait for each other"
    );
}

#[test]
fn another_supervisor_begins_anew() {
    let (mut prefixes, id) = primed();
    prefixes.answered(id, at(2));
    prefixes.interrupt();
    assert_eq!(prefixes.starts(id, run(2), at(3)), Some(at(33)));
}
