//! Lines that are kept as files: each is what both sides write, and is read as what it says.

use std::collections::BTreeSet;

use offshoot_plugin_abi::wire::line::{
    self, Asked, HostLine, Line, Order, Request, op, raw, read, read_host,
};
use offshoot_plugin_abi::wire::{
    delegate, event, finished, group, launch, manifest, merge, spawn, turn, wait,
};
use offshoot_plugin_abi::{AbiError, event as kinds};

use crate::protocol::{self, CONVERSATIONS};

/// The operations of the protocol.
const OPERATIONS: [&str; 15] = [
    op::DESCRIBE,
    op::INIT,
    op::RUNTIME,
    op::MERGE,
    op::START,
    op::CANCEL,
    op::BEGIN,
    op::PUSH,
    op::FINISH,
    op::DROP,
    op::SHUTDOWN,
    op::EVENT,
    op::SPAWN,
    op::LOG,
    op::CALL,
];

fn lines(side: &str) -> impl Iterator<Item = &'static str> {
    let lines = CONVERSATIONS.iter().flat_map(|conversation| conversation.lines());
    lines.filter_map(move |line| line.strip_prefix(side))
}

/// A request as a host writes it, from what a plugin reads.
fn write_host(line: &HostLine) -> Vec<u8> {
    let json = |text: &str| raw(text, "a line").expect("it is JSON");
    let (id, of, order) = match line {
        HostLine::Answer(id, answer) => return line::answer(*id, answer),
        HostLine::Request { id, of, order } => (*id, *of, order),
    };
    let (mut values, mut name) = (Vec::new(), None);
    let word = match order {
        Order::Describe => op::DESCRIBE,
        Order::Init(config) => {
            values.push(json(config));
            op::INIT
        }
        Order::Runtime(of, config) | Order::Merge(of, config) => {
            (name, values) = (Some(of.as_str()), vec![json(config)]);
            if matches!(order, Order::Runtime(..)) { op::RUNTIME } else { op::MERGE }
        }
        Order::Start(launch) => {
            assert!(launch::decode(launch).is_ok(), "{launch}");
            values.push(json(launch));
            op::START
        }
        Order::Cancel(_) => op::CANCEL,
        Order::Begin(params) => {
            values.push(json(params));
            op::BEGIN
        }
        Order::Push(_, meta, result) => {
            assert!(merge::decode(meta).is_ok(), "{meta}");
            values = vec![json(meta), json(result)];
            op::PUSH
        }
        Order::Finish => op::FINISH,
        Order::Call(of, args) => {
            assert!(turn::decode_letter(args).is_ok(), "{args}");
            (name, values) = (Some(of.as_str()), vec![json(args)]);
            op::CALL
        }
        Order::Drop => op::DROP,
        Order::Shutdown(_) => op::SHUTDOWN,
        Order::Unknown(name) => panic!("`{name}` is no operation"),
    };
    let value = |place: usize| values.get(place).map(|value| &**value);
    let first = |is: bool| value(0).filter(|_| is);
    let request = Request {
        of,
        name,
        config: first(matches!(order, Order::Init(_) | Order::Runtime(..) | Order::Merge(..))),
        launch: first(matches!(order, Order::Start(_))),
        params: first(matches!(order, Order::Begin(_))),
        meta: first(matches!(order, Order::Push(..))),
        args: first(matches!(order, Order::Call(..))),
        result: value(1),
        index: if let Order::Push(index, ..) = order { Some(*index) } else { None },
        grace_ms: if let Order::Cancel(grace) = order { Some(*grace) } else { None },
        timeout_ms: if let Order::Shutdown(limit) = order { Some(*limit) } else { None },
        ..Request::new(word)
    };
    id.map_or_else(|| line::tell(&request), |id| request.line(id))
}

