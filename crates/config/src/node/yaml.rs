//! YAML into the tree: as much of it as front matter uses. A number and a truth value without quotes are that; all other scalars stay
//! untyped text, so that a key's type decides.

use saphyr_parser::{Event, Marker, Parser, ScalarStyle};

use super::{Key, Node, NodeValue, SyntaxError};

/// Deeper nesting is no front matter.
const DEEPEST: usize = 16;

/// Parses one document. Places count from the beginning of this text.
pub(super) fn parse(text: &str) -> Result<Node, SyntaxError> {
    parse_strictly(text).or_else(|error| lines(text).ok_or(error))
}

/// Much front matter is written by hand as `key: any words: even these`, which YAML forbids and its readers take line
/// by line. So do we, where every line is of that form.
fn lines(text: &str) -> Option<Node> {
    let mut entries = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if !line.trim().is_empty() {
            let (name, value) = line.split_once(':')?;
            let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            if name.is_empty() || !name.chars().all(is_name) {
                return None;
            }
            // A value that begins with one of these has another meaning in YAML, and guessing would hide a mistake.
            if value
                .trim_start()
                .starts_with(['&', '*', '!', '|', '>', '[', '{', '"', '\'', '@', '`'])
            {
                return None;
            }
            let offset = at + name.len() + 1 + (value.len() - value.trim_start().len());
            let key = Key { name: name.to_owned(), offset: at, any_case: false };
            entries.push((key, Node::new(NodeValue::Raw(value.trim().to_owned()), offset)));
        }
        at += line.len();
    }
    Some(Node::new(NodeValue::Table(entries), 0))
}

fn parse_strictly(text: &str) -> Result<Node, SyntaxError> {
    let places = text.char_indices().map(|(at, _)| at).collect();
    let mut events = Events { length: text.len(), places, parser: Parser::new_from_str(text) };
    loop {
        match events.next()? {
            (Event::StreamStart | Event::DocumentStart(_), _) => {}
            (Event::StreamEnd, _) => return Ok(Node::new(NodeValue::Table(Vec::new()), 0)),
            first => return events.node(first, 0),
        }
    }
}

struct Events<'a> {
    length: usize,
    /// The byte position of each character: the parser counts characters.
    places: Vec<usize>,
    parser: Parser<'a, saphyr_parser::StrInput<'a>>,
}

impl<'a> Events<'a> {
    fn next(&mut self) -> Result<(Event<'a>, usize), SyntaxError> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => Ok((event, self.offset(&span.start))),
            Some(Err(error)) => {
                let offset = self.offset(error.marker());
                Err(SyntaxError { message: error.info().to_owned(), offset })
            }
            None => Err(self.error(self.length, "the text ends in the middle")),
        }
    }

    fn node(&mut self, first: (Event<'a>, usize), depth: usize) -> Result<Node, SyntaxError> {
        let (event, offset) = first;
        if depth > DEEPEST {
            return Err(self.error(offset, &format!("more than {DEEPEST} levels of nesting")));
        }
        let value = match event {
            Event::Scalar(text, ScalarStyle::Plain, ..) if matches!(&*text, "" | "~" | "null") => {
                NodeValue::Null
            }
            Event::Scalar(text, ScalarStyle::Plain, _, None) => plain(text.into_owned()),
            Event::Scalar(text, ..) => NodeValue::Raw(text.into_owned()),
            Event::SequenceStart(..) => {
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, _) => break NodeValue::List(items),
                        first => items.push(self.node(first, depth + 1)?),
                    }
                }
            }
            Event::MappingStart(..) => {
                let mut entries = Vec::new();
                loop {
                    match self.next()? {
                        (Event::MappingEnd, _) => break NodeValue::Table(entries),
                        (Event::Scalar(name, ..), offset) => {
                            let key = Key { name: name.into_owned(), offset, any_case: false };
                            let first = self.next()?;
                            entries.push((key, self.node(first, depth + 1)?));
                        }
                        (_, offset) => return Err(self.error(offset, "a key must be text")),
                    }
                }
            }
            // References could make a small text a huge one, and no front matter needs them.
            _ => return Err(self.error(offset, "references are not supported here")),
        };
        Ok(Node::new(value, offset))
    }

    fn offset(&self, marker: &Marker) -> usize {
        self.places.get(marker.index()).copied().unwrap_or(self.length)
    }

    fn error(&self, offset: usize, message: &str) -> SyntaxError {
        SyntaxError { message: message.to_owned(), offset }
    }
}

