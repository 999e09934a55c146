//! Lines as they are read: by a host, and by a plugin.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::op;
use crate::{AbiError, Outcome};

/// One line of a plugin.
#[derive(Debug)]
pub enum Line<'a> {
    /// An answer to the request of this number.
    Answer(u64, Result<Answered<'a>, AbiError>),
    /// A request, with its number where it wants an answer, and the run or merge that makes it.
    Request {
        /// Under which it is to be answered.
        id: Option<u64>,
        /// The run or the merge; none where it is the plugin itself.
        of: Option<u64>,
        /// The request.
        asked: Asked<'a>,
    },
}

/// An answer to a request.
#[derive(Clone, Copy, Debug)]
pub struct Answered<'a> {
    /// The document.
    pub ok: &'a RawValue,
    /// Of an outcome: the answer of the run.
    pub body: Option<&'a RawValue>,
}

/// A request or a notice of a plugin.
#[derive(Debug)]
pub enum Asked<'a> {
    /// An event: its kind, and its payload as it crosses.
    Event(u32, Cow<'a, str>),
    /// A child, by its document.
    Spawn(&'a str),
    /// An operation by its name, and its arguments.
    Call(Cow<'a, str>, &'a str),
    /// A line for the log.
    Log {
        /// From 1 (error) to 5 (trace).
        level: u32,
        /// The part of the plugin.
        target: Cow<'a, str>,
        /// The text.
        message: Cow<'a, str>,
        /// A JSON object, or empty.
        fields: &'a str,
    },
    /// Something that a later version of the protocol has.
    Unknown(Cow<'a, str>),
}

/// One line of a host. It owns its parts: what it asks is done by another thread than that which reads.
#[derive(Debug, PartialEq)]
pub enum HostLine {
    /// An answer to the request of this number.
    Answer(u64, Result<String, AbiError>),
    /// A request, with its number where it wants an answer, and the number of the request that made what it is about.
    Request {
        /// The number under which it is to be answered.
        id: Option<u64>,
        /// The runtime, the merge function, the run or the merge; none where it is the plugin itself.
        of: Option<u64>,
        /// The request.
        order: Order,
    },
}

/// A request of a host.
#[derive(Debug, PartialEq)]
pub enum Order {
    /// Says what the plugin is.
    Describe,
    /// Begins, with settings.
    Init(String),
    /// Makes a runtime: its name and settings.
    Runtime(String, String),
    /// Makes a merge function: its name and settings.
    Merge(String, String),
    /// Starts a run, by the document of its launch.
    Start(String),
    /// Asks a run to end within so many milliseconds.
    Cancel(u64),
    /// Begins a merge, with its parameters.
    Begin(String),
    /// A result: its place, what is known about it, and its value.
    Push(u32, String, String),
    /// Asks for the answer of a merge.
    Finish,
    /// An operation of a run: its name and arguments.
    Call(String, String),
    /// Ends a run or a merge at once.
    Drop,
    /// Ends everything within so many milliseconds.
    Shutdown(u64),
    /// A request that a later version of the protocol has.
    Unknown(String),
}

/// All members that a line may have, of either side.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    #[serde(default)]
    id: Option<u64>,
    #[serde(default, borrow)]
    op: Option<Cow<'a, str>>,
    #[serde(default)]
    of: Option<u64>,
    #[serde(default, borrow, deserialize_with = "present")]
    ok: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    body: Option<&'a RawValue>,
    #[serde(default, borrow)]
    error: Option<Failure<'a>>,
    #[serde(default)]
    kind: Option<u32>,
    #[serde(default, borrow)]
    payload: Option<&'a RawValue>,
    #[serde(default, borrow)]
    request: Option<&'a RawValue>,
    #[serde(default, borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    args: Option<&'a RawValue>,
    #[serde(default)]
    level: Option<u32>,
    #[serde(default, borrow)]
    target: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    message: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    fields: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    config: Option<&'a RawValue>,
    #[serde(default, borrow)]
    launch: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(default)]
    index: Option<u32>,
    #[serde(default, borrow)]
    meta: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(default)]
    grace_ms: Option<u64>,
    #[serde(default)]
    timeout_ms: Option<u64>,
}

#[derive(Deserialize)]
struct Failure<'a> {
    #[serde(default = "failed")]
    code: u32,
    message: String,
    #[serde(default, borrow)]
    details: Option<&'a RawValue>,
}

fn failed() -> u32 {
    AbiError::FAILED
}

/// A value that is null is there.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// The meaning of a line of a plugin.
///
/// # Errors
/// [`AbiError::INVALID`] where it has none.
pub fn read(line: &str) -> Result<Line<'_>, AbiError> {
    let document = document(line)?;
    let Document { id, op: Some(name), of, .. } = document else {
        return document.answer().map(|(id, answer)| Line::Answer(id, answer));
    };
    let lacks = |what: &str| lacks(&name, what);
    let asked = match &*name {
        op::EVENT => {
            let kind = document.kind.ok_or_else(|| lacks("kind"))?;
            let payload = document.payload.ok_or_else(|| lacks("payload"))?.get();
            // Text crosses bare; everything else is a document.
            let payload = match serde_json::from_str::<String>(payload) {
                Ok(text) => Cow::Owned(text),
                Err(_) => Cow::Borrowed(payload),
            };
            Asked::Event(kind, payload)
        }
        op::SPAWN => Asked::Spawn(document.request.ok_or_else(|| lacks("request"))?.get()),
        op::CALL => Asked::Call(
            document.name.ok_or_else(|| lacks("name"))?,
            document.args.map_or("{}", RawValue::get),
        ),
        op::LOG => Asked::Log {
            level: document.level.unwrap_or(3),
            target: document.target.unwrap_or_default(),
            message: document.message.ok_or_else(|| lacks("message"))?,
            fields: document.fields.map_or("", RawValue::get),
        },
        _ => Asked::Unknown(name),
    };
    Ok(Line::Request { id, of, asked })
}

