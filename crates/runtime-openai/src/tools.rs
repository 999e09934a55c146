//! The tools that a model is offered, and what its calls of them ask for. Pure.

use std::sync::Arc;
use std::time::Duration;

use offshoot_model::{
    AgentId, Envelope, JsonText, Payload, Refusal, RunId, SpawnRequest, json_error,
};
use offshoot_runtime::{ToolOffer, WaitAnswer, WaitFor, WaitMode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tool {
    /// A child.
    Spawn {
        request: Box<SpawnRequest>,
        /// True if its result is the answer.
        wait: bool,
    },
    /// Results of children.
    Wait(WaitFor),
    /// A part of a value.
    Read(Read),
}

/// A part of a value that was given to this agent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Read {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) offset: u64,
    pub(crate) bytes: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Spawn {
    task: String,
    agent_id: Option<String>,
    label: Option<String>,
    #[serde(default)]
    wait: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Wait {
    #[serde(default)]
    runs: Vec<String>,
    mode: Option<String>,
    timeout_seconds: Option<u64>,
}

/// The results of children, as the model reads them.
#[derive(Serialize)]
struct Waited {
    status: &'static str,
    ended: Vec<Envelope>,
    pending: Vec<RunId>,
}

/// The state of one child so far.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Spawned {
    status: &'static str,
    run_id: RunId,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<Envelope>,
}

/// The tools on offer.
pub(crate) fn offer(may_spawn: bool, may_read: bool) -> Vec<Value> {
    let tool = |name: &str, words: &str, properties: Value, required: &[&str]| {
        let parameters = json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        });
        function(name, words, &parameters)
    };
    let text = |words: &str| json!({"type": "string", "description": words});
    let number = |words: &str| json!({"type": "integer", "minimum": 0, "description": words});
    let mut tools = Vec::new();
    if may_spawn {
        let properties = json!({
            "task": text("What the child is to do. It knows nothing else of this session."),
            "agentId": text("Which agent runs it; this session's own where absent."),
            "label": text("A short name for people."),
            "wait": {"type": "boolean", "description": "Block until the child has ended, and answer with its result."},
        });
        let words = "Start a child session on a task of its own. Answers `accepted` at once, and sessions_wait brings \
                     the result; with `wait: true` it blocks until the child has ended.";
        tools.push(tool("sessions_spawn", words, properties, &["task"]));
        let properties = json!({
            "runs": {"type": "array", "items": {"type": "string"}, "description": "Run ids; where absent, the children that you have not heard of yet."},
            "mode": {"type": "string", "enum": ["all", "any"], "description": "Until all have ended, or until one has."},
            "timeoutSeconds": number("Answer after so many seconds whatever there is; the children go on."),
        });
        let words = "Block until children have ended, and get their results. The same results are given as often as they \
                     are asked for.";
        tools.push(tool("sessions_wait", words, properties, &[]));
    }
    if may_read {
        let properties = json!({
            "name": text("The value's name."),
            "offset": number("The first byte; 0 where absent."),
            "bytes": number("How many bytes at most."),
        });
        let words = "Read a part of a context variable that is too long for the prompt.";
        tools.push(tool("context_read", words, properties, &["name"]));
    }
    tools
}

fn function(name: &str, words: &str, parameters: &Value) -> Value {
    let function = json!({"name": name, "description": words, "parameters": parameters});
    json!({"type": "function", "function": function})
}

/// The tools of the host that a model gets besides: those with which it looks after its children, and says how it goes. Their words
/// go with each request, so the others are left to clients that search for tools.
const OF_THE_HOST: [&str; 6] = [
    "sessions_delegate",
    "sessions_list",
    "sessions_history",
    "sessions_cancel",
    "sessions_report",
    "sessions_status",
];

/// Adds the tools of the host that are for models, and returns their names.
pub(crate) fn offer_of_host(offers: Vec<ToolOffer>, tools: &mut Vec<Value>) -> Vec<Arc<str>> {
    let for_models = |offer: &ToolOffer| OF_THE_HOST.contains(&&*offer.name);
    let mut names = Vec::new();
    for ToolOffer { name, words, schema } in offers.into_iter().filter(for_models) {
        let Ok(parameters) = serde_json::from_str::<Value>(schema.as_str()) else { continue };
        tools.push(function(&name, &words, &parameters));
        names.push(name);
    }
    names
}

