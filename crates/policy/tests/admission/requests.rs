//! Requests that are wrong in themselves, and requests that ask for more than there is.

use std::sync::Arc;

use offshoot_model::{
    ContentHash, ContextEntry, Origin, RefusalCode, SpawnRequest, ValueKind, VariableRef,
};

use crate::tree::{Tree, ask, rights, tokens};

fn entry(name: &str) -> ContextEntry {
    let value = VariableRef { hash: ContentHash::of(b"x"), size: 1, kind: ValueKind::Text };
    ContextEntry { name: name.into(), value }
}

/// `None` where the request is right.
#[track_caller]
fn check(request: SpawnRequest, field: Option<&str>) {
    let tree = Tree::new("");
    let answer = tree.ask(0, &request, Origin::Agent);
    let found = answer.as_ref().err().map(|refusal| {
        assert_eq!(refusal.code, RefusalCode::InvalidRequest, "{refusal}");
        refusal.field.clone().expect("the field is named")
    });
    assert_eq!(found.as_deref(), field, "{request:?}: {answer:?}");
}

fn with(change: impl FnOnce(&mut SpawnRequest)) -> SpawnRequest {
    let mut request = ask("main");
    change(&mut request);
    request
}

#[test]
fn the_field_of_a_wrong_request_is_named() {
    let command = |words: &[&str]| -> Option<Arc<[String]>> {
        Some(words.iter().map(|&word| word.to_owned()).collect())
    };
    check(with(|_| {}), None);
    check(with(|request| request.task = "".into()), Some("task"));
    check(with(|request| request.task = " \n\t".into()), Some("task"));
    for (label, field) in [
        ("", Some("label")),
        ("  ", Some("label")),
        ("a\nb", Some("label")),
        ("a\u{7}b", Some("label")),
        (&"é".repeat(100), None),
        (&"é".repeat(101), Some("label")),
    ] {
        check(with(|request| request.label = Some(label.into())), field);
    }
    check(with(|request| request.context = vec![entry("")]), Some("context"));
    check(with(|request| request.context = vec![entry(&"é".repeat(200))]), None);
    check(with(|request| request.context = vec![entry(&"é".repeat(201))]), Some("context"));
    check(with(|request| request.context = vec![entry("a b"), entry("a_b")]), None);
    check(with(|request| request.context = vec![entry("a"), entry("a")]), Some("context"));
    check(with(|request| request.command = command(&["grep", ""])), None);
    check(with(|request| request.command = command(&[])), Some("command"));
    check(with(|request| request.command = command(&["", "x"])), Some("command"));
    check(with(|request| request.command = command(&["grep", "a\0b"])), Some("command"));
    for (codes, field) in [
        (&[0, 255][..], None),
        (&[], Some("okExit")),
        (&[-1], Some("okExit")),
        (&[0, 256], Some("okExit")),
    ] {
        check(with(|request| request.ok_exit = Some(codes.into())), field);
    }
    check(with(|request| request.model = Some("".into())), Some("model"));
    check(with(|request| request.thinking = Some(" ".into())), Some("thinking"));
    check(with(|request| request.tools = Some(rights(Some(&["read"]), &[]))), None);
    check(with(|request| request.tools = Some(rights(Some(&["re ad"]), &[]))), Some("tools"));
    check(with(|request| request.tools = Some(rights(None, &[""]))), Some("tools"));
    check(with(|request| request.budget = tokens(10)), None);
}

#[test]
fn a_label_that_names_another_run_is_for_pieces_alone() {
    let tree = Tree::new("");
    for (label, reserved) in [
        ("last", true),
        ("main", true),
        ("@3", true),
        ("@30", true),
        ("lasting", false),
        ("@", false),
        ("@x", false),
        ("@3x", false),
        ("3", false),
    ] {
        let request = with(|request| request.label = Some(label.into()));
        assert_eq!(tree.ask(0, &request, Origin::Agent).is_err(), reserved, "{label}");
        assert!(tree.ask(0, &request, Origin::Piece).is_ok(), "a file may be named {label}");
        assert_eq!(offshoot_policy::is_reserved_label(label), reserved, "{label}");
    }
}

#[test]
fn a_command_or_a_piece_may_have_no_task() {
    let tree = Tree::new("");
    let empty = SpawnRequest::default();
    let command = Some(vec!["true".to_owned()].into());
    assert!(tree.ask(0, &empty, Origin::Agent).is_err());
    assert!(tree.ask(0, &empty, Origin::Piece).is_ok());
    assert!(tree.ask(0, &SpawnRequest { command, ..empty }, Origin::Agent).is_ok());
}

#[test]
fn a_request_can_only_shorten_a_time_limit() {
    let check = |configured: u64, asked: Option<u64>, expected: u64| {
        let text = format!("[agents.defaults.subagents]\nrunTimeoutSeconds = {configured}\n");
        let request = with(|request| request.run_timeout_seconds = asked);
        let admission =
            Tree::new(&text).ask(0, &request, Origin::Agent).expect("the request was refused");
        let found = admission.grant.run_timeout_seconds;
        assert_eq!(found, expected, "{asked:?} under {configured}");
    };
    check(60, None, 60);
    check(60, Some(10), 10);
    check(60, Some(60), 60);
    check(60, Some(61), 60);
    check(60, Some(0), 60);
    check(0, None, 0);
    check(0, Some(10), 10);
    check(0, Some(0), 0);
}

#[test]
fn a_request_can_only_narrow_rights() {
    let tree = Tree::new("[agents.defaults.subagents]\ntools = { deny = [\"write\"] }\n");
    let check = |allow: Option<&[&str]>, deny: &[&str], right: &str, expected: bool| {
        let request = with(|request| request.tools = Some(rights(allow, deny)));
        let admission = tree.ask(0, &request, Origin::Agent).expect("the request was refused");
        let found = admission.grant.tools.permits(right);
        assert_eq!(found, expected, "{right} of {allow:?} {deny:?}");
    };
    check(None, &[], "read", true);
    check(None, &[], "write", false);
    check(None, &["read"], "read", false);
    check(Some(&["read"]), &[], "read", true);
    check(Some(&["read"]), &[], "search", false);
    check(Some(&["exec"]), &[], "search", true);
    check(Some(&["exec"]), &[], "write", false);
    // What is asked for and denied in one breath is not asked for.
    check(Some(&["read", "write"]), &["write"], "read", true);
}