/// The meaning of a line of a host.
///
/// # Errors
/// [`AbiError::INVALID`] where it has none.
pub fn read_host(line: &str) -> Result<HostLine, AbiError> {
    let document = document(line)?;
    let Document { id, op: Some(name), of, .. } = document else {
        let (id, answer) = document.answer()?;
        return Ok(HostLine::Answer(id, answer.map(|answered| answered.ok.get().to_owned())));
    };
    let owned = |value: Option<&RawValue>| value.map(|value| value.get().to_owned());
    let needed = |value, what: &str| owned(value).ok_or_else(|| lacks(&name, what));
    let named = || document.name.as_deref().map(str::to_owned).ok_or_else(|| lacks(&name, "name"));
    let settings = || owned(document.config).unwrap_or_else(|| "{}".to_owned());
    let or_null = |value| owned(value).unwrap_or_else(|| "null".to_owned());
    let order = match &*name {
        op::DESCRIBE => Order::Describe,
        op::INIT => Order::Init(settings()),
        op::RUNTIME => Order::Runtime(named()?, settings()),
        op::MERGE => Order::Merge(named()?, settings()),
        op::START => Order::Start(needed(document.launch, "launch")?),
        op::CANCEL => Order::Cancel(document.grace_ms.unwrap_or_default()),
        op::BEGIN => Order::Begin(or_null(document.params)),
        op::PUSH => {
            let index = document.index.ok_or_else(|| lacks(&name, "index"))?;
            Order::Push(index, needed(document.meta, "meta")?, or_null(document.result))
        }
        op::FINISH => Order::Finish,
        op::CALL => Order::Call(named()?, owned(document.args).unwrap_or_else(|| "{}".to_owned())),
        op::DROP => Order::Drop,
        op::SHUTDOWN => Order::Shutdown(document.timeout_ms.unwrap_or_default()),
        _ => Order::Unknown(name.into_owned()),
    };
    Ok(HostLine::Request { id, of, order })
}

fn document(line: &str) -> Result<Document<'_>, AbiError> {
    serde_json::from_str(line).map_err(|error| AbiError::new(AbiError::INVALID, error.to_string()))
}

fn lacks(name: &str, what: &str) -> AbiError {
    AbiError::new(AbiError::INVALID, format!("`{name}` without `{what}`"))
}

impl<'a> Document<'a> {
    /// The number of a request and its answer.
    fn answer(self) -> Result<(u64, Result<Answered<'a>, AbiError>), AbiError> {
        let invalid = |why: &str| AbiError::new(AbiError::INVALID, why);
        let answer = match (self.ok, self.error) {
            (Some(ok), None) => Ok(Answered { ok, body: self.body }),
            (None, Some(error)) => Err(AbiError {
                code: error.code,
                message: error.message.into(),
                detail_json: error.details.map_or("", RawValue::get).into(),
            }),
            _ => return Err(invalid("it has neither `op`, `ok` nor `error`")),
        };
        let id = self.id.ok_or_else(|| invalid("an answer has an `id`"))?;
        Ok((id, answer))
    }
}

/// The form of an answer, from the head of an outcome: `text`, `json`, `bytes` or `none`. None where the answer is a file.
pub(super) fn form_of(head_json: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Head {
        #[serde(default)]
        output: Value,
    }
    let head: Head = serde_json::from_str(head_json).ok()?;
    head.output.as_str().map(str::to_owned)
}

impl Answered<'_> {
    /// The outcome of a run. Its answer is the member `body` of the line: text for `text`, any JSON for `json`, and text of
    /// Base64 for `bytes`.
    ///
    /// # Errors
    /// [`AbiError::INVALID`] where the body is not what the head says.
    pub fn outcome(&self) -> Result<Outcome, AbiError> {
        let head_json = self.ok.get();
        let form = form_of(head_json);
        let body = match (form.as_deref(), self.body) {
            (_, None) => Vec::new(),
            (Some("json"), Some(body)) => body.get().as_bytes().to_vec(),
            (output, Some(body)) => {
                let text: String = super::super::from_json(body.get(), "outcome: its body")?;
                match output {
                    Some("text" | "none") | None => text.into_bytes(),
                    Some(_) => data_encoding::BASE64.decode(text.as_bytes()).map_err(|error| {
                        let message = format!("outcome: its body is not Base64: {error}");
                        AbiError::new(AbiError::INVALID, message)
                    })?,
                }
            }
        };
        Ok(Outcome { head_json: head_json.into(), body: body.into() })
    }

    /// The answer to a result that was pushed, where the merge needs no more of them: the member `answer` of the document.
    ///
    /// # Errors
    /// [`AbiError::INVALID`] where the document is none.
    pub fn early(&self) -> Result<Option<String>, AbiError> {
        #[derive(Deserialize)]
        struct Pushed<'a> {
            #[serde(default, borrow, deserialize_with = "present")]
            answer: Option<&'a RawValue>,
        }
        let pushed: Pushed<'_> = serde_json::from_str(self.ok.get())
            .map_err(|error| AbiError::new(AbiError::INVALID, format!("push: {error}")))?;
        Ok(pushed.answer.map(|answer| answer.get().to_owned()))
    }
}
