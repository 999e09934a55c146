//! The output of the program, line by line, as typed messages. Pure.
//!
//! Types and fields that are not known here are passed over, and those that are may stand in any order: the program is
//! older or newer than this crate.

use std::time::Duration;

use offshoot_model::ToolUse;
use offshoot_runtime::Secrets;
use serde_json::Value;

use crate::usage::{Spent, Tokens};

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// A turn begins: what the session is made of.
    Init(Init),
    /// The service refused a call, which will be made again.
    Retry(Retry),
    /// A piece of an answer.
    Assistant(Assistant),
    /// The answers of tools, as the model is given them.
    ToolResults(Vec<String>),
    /// A call to the model has begun; what it has read.
    CallBegan(Tokens),
    /// The same call has ended; what it has written.
    CallEnded {
        /// Tokens of the answer.
        output: Option<u64>,
    },
    /// The call is counted in the program's totals.
    CallBooked,
    /// The answer to a request of ours.
    Answer {
        /// The id of the request.
        request: String,
        /// The usage of the session up to now, where it was asked for and the program knows it.
        spent: Option<Spent>,
    },
    /// The service has told how much of a quota is left.
    Quota(Quota),
    /// A turn is over.
    Result(Box<TurnResult>),
    /// The program is done with a message, whether a turn took it or not.
    Done {
        /// The id that it was sent with.
        message: String,
    },
    /// Something else. A sign of life.
    Other,
    /// No message at all.
    Garbage(String),
}

/// The description of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Init {
    /// The session's id.
    pub session: Option<String>,
    /// The program's version.
    pub version: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// Names of the tools it offers to the model.
    pub tools: Vec<String>,
    /// Names and states of the servers it brings tools from.
    pub servers: Vec<(String, String)>,
    /// The ids of the messages that the turn begins with; empty where the program does not tell.
    pub messages: Vec<String>,
}

/// A call that will be made again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retry {
    /// The number of the attempt that follows.
    pub attempt: u64,
    /// The most attempts that there may be.
    pub max_retries: u64,
    /// The wait before it.
    pub delay_ms: u64,
    /// The error: see [`Assistant::error`].
    pub error: String,
}

impl Retry {
    /// The wait before the next attempt, where the service has more to do than it can: that concerns every run that calls it.
    pub fn pressure(&self) -> Option<Duration> {
        let is_pressure = ["rate_limit", "overloaded"].contains(&&*self.error);
        is_pressure.then(|| Duration::from_millis(self.delay_ms))
    }

    /// True if the service has more to do than it can, or is not there.
    pub fn is_pressure(&self) -> bool {
        self.pressure().is_some() || self.error == "connection_failed"
    }
}

/// A piece of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assistant {
    /// The text; empty where there is none.
    pub text: String,
    /// The tools that it uses.
    pub calls: Vec<ToolUse>,
    /// The model that has answered; none where no model has.
    pub model: Option<String>,
    /// Set where the text is not the model's but tells what went wrong, such as `rate_limit` or `authentication_failed`.
    pub error: Option<String>,
}

/// The state of a quota of the account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// True if it is used up, and the call was refused for that.
    pub is_used_up: bool,
    /// The reset, in seconds since the epoch.
    pub resets_at: Option<u64>,
    /// The quota in the words of the service, such as `five_hour`.
    pub window: Option<String>,
    /// The rest of each quota that the service speaks of.
    pub left: Vec<QuotaLeft>,
}

/// The rest of a quota.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaLeft {
    /// The quota in the words of the service.
    pub window: String,
    /// The part that is left, in millionths.
    pub left: u32,
    /// The reset, in seconds since the epoch.
    pub resets_at: u64,
}

/// The end of a turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnResult {
    /// `success`, `error_max_turns` and so on.
    pub subtype: String,
    /// True if the turn failed. So it may be beside the subtype `success` too.
    pub is_error: bool,
    /// The answer, or what went wrong.
    pub result: Option<String>,
    /// The answer in the form of the schema that was asked for, as JSON text.
    pub structured_output: Option<String>,
    /// The errors of the turn.
    pub errors: Vec<String>,
    /// The status of the service's refusal.
    pub api_error_status: Option<u64>,
    /// The usage of the session so far.
    pub spent: Spent,
    /// The ids of the messages that it answers; empty where the program does not tell.
    pub messages: Vec<String>,
}

/// A line that is longer than what is held of it cannot be read, and says nothing about the program.
pub const LONGEST_LINE: usize = 16 * 1024 * 1024;

/// Of garbage this much is kept.
const GARBAGE_BYTES: usize = 200;

/// Reads one line.
pub fn parse(line: &[u8]) -> Line {
    parse_without(&Secrets::default(), line)
}

