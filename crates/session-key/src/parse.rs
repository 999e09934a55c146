//! The grammar, read once from left to right over canonical text.

use crate::error::ParseKeyErrorKind;
use crate::kind::KeyKind;
use crate::name::{self, NameFault};

/// The beginning of every key.
pub(crate) const PREFIX: &str = "agent:";

/// The shape of a key, found by parsing; with the text it is the whole key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shape {
    /// The byte after the agent id, where the second `:` stands.
    pub(crate) agent_end: u8,
    pub(crate) kind: KeyKind,
    pub(crate) depth: usize,
}

/// A fault and the byte it stands at.
pub(crate) type Fault = (usize, ParseKeyErrorKind);

/// Reads canonical text (trimmed, lower case). Allocates nothing.
pub(crate) fn shape(text: &str) -> Result<Shape, Fault> {
    let Some(after_prefix) = text.strip_prefix(PREFIX) else {
        return Err(missing_prefix(text));
    };
    let (id, rest) = split_token(after_prefix);
    name::check_agent_id(id)
        .map_err(|(at, fault)| (PREFIX.len() + at, ParseKeyErrorKind::AgentId(fault)))?;
    let agent_end = PREFIX.len() + id.len();
    let Some(rest) = rest.filter(|rest| !rest.is_empty()) else {
        return Err((text.len(), ParseKeyErrorKind::NoRest));
    };

    let start = agent_end + 1;
    let (first, after_first) = split_token(rest);
    let (kind, depth) = match (first, after_first) {
        ("main", None) => (KeyKind::Main, 0),
        ("subagent", None) => {
            return Err((text.len(), ParseKeyErrorKind::Segment(NameFault::Empty)));
        }
        ("subagent", Some(segments)) => {
            (KeyKind::Subagent, subagent_depth(segments, start + "subagent:".len())?)
        }
        _ => {
            check_tokens(rest, start)?;
            (KeyKind::Other, 0)
        }
    };
    let agent_end = u8::try_from(agent_end).expect("an agent id has at most 64 bytes");
    Ok(Shape { agent_end, kind, depth })
}

/// Counts the segments of `segment *( ":sub:" segment )`, which begins at byte `start` of the key.
fn subagent_depth(segments: &str, start: usize) -> Result<usize, Fault> {
    let mut depth = 0;
    let mut at = start;
    let mut left = segments;
    loop {
        let (segment, after) = split_token(left);
        name::check_segment(segment)
            .map_err(|(offset, fault)| (at + offset, ParseKeyErrorKind::Segment(fault)))?;
        depth += 1;
        at += segment.len() + 1;
        let Some(after) = after else { return Ok(depth) };

        let (word, after) = split_token(after);
        if word != "sub" {
            return Err((at, ParseKeyErrorKind::NotSub));
        }
        at += word.len();
        let Some(after) = after else {
            return Err((at, ParseKeyErrorKind::Segment(NameFault::Empty)));
        };
        at += 1;
        left = after;
    }
}

/// Checks the tokens of a key of another kind, which begin at byte `start` of the key.
fn check_tokens(tokens: &str, start: usize) -> Result<(), Fault> {
    let mut at = start;
    for token in tokens.split(':') {
        if token.is_empty() {
            return Err((at, ParseKeyErrorKind::EmptyToken));
        }
        let stray = token.char_indices().find(|(_, c)| c.is_whitespace() || c.is_control());
        if let Some((offset, character)) = stray {
            return Err((at + offset, ParseKeyErrorKind::TokenCharacter(character)));
        }
        at += token.len() + 1;
    }
    Ok(())
}

/// Points at the first byte that is not that of the prefix, so at the end of `agent`.
fn missing_prefix(text: &str) -> Fault {
    if text.is_empty() {
        return (0, ParseKeyErrorKind::Empty);
    }
    let agreed = text.bytes().zip(PREFIX.bytes()).take_while(|(ours, theirs)| ours == theirs);
    (agreed.count(), ParseKeyErrorKind::Prefix)
}

fn split_token(text: &str) -> (&str, Option<&str>) {
    match text.split_once(':') {
        Some((token, after)) => (token, Some(after)),
        None => (text, None),
    }
}
