//! What a host writes.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::AbiError;

/// A request to a plugin, without its number. Only the fields of its operation are set.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Request<'a> {
    /// The operation.
    pub op: &'a str,
    /// The number of the request that made the runtime, the merge function, the run or the merge that is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<u64>,
    /// `runtime`, `merge`, `call`: the name of what is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'a str>,
    /// `init`, `runtime`, `merge`: settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<&'a RawValue>,
    /// `start`: the document of a launch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launch: Option<&'a RawValue>,
    /// `begin`: the parameters of the merge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<&'a RawValue>,
    /// `push`: the place of the result in the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    /// `push`: what is known about the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta: Option<&'a RawValue>,
    /// `push`: the value of the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<&'a RawValue>,
    /// `call`: the arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<&'a RawValue>,
    /// `cancel`: the time that the run has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
    /// `shutdown`: the time that all of it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// The members of a request stand in their own object, behind its number.
#[derive(Serialize)]
struct Answer<'a> {
    id: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ok: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
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

/// The line that answers a request of the plugin, with its newline.
pub fn answer(id: u64, answer: &Result<String, AbiError>) -> Vec<u8> {
    let raw = |json: &'_ str| serde_json::from_str::<Box<RawValue>>(json).ok();
    let (ok, details) = match answer {
        Ok(json) => (raw(json), None),
        Err(error) => (None, raw(&error.detail_json)),
    };
    let error = answer.as_ref().err().map(|error| Failure {
        code: error.code,
        message: &error.message,
        details: details.as_deref(),
    });
    let mut line =
        serde_json::to_vec(&Answer { id, ok: ok.as_deref(), error }).expect("its parts are JSON");
    one_line(&mut line);
    line
}

/// Ends a line. Between the tokens of a document there may be newlines, which are blanks there; within text there are none.
fn one_line(line: &mut Vec<u8>) {
    line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
    line.push(b'\n');
}