/// Reads one line. The tools that it uses are told without these secrets.
pub(crate) fn parse_without(secrets: &Secrets, line: &[u8]) -> Line {
    let line = line.trim_ascii();
    if line.is_empty() || line.len() >= LONGEST_LINE {
        return Line::Other;
    }
    let Ok(value @ Value::Object(_)) = serde_json::from_slice::<Value>(line) else {
        let text = String::from_utf8_lossy(&line[..line.len().min(GARBAGE_BYTES)]);
        return Line::Garbage(text.into_owned());
    };
    match (str(&value["type"]), str(&value["subtype"])) {
        ("system", "init") => Line::Init(init(&value)),
        ("system", "api_retry") => Line::Retry(retry(&value)),
        // Messages of an agent inside the program are not those of this run.
        ("assistant", _) if !value["parent_tool_use_id"].is_string() => {
            Line::Assistant(assistant(&value, secrets))
        }
        ("user", _) if !value["parent_tool_use_id"].is_string() => tool_results(&value["message"]),
        ("stream_event", _) => stream_event(&value["event"]),
        ("command_lifecycle", _) => match str(&value["state"]) {
            // `completed`, `cancelled`, `discarded`, `refused`, and what may come.
            "queued" | "started" => Line::Other,
            _ => Line::Done { message: text(&value["command_uuid"]) },
        },
        ("rate_limit_event", _) => Line::Quota(quota(&value["rate_limit_info"])),
        ("control_response", _) => answer(&value["response"]),
        ("result", _) => Line::Result(Box::new(turn_result(value))),
        _ => Line::Other,
    }
}

fn answer(response: &Value) -> Line {
    let request = text(&response["request_id"]);
    Line::Answer { request, spent: Spent::of_session(&response["response"]["session"]) }
}

fn quota(info: &Value) -> Quota {
    let seconds = |value: &Value| {
        let whole = || value.as_f64().filter(|it| *it >= 0.0).map(|it| it as u64);
        value.as_u64().or_else(whole)
    };
    let left = |(window, state): (&String, &Value)| {
        let used = state["utilization"].as_f64().filter(|used| used.is_finite())?;
        let resets_at = seconds(&state["resetsAt"])?;
        // A cast of a float ends at its bounds.
        let left = ((1.0 - used) * 1e6).round() as u32;
        Some(QuotaLeft { window: window.clone(), left, resets_at })
    };
    let windows = info["unifiedWindows"].as_object();
    Quota {
        is_used_up: info["status"] == "rejected",
        resets_at: seconds(&info["resetsAt"]),
        window: info["rateLimitType"].as_str().map(str::to_owned),
        left: windows.into_iter().flatten().filter_map(left).collect(),
    }
}

fn init(value: &Value) -> Init {
    let server = |server: &Value| (text(&server["name"]), text(&server["status"]));
    Init {
        session: value["session_id"].as_str().map(str::to_owned),
        version: value["claude_code_version"].as_str().map(str::to_owned),
        model: value["model"].as_str().map(str::to_owned),
        tools: strings(&value["tools"]),
        servers: items(&value["mcp_servers"]).map(server).collect(),
        messages: strings(&value["user_message_uuids"]),
    }
}

fn retry(value: &Value) -> Retry {
    Retry {
        attempt: value["attempt"].as_u64().unwrap_or_default(),
        max_retries: value["max_retries"].as_u64().unwrap_or_default(),
        delay_ms: value["retry_delay_ms"].as_f64().unwrap_or_default() as u64,
        error: text(&value["error"]),
    }
}

fn assistant(value: &Value, secrets: &Secrets) -> Assistant {
    let content = &value["message"]["content"];
    let of_type = |kind: &'static str| items(content).filter(move |block| block["type"] == kind);
    let texts: Vec<_> = of_type("text").map(|block| str(&block["text"])).collect();
    Assistant {
        text: texts.join("\n"),
        calls: of_type("tool_use").map(|block| tool_use(block, secrets)).collect(),
        // What the program says itself has a name in angle brackets.
        model: value["message"]["model"]
            .as_str()
            .filter(|name| !name.starts_with('<'))
            .map(str::to_owned),
        error: value["error"].as_str().map(str::to_owned),
    }
}

fn tool_results(message: &Value) -> Line {
    let results = items(&message["content"]).filter(|block| block["type"] == "tool_result");
    let results: Vec<String> = results
        .map(|block| match &block["content"] {
            Value::String(text) => text.clone(),
            parts => items(parts).map(|part| str(&part["text"])).collect::<Vec<_>>().join("\n"),
        })
        .filter(|text| !text.trim().is_empty())
        .collect();
    if results.is_empty() { Line::Other } else { Line::ToolResults(results) }
}

fn tool_use(block: &Value, secrets: &Secrets) -> ToolUse {
    match &block["input"] {
        Value::Null => ToolUse::named(str(&block["name"])),
        input => secrets.tool_use(str(&block["name"]), input.clone()),
    }
}