/// The answer of a tool of the host; of a long one the middle is left out.
pub(crate) fn of_host(answer: &JsonText, most: usize) -> String {
    let short = without_middle(answer.as_str(), most, "answer are left out: ask for less");
    short.unwrap_or_else(|| answer.as_str().to_owned())
}

/// The beginning and the end of a text that is longer than so many bytes, and between them how much is left out of what.
fn without_middle(text: &str, most: usize, what: &str) -> Option<String> {
    if text.len() <= most {
        return None;
    }
    let head = &text[..text.floor_char_boundary(most / 2)];
    let tail = &text[text.ceil_char_boundary(text.len() - most / 2)..];
    let gone = text.len() - head.len() - tail.len();
    Some(format!("{head}\n[{gone} bytes of this {what}]\n{tail}"))
}

/// Parses a call; refuses one that is wrong in itself.
pub(crate) fn parse(name: &str, arguments: &str) -> Result<Tool, Refusal> {
    match name {
        "sessions_spawn" => {
            let Spawn { task, agent_id, label, wait } = fields(arguments)?;
            let agent = agent_id.as_deref().map(AgentId::parse).transpose();
            let request = SpawnRequest {
                task: task.into(),
                agent: agent.map_err(|error| Refusal::invalid("agentId", error.to_string()))?,
                label: label.map(Into::into),
                ..SpawnRequest::default()
            };
            Ok(Tool::Spawn { request: Box::new(request), wait })
        }
        "sessions_wait" => {
            let Wait { runs, mode, timeout_seconds } = fields(arguments)?;
            let runs = runs.iter().map(|run| run.parse::<RunId>()).collect::<Result<_, _>>();
            let mode = match mode.as_deref() {
                None | Some("all") => WaitMode::All,
                Some("any") => WaitMode::Any,
                Some(other) => {
                    let message = format!("`{other}` is neither all nor any");
                    return Err(Refusal::invalid("mode", message));
                }
            };
            Ok(Tool::Wait(WaitFor {
                runs: runs.map_err(|error| Refusal::invalid("runs", error.to_string()))?,
                mode,
                timeout: timeout_seconds.map(Duration::from_secs),
            }))
        }
        "context_read" => fields(arguments).map(Tool::Read),
        other => Err(Refusal::invalid("name", format!("there is no tool `{other}`"))),
    }
}

/// The answer to a child that was admitted.
pub(crate) fn accepted(run_id: RunId) -> String {
    json_text(&Spawned { status: "accepted", run_id, outcome: None })
}

/// The answer to a child that was waited for; of its result at most so many bytes.
pub(crate) fn ended(run_id: RunId, answer: WaitAnswer, most: usize) -> String {
    let outcome = answer.ended.into_iter().next().map(|envelope| shortened(envelope, most));
    let status = if outcome.is_some() { "ended" } else { "pending" };
    json_text(&Spawned { status, run_id, outcome })
}

/// The answer to a wait; of each result at most so many bytes.
pub(crate) fn waited(mode: WaitMode, answer: WaitAnswer, most: usize) -> String {
    let WaitAnswer { ended, pending } = answer;
    let ended: Vec<_> = ended.into_iter().map(|envelope| shortened(envelope, most)).collect();
    let come = pending.is_empty() || mode == WaitMode::Any && !ended.is_empty();
    json_text(&Waited { status: if come { "ended" } else { "pending" }, ended, pending })
}

/// A result that would fill the conversation, without its middle. The whole of it stays where it is kept.
fn shortened(mut envelope: Envelope, most: usize) -> Envelope {
    let text = match &envelope.data {
        Some(Payload::Text(text)) => text,
        Some(Payload::Json(json)) => json.as_str(),
        Some(Payload::Stored(_)) | None => return envelope,
    };
    if let Some(short) = without_middle(text, most, "result are left out") {
        envelope.data = Some(Payload::text(short));
    }
    envelope
}

pub(crate) fn json_text(answer: &impl Serialize) -> String {
    serde_json::to_string(answer).expect("answers are plain data")
}