/// True of `007`, which is a number of base eight to some readers, and not of `0` and `0.5`.
fn has_zero_in_front(text: &str) -> bool {
    let digits = text.trim_start_matches(['-', '+']);
    digits.strip_prefix('0').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// A scalar without quotes: a decimal number or a truth value is that, all else is text.
fn plain(text: String) -> NodeValue {
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-');
    match &*text {
        "true" => NodeValue::Bool(true),
        "false" => NodeValue::Bool(false),
        _ if !text.chars().all(is_number) || has_zero_in_front(&text) => NodeValue::Raw(text),
        _ => match (text.parse(), text.parse::<f64>()) {
            (Ok(whole), _) => NodeValue::Integer(whole),
            (_, Ok(_)) => NodeValue::Float(text),
            _ => NodeValue::Raw(text),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scalar_without_quotes_has_a_type() {
        let check = |text: &str, expected: NodeValue| {
            let NodeValue::Table(entries) = parse(text).expect("readable").value else {
                panic!("{text} is no table")
            };
            assert_eq!(entries[0].1.value, expected, "{text}");
        };
        check("a: 7\n", NodeValue::Integer(7));
        check("a: -7\n", NodeValue::Integer(-7));
        check("a: 0.5\n", NodeValue::Float("0.5".into()));
        check("a: 1e3\n", NodeValue::Float("1e3".into()));
        check("a: true\n", NodeValue::Bool(true));
        let raw = |text: &str| NodeValue::Raw(text.into());
        for text in ["yes", "True", "1.2.3", "0x10", "007", "2026-11-28", "-", ".", "inf", "7 a"] {
            check(&format!("a: {text}\n"), raw(text));
        }
        check("a: '7'\n", raw("7"));
        check("a: \"true\"\n", raw("true"));
        check("a: !!str 7\n", raw("7"));
    }

    #[test]
    fn what_yaml_forbids_is_read_line_by_line_if_it_has_only_lines() {
        let check = |text: &str, expected: &[(&str, &str)]| {
            let NodeValue::Table(entries) = parse(text).expect("readable").value else {
                panic!("{text} is no table")
            };
            let found: Vec<_> = entries
                .iter()
                .map(|(key, value)| (key.name.as_str(), value.text().unwrap_or_default()))
                .collect();
            assert_eq!(found.len(), expected.len(), "{text}");
            for ((key, value), (name, words)) in found.iter().zip(expected) {
                assert_eq!((*key, &**value), (*name, *words));
            }
            for (key, value) in &entries {
                assert!(text[key.offset..].starts_with(&key.name));
                let start = value.text().unwrap_or_default();
                assert!(text[value.offset..].contains(start.lines().next().unwrap_or_default()));
            }
        };
        check("", &[]);
        check("a: é\nb: 'x: y'\n", &[("a", "é"), ("b", "x: y")]);
        check("é: ü\nb: |\n  one\n  two\n", &[("é", "ü"), ("b", "one\ntwo\n")]);
        check("a: use it when: always\nb: 2\n", &[("a", "use it when: always"), ("b", "2")]);
    }

    #[test]
    fn errors_have_their_place() {
        let check = |text: &str, expected: (&str, usize)| {
            let error = parse(text).expect_err("not readable");
            assert_eq!((error.message.as_str(), error.offset), expected, "{text}");
        };
        check("a: &x 1\nb: *x\n", ("references are not supported here", 11));
        check("a: 'b\n", ("while scanning a quoted scalar, found unexpected end of stream", 3));
        check("? [a]\n: b\n", ("a key must be text", 2));
    }
}