fn stream_event(event: &Value) -> Line {
    match str(&event["type"]) {
        "message_start" => {
            let read = Tokens::of_call(&event["message"]["usage"]);
            Line::CallBegan(read.unwrap_or_default())
        }
        "message_stop" => Line::CallBooked,
        "message_delta" => Line::CallEnded { output: event["usage"]["output_tokens"].as_u64() },
        _ => Line::Other,
    }
}

fn turn_result(mut value: Value) -> TurnResult {
    let structured = value["structured_output"].take();
    TurnResult {
        subtype: text(&value["subtype"]),
        // Without the field, the subtype alone says that it went well.
        is_error: value["is_error"].as_bool().unwrap_or(value["subtype"] != "success"),
        result: value["result"].as_str().map(str::to_owned),
        structured_output: (!structured.is_null()).then(|| structured.to_string()),
        errors: strings(&value["errors"]),
        api_error_status: value["api_error_status"].as_u64(),
        spent: Spent::of_result(&value),
        messages: strings(&value["user_message_uuids"]),
    }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn strings(value: &Value) -> Vec<String> {
    items(value).filter_map(|item| Some(item.as_str()?.to_owned())).collect()
}

fn str(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn text(value: &Value) -> String {
    str(value).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Line) {
        assert_eq!(parse(line.as_bytes()), expected, "{line}");
    }

    #[test]
    fn lines_that_say_little() {
        for line in [
            "",
            "   ",
            r#"{"type":"system","subtype":"ui_invalidate"}"#,
            r#"{"type":"user","message":{}}"#,
            r#"{"type":"of the future","result":"x"}"#,
            r#"{"no":"type"}"#,
            r#"{"type":5}"#,
            r#"{"type":"stream_event","event":{"type":"content_block_delta"}}"#,
            r#"{"type":"command_lifecycle","command_uuid":"m","state":"started"}"#,
            r#"{"type":"assistant","parent_tool_use_id":"t","message":{"content":[]}}"#,
        ] {
            check(line, Line::Other);
        }
        let results = r#"{"type":"user","message":{"content":[{"type":"text","text":"a prompt"},
            {"type":"tool_result","content":"42"},{"type":"tool_result","content":[]},
            {"type":"tool_result","content":[{"type":"text","text":"a"},{"type":"image"},{"text":"b"}]}]}}"#;
        check(results, Line::ToolResults(vec!["42".into(), "a\n\nb".into()]));
        let done = r#"{"type":"command_lifecycle","command_uuid":"m","state":"discarded"}"#;
        check(done, Line::Done { message: "m".into() });
        let refused =
            r#"{"type":"control_response","response":{"subtype":"error","request_id":"7"}}"#;
        check(refused, Line::Answer { request: "7".into(), spent: None });
        check("Warning: x", Line::Garbage("Warning: x".into()));
        check("[1]", Line::Garbage("[1]".into()));
        check(r#"{"type":"resu"#, Line::Garbage(r#"{"type":"resu"#.into()));
    }

    #[test]
    fn keys_stand_in_any_order_and_fields_may_lack() {
        let init = Init { session: Some("s".into()), ..Init::default() };
        check(r#"{"session_id":"s","x":{},"subtype":"init","type":"system"}"#, Line::Init(init));
        let said = Assistant {
            text: "a\nb".into(),
            calls: vec![ToolUse::named("Bash")],
            ..Assistant::default()
        };
        check(
            r#"{"message":{"content":[{"text":"a","type":"text"},{"type":"thinking"},
                {"type":"tool_use","name":"Bash"},{"type":"text","text":"b"}]},"type":"assistant"}"#,
            Line::Assistant(said),
        );
        check(r#"{"type":"assistant","message":7}"#, Line::Assistant(Assistant::default()));
        let retry =
            Retry { attempt: 2, max_retries: 10, delay_ms: 617, error: "overloaded".into() };
        check(
            r#"{"error":"overloaded","retry_delay_ms":617.3,"max_retries":10,"attempt":2,
                "subtype":"api_retry","type":"system"}"#,
            Line::Retry(retry),
        );
    }

    #[test]
    fn a_result_is_a_success_only_where_it_says_so() {
        for (line, is_error) in [
            (r#"{"type":"result","subtype":"success","is_error":false}"#, false),
            (r#"{"type":"result","subtype":"success","is_error":true}"#, true),
            (r#"{"type":"result","subtype":"success"}"#, false),
            (r#"{"type":"result","subtype":"error_max_turns"}"#, true),
            (r#"{"type":"result"}"#, true),
        ] {
            let Line::Result(result) = parse(line.as_bytes()) else { panic!("{line}") };
            assert_eq!(result.is_error, is_error, "{line}");
        }
    }

    #[test]
    fn a_line_that_is_cut_says_nothing() {
        let mut line = vec![b'x'; LONGEST_LINE];
        assert_eq!(parse(&line), Line::Other);
        line.truncate(300);
        assert_eq!(parse(&line), Line::Garbage("x".repeat(200)));
    }
}