fn fields<'a, T: Deserialize<'a>>(arguments: &'a str) -> Result<T, Refusal> {
    // Some models send nothing where nothing is needed.
    let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
    serde_json::from_str(arguments)
        .map_err(|error| Refusal::invalid("arguments", json_error(arguments, &error)))
}

#[cfg(test)]
mod tests {
    use offshoot_model::{Ending, RefusalCode, SessionKey};

    use super::*;

    #[test]
    fn only_what_may_be_used_is_offered() {
        for (may_spawn, may_read, expected) in [
            (false, false, &[][..]),
            (true, false, &["sessions_spawn", "sessions_wait"]),
            (false, true, &["context_read"]),
            (true, true, &["sessions_spawn", "sessions_wait", "context_read"]),
        ] {
            let tools = offer(may_spawn, may_read);
            let names: Vec<_> =
                tools.iter().filter_map(|tool| tool["function"]["name"].as_str()).collect();
            assert_eq!(names, expected);
        }
    }

    #[test]
    fn a_long_result_loses_its_middle() {
        let result = |payload| {
            let run = RunId::from_uuid(uuid::Uuid::nil());
            let key = SessionKey::parse("agent:main:main").expect("a key");
            let envelope = Envelope::of(&Ending::completed(payload), key, run, AgentId::main(), 1);
            let answer = WaitAnswer { ended: vec![envelope], pending: Vec::new() };
            let answer: Value = serde_json::from_str(&ended(run, answer, 10)).expect("JSON");
            answer["outcome"]["data"].clone()
        };
        assert_eq!(result(Payload::text("0123456789")), "0123456789");
        assert_eq!(
            result(Payload::text("0123456789äx")),
            "01234\n[3 bytes of this result are left out]\n89äx"
        );
        assert_eq!(
            result(Payload::json("[1,2,3,4,5,6,7]".to_owned()).expect("JSON")),
            "[1,2,\n[5 bytes of this result are left out]\n,6,7]"
        );
        assert_eq!(result(Payload::json("[1]".to_owned()).expect("JSON")), json!([1]));
    }

    #[test]
    fn calls_become_requests() {
        #[track_caller]
        fn check(name: &str, arguments: &str, expected: Result<Tool, &str>) {
            let found = parse(name, arguments).map_err(|refusal| {
                assert_eq!(refusal.code, RefusalCode::InvalidRequest);
                format!("{}: {}", refusal.field.unwrap_or_default(), refusal.message)
            });
            assert_eq!(found, expected.map_err(str::to_owned), "{arguments}");
        }
        let spawn = |request, wait| Ok(Tool::Spawn { request: Box::new(request), wait });
        let task = SpawnRequest { task: "x".into(), ..SpawnRequest::default() };
        check("sessions_spawn", r#"{"task":"x"}"#, spawn(task.clone(), false));
        let whole =
            SpawnRequest { agent: AgentId::parse("scout").ok(), label: Some("l".into()), ..task };
        check(
            "sessions_spawn",
            r#"{"task":"x","agentId":"scout","label":"l","wait":true}"#,
            spawn(whole, true),
        );
        check("sessions_wait", "", Ok(Tool::Wait(WaitFor::default())));
        let any = WaitFor {
            mode: WaitMode::Any,
            timeout: Some(Duration::from_secs(9)),
            ..WaitFor::default()
        };
        check("sessions_wait", r#"{"mode":"any","timeoutSeconds":9}"#, Ok(Tool::Wait(any)));
        let read = Read { name: "a".into(), offset: 4, bytes: None };
        check("context_read", r#"{"name":"a","offset":4}"#, Ok(Tool::Read(read)));
        check("rm", "{}", Err("name: there is no tool `rm`"));
        check("sessions_wait", r#"{"mode":"some"}"#, Err("mode: `some` is neither all nor any"));
        check("sessions_spawn", "{}", Err("arguments: the key `task` is missing"));
        check("sessions_spawn", r#"{"task":"#, Err("arguments: it ends where a value must stand"));
        assert!(parse("sessions_wait", r#"{"runs":["x"]}"#).is_err());
        assert!(parse("sessions_spawn", r#"{"task":"x","agentId":"no such: name"}"#).is_err());
    }
}
