//! Lines as they are written, by both sides.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::{AbiError, Outcome, event};

/// A request of either side, without its number. Only the fields of its operation are set.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Request<'a> {
    /// The operation.
    pub op: &'a str,
    /// The number of the request that made the runtime, the merge function, the run or the merge that is meant.
    pub of: Option<u64>,
    /// `runtime`, `merge`, `call`: the name of what is asked for.
    pub name: Option<&'a str>,
    /// `init`, `runtime`, `merge`: settings.
    pub config: Option<&'a RawValue>,
    /// `start`: the document of a launch.
    pub launch: Option<&'a RawValue>,
    /// `begin`: the parameters of the merge.
    pub params: Option<&'a RawValue>,
    /// `push`: the place of the result in the request.
    pub index: Option<u32>,
    /// `push`: what is known about the result.
    pub meta: Option<&'a RawValue>,
    /// `push`: the value of the result.
    pub result: Option<&'a RawValue>,
    /// `call`: the arguments.
    pub args: Option<&'a RawValue>,
    /// `cancel`: the time that the run has.
    pub grace_ms: Option<u64>,
    /// `shutdown`: the time that all of it has.
    pub timeout_ms: Option<u64>,
    /// `event`: its kind.
    pub kind: Option<u32>,
    /// `event`: its document; of text, a string.
    pub payload: Option<&'a RawValue>,
    /// `spawn`: its document.
    pub request: Option<&'a RawValue>,
    /// `log`: from 1 (error) to 5 (trace).
    pub level: Option<u32>,
    /// `log`: the part of the plugin.
    pub target: Option<&'a str>,
    /// `log`: the text.
    pub message: Option<&'a str>,
    /// `log`: a JSON object.
    pub fields: Option<&'a RawValue>,
}

/// The members of a request stand in their own object, behind its number.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
struct Answer<'a> {
    id: u64,
    ok: Option<&'a RawValue>,
    body: Option<&'a RawValue>,
    error: Option<Failure<'a>>,
}

#[derive(Serialize)]
struct Failure<'a> {
    code: u32,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a RawValue>,
}

impl<'a> Request<'a> {
    /// A request of this operation.
    pub fn new(op: &'a str) -> Self {
        Self { op, ..Self::default() }
    }

    /// A request to what another request has made.
    pub fn of(self, of: u64) -> Self {
        Self { of: Some(of), ..self }
    }

    /// The line of this request, with its newline, under a number of its sender.
    pub fn line(&self, id: u64) -> Vec<u8> {
        let mut line = format!("{{\"id\":{id},").into_bytes();
        let members = line.len();
        self.write(&mut line);
        // The number takes the place of the brace.
        line.remove(members);
        line
    }

    fn write(&self, line: &mut Vec<u8>) {
        serde_json::to_writer(&mut *line, self).expect("its parts are JSON");
        one_line(line);
    }
}

/// The line of a request that wants no answer, with its newline.
pub fn tell(request: &Request<'_>) -> Vec<u8> {
    let mut line = Vec::new();
    request.write(&mut line);
    line
}

/// The line of an event. Its payload is bare text where it is text.
///
/// # Errors
/// [`AbiError::INVALID`] where a payload that is to be a document is none.
pub fn event(of: u64, kind: u32, payload: &str) -> Result<Vec<u8>, AbiError> {
    let payload = if kind == event::TEXT { text(payload) } else { raw(payload, "event")? };
    let request =
        Request { kind: Some(kind), payload: Some(&payload), ..Request::new(super::op::EVENT) };
    Ok(tell(&request.of(of)))
}

/// The line that answers a request, with its newline.
pub fn answer(id: u64, answer: &Result<String, AbiError>) -> Vec<u8> {
    match answer {
        Ok(json) => ok(id, json, None),
        Err(error) => failed(id, error),
    }
}

/// The line that answers a start: the end of the run.
pub fn outcome(id: u64, outcome: &Result<Outcome, AbiError>) -> Vec<u8> {
    let Outcome { head_json, body } = match outcome {
        Ok(outcome) => outcome,
        Err(error) => return failed(id, error),
    };
    let form = super::read::form_of(head_json).unwrap_or_default();
    let body = match (form.as_str(), std::str::from_utf8(body)) {
        (_, Ok("")) => None,
        ("json", Ok(json)) => raw(json, "outcome").ok(),
        ("text", Ok(body)) => Some(text(body)),
        _ => Some(text(&data_encoding::BASE64.encode(body))),
    };
    ok(id, head_json, body.as_deref())
}

/// The line that answers a pushed result. With an answer the merge needs no more of them.
pub fn pushed(id: u64, early: &Result<Option<String>, AbiError>) -> Vec<u8> {
    match early {
        Ok(None) => ok(id, super::super::NOTHING, None),
        Ok(Some(json)) => ok(id, &format!("{{\"v\":1,\"answer\":{json}}}"), None),
        Err(error) => failed(id, error),
    }
}

fn ok(id: u64, json: &str, body: Option<&RawValue>) -> Vec<u8> {
    match raw(json, "answer") {
        Ok(ok) => line(&Answer { id, ok: Some(&ok), body, error: None }),
        Err(error) => failed(id, &error),
    }
}

fn failed(id: u64, error: &AbiError) -> Vec<u8> {
    let details = raw(&error.detail_json, "details").ok();
    let error = Failure { code: error.code, message: &error.message, details: details.as_deref() };
    line(&Answer { id, ok: None, body: None, error: Some(error) })
}

fn line(answer: &Answer<'_>) -> Vec<u8> {
    let mut line = serde_json::to_vec(answer).expect("its parts are JSON");
    one_line(&mut line);
    line
}

fn text(text: &str) -> Box<RawValue> {
    to_raw_value(text).expect("text is JSON")
}

/// JSON as it stands in a line.
///
/// # Errors
/// [`AbiError::INVALID`] where it is none.
pub fn raw(json: &str, what: &str) -> Result<Box<RawValue>, AbiError> {
    serde_json::from_str(json)
        .map_err(|error| AbiError::new(AbiError::INVALID, format!("{what}: {error}")))
}

/// Ends a line. Between the tokens of a document there may be newlines, which are blanks there; within text there are none.
fn one_line(line: &mut Vec<u8>) {
    line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
    line.push(b'\n');
}