/// A line as a plugin writes it, from what a host reads. Of the answer to a start, `is_outcome`; to a result, `is_pushed`.
fn write_plugin(line: &Line<'_>) -> Vec<u8> {
    let json = |text: &str| raw(text, "a line").expect("it is JSON");
    let (id, of, asked) = match line {
        Line::Answer(id, Err(error)) => return line::answer(*id, &Err(error.clone())),
        Line::Answer(id, Ok(answered)) => {
            let ok = answered.ok.get();
            if ok.contains("\"reason\"") {
                let outcome = answered.outcome().expect("an outcome");
                assert!(finished::decode(outcome.clone()).is_ok(), "{ok}");
                return line::outcome(*id, &Ok(outcome));
            }
            if ok.contains("\"answer\"") {
                return line::pushed(*id, &Ok(answered.early().expect("an answer")));
            }
            if ok.contains("\"runtimes\"") {
                assert!(manifest::decode(ok).is_ok(), "{ok}");
            }
            return line::answer(*id, &Ok(ok.to_owned()));
        }
        Line::Request { id, of, asked } => (*id, *of, asked),
    };
    let (args, fields);
    let request = match asked {
        Asked::Event(kind, payload) => {
            let told = event::decode(*kind, payload).expect("a document");
            assert!(told.is_some(), "{payload}");
            return line::event(of.expect("a run"), *kind, payload).expect("a document");
        }
        Asked::Spawn(request) => {
            assert!(spawn::decode(request).is_ok(), "{request}");
            args = json(request);
            Request { request: Some(&args), ..Request::new(op::SPAWN) }
        }
        Asked::Call(name, text) => {
            let is_read = match &**name {
                "wait" => wait::decode(text).is_ok(),
                "delegate" => delegate::decode(text).is_ok(),
                "observed" => delegate::decode_observed(text).is_ok(),
                "turn_ended" => turn::decode(text).is_ok(),
                "offshoot" => true,
                _ => group::decode(text).is_ok(),
            };
            assert!(is_read, "{name}: {text}");
            args = json(text);
            Request { name: Some(name), args: Some(&args), ..Request::new(op::CALL) }
        }
        Asked::Log { level, target, message, fields: text } => {
            fields = json(text);
            Request {
                level: Some(*level),
                target: Some(target),
                message: Some(message),
                fields: Some(&fields),
                ..Request::new(op::LOG)
            }
        }
        Asked::Unknown(name) => panic!("`{name}` is no operation"),
    };
    let request = Request { of, ..request };
    id.map_or_else(|| line::tell(&request), |id| request.line(id))
}

#[test]
fn each_line_of_a_conversation_is_read_and_written_as_it_stands() {
    let is = |written: Vec<u8>, line: &str| {
        assert_eq!(String::from_utf8(written).expect("it is UTF-8"), format!("{line}\n"));
    };
    for line in lines("> ") {
        is(write_host(&read_host(line).unwrap_or_else(|error| panic!("{error}: {line}"))), line);
    }
    for line in lines("< ") {
        is(write_plugin(&read(line).unwrap_or_else(|error| panic!("{error}: {line}"))), line);
    }
}

#[test]
fn conversations_have_each_operation_and_each_kind_of_event() {
    let all = || CONVERSATIONS.iter().flat_map(|conversation| conversation.lines());
    let has = |part: String| assert!(all().any(|line| line.contains(&part)), "{part}");
    OPERATIONS.iter().for_each(|op| has(format!("\"op\":\"{op}\"")));
    let kinds = [kinds::TEXT, kinds::TOOL_START, kinds::TOOL_END, kinds::USAGE, kinds::STATUS];
    kinds.iter().for_each(|kind| has(format!("\"kind\":{kind},")));
    let known: BTreeSet<_> = OPERATIONS.into_iter().collect();
    assert_eq!(known.len(), OPERATIONS.len());
    // The page shows all of it.
    let page = protocol::text();
    assert!(lines("> ").chain(lines("< ")).all(|line| page.contains(line)));
    assert_eq!(page.matches("```text\n").count() * 2, page.matches("```").count());
}

#[test]
fn a_line_of_later_has_more_and_is_read() {
    let line = r#"{"id":1,"op":"drop","of":4,"colour":{"of":["the","sky"]}}"#;
    let expected = HostLine::Request { id: Some(1), of: Some(4), order: Order::Drop };
    assert_eq!(read_host(line), Ok(expected));
    let unknown =
        Ok(HostLine::Request { id: None, of: None, order: Order::Unknown("sing".into()) });
    assert_eq!(read_host(r#"{"op":"sing"}"#), unknown);
    for (line, expected) in [
        (r#"{"op":"start","id":1}"#, "`start` without `launch`"),
        (r#"{"op":"push","meta":{}}"#, "`push` without `index`"),
        (r#"{"op":"call"}"#, "`call` without `name`"),
        (r#"{"ok":1}"#, "an answer has an `id`"),
        (r#"{"id":1}"#, "it has neither `op`, `ok` nor `error`"),
        ("[]", "it has neither `op`, `ok` nor `error`"),
        ("{", "EOF"),
    ] {
        let error: AbiError = read_host(line).expect_err(line);
        assert!(error.message.contains(expected), "{line}: {error}");
    }
}

#[test]
fn documents_over_several_lines_are_written_as_one() {
    let config = raw("{\n\"a\":\r\n\"b\\n\"}", "settings").expect("it is JSON");
    let line = Request { config: Some(&config), ..Request::new(op::INIT) }.line(1);
    assert_eq!(line.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count(), 1);
    let line = std::str::from_utf8(&line).expect("it is UTF-8");
    assert!(
        matches!(read_host(line), Ok(HostLine::Request { order: Order::Init(text), .. }) if text.contains("b\\n"))
    );
}
