//! The service as a client sees it: bytes over a connection.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use offshoot_fake_model_api::{
    Break, Condition, FakeModelApi, Recorded, Reply, Rule, Script, Usage,
};
use serde_json::{Value, json};

fn start(rules: impl IntoIterator<Item = Rule>) -> FakeModelApi {
    FakeModelApi::start(Script::new(rules)).expect("a free port")
}

fn connect(api: &FakeModelApi) -> TcpStream {
    let url = api.url();
    let address = url.strip_prefix("http://").expect("an address without TLS");
    let stream = TcpStream::connect(address).expect("the connection was refused");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit for the test");
    stream
}

fn send(api: &FakeModelApi, head: &str, body: &str) -> TcpStream {
    let mut stream = connect(api);
    let length = body.len();
    let request = format!(
        "{head} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).expect("the reader is gone");
    stream
}

fn exchange(api: &FakeModelApi, head: &str, body: &str) -> String {
    let mut answer = String::new();
    send(api, head, body).read_to_string(&mut answer).expect("it answers");
    answer
}

fn ask(api: &FakeModelApi, prompt: &str) -> String {
    exchange(api, "POST /v1/messages?beta=true", &question(prompt, true))
}

fn question(prompt: &str, stream: bool) -> String {
    let messages = json!([{"role": "user", "content": prompt}]);
    json!({"model": "m", "stream": stream, "messages": messages}).to_string()
}

/// The values after `data: `, whatever the framing around them.
fn events(answer: &str) -> Vec<Value> {
    let data = answer.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).expect("an event is JSON")).collect()
}

#[test]
fn a_message_comes_as_events() {
    let usage = Usage { input: 3, output: 4, cache_read: 1, cache_write: 2 };
    let api = start([Rule::always(Reply::text("you said {{prompt}}")).usage(usage)]);
    let answer = ask(&api, "hi");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream"), "{answer}");
    let events = events(&answer);
    let kinds: Vec<_> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    let expected = [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(events[0]["message"]["usage"]["cache_creation_input_tokens"], 2);
    assert_eq!(events[2]["delta"]["text"], "you said hi");
    assert_eq!(events[4]["usage"]["output_tokens"], 4);
}

#[test]
fn a_message_comes_whole_where_no_stream_is_asked_for() {
    let api = start([Rule::always(Reply::call("Bash", json!({"command": "echo {{prompt}}"})))]);
    let answer = exchange(&api, "POST /v1/messages", &question("hi", false));
    assert!(answer.contains("content-type: application/json"), "{answer}");
    assert!(answer.contains(r#""input":{"command":"echo hi"}"#), "{answer}");
    assert!(answer.contains(r#""stop_reason":"tool_use""#), "{answer}");
}

#[test]
fn errors_have_their_status_and_their_time() {
    let named = |name: &str| Condition::Prompt(name.to_owned());
    let api = start([
        Rule::when(named("limit"), Reply::rate_limit(Duration::from_secs(3))),
        Rule::when(named("load"), Reply::overloaded()),
        Rule::when(named("key"), Reply::unauthorized()),
    ]);
    let limit = ask(&api, "limit");
    assert!(limit.starts_with("HTTP/1.1 429 "), "{limit}");
    assert!(limit.contains("retry-after: 3\r\n"), "{limit}");
    assert!(limit.contains(r#""type":"rate_limit_error""#), "{limit}");
    assert!(ask(&api, "load").starts_with("HTTP/1.1 529 "));
    assert!(ask(&api, "key").starts_with("HTTP/1.1 401 "));
    let none = ask(&api, "what");
    assert!(none.starts_with("HTTP/1.1 400 ") && none.contains("what"), "{none}");
}

#[test]
fn other_questions() {
    let api = start([]);
    assert!(exchange(&api, "HEAD /", "").starts_with("HTTP/1.1 200 "));
    let tokens = exchange(&api, "POST /v1/messages/count_tokens", &question("hi", false));
    assert!(tokens.contains("\"input_tokens\":"), "{tokens}");
    assert!(exchange(&api, "GET /elsewhere", "").starts_with("HTTP/1.1 404 "));
    let methods: Vec<_> = api.requests().into_iter().map(|request| request.method).collect();
    assert_eq!(methods, ["HEAD", "POST", "GET"]);
}

#[test]
fn every_request_is_recorded() {
    let api = start([
        Rule::when(Condition::Prompt("a".into()), Reply::text("x")).times(1),
        Rule::always(Reply::text("y")),
    ]);
    for prompt in ["a", "a", "b"] {
        ask(&api, prompt);
    }
    let rules: Vec<_> = api.requests().iter().map(|request: &Recorded| request.rule).collect();
    assert_eq!(rules, [Some(0), Some(1), Some(1)]);
    let prompts: Vec<_> =
        api.conversations().into_iter().map(|conversation| conversation.prompt).collect();
    assert_eq!(prompts, ["a", "a", "b"]);
}

#[test]
fn streams_break_as_told() {
    let cut = start([Rule::always(Reply::Broken(Break::Cut))]);
    let mut answer = Vec::new();
    send(&cut, "POST /v1/messages", &question("x", true))
        .read_to_end(&mut answer)
        .expect("an end of the connection is no error of reading");
    let answer = String::from_utf8(answer).expect("text");
    assert!(!answer.ends_with("0\r\n\r\n"), "a whole response would end so: {answer}");
    let garbage = start([Rule::always(Reply::Broken(Break::Garbage))]);
    assert!(ask(&garbage, "x").contains("{not json"));
    let overloaded = start([Rule::always(Reply::Broken(Break::Overloaded))]);
    assert!(ask(&overloaded, "x").contains("event: error\n"));
}

#[tokio::test]
async fn one_that_hangs_ends_with_the_service() {
    let api = start([Rule::always(Reply::Hang)]);
    let mut waiting = send(&api, "POST /v1/messages", &question("x", true));
    api.arrived(1).await;
    waiting.set_read_timeout(Some(Duration::from_millis(50))).expect("a limit");
    let early = waiting.read(&mut [0; 16]).map_err(|error| error.kind());
    assert_eq!(early, Err(io::ErrorKind::WouldBlock), "nothing comes");
    waiting.set_read_timeout(None).expect("no limit");
    drop(api);
    let end = waiting.read(&mut [0; 16]);
    assert!(matches!(end, Ok(0) | Err(_)), "the connection is over: {end:?}");
}

#[test]
fn what_is_no_request_hurts_no_other_client() {
    let api = start([Rule::always(Reply::text("here"))]);
    let mut garbage = connect(&api);
    garbage.write_all(&[0xff; 4096]).expect("the reader is gone");
    garbage.shutdown(Shutdown::Write).expect("an open connection");
    assert!(exchange(&api, "POST /v1/messages", "{no json").contains("here"));
    assert!(ask(&api, "x").contains("here"));
}

#[test]
fn a_slow_answer_is_whole() {
    let api = start([Rule::always(Reply::Slow { text: "one two three".into(), pause_ms: 1 })]);
    let answer = ask(&api, "x");
    let text: String =
        events(&answer).iter().filter_map(|event| event["delta"]["text"].as_str()).collect();
    assert_eq!(text, "one two three");
}

#[test]
fn the_same_rules_answer_in_other_protocols() {
    let call = Reply::call("f", json!({"of": "{{prompt}}"}));
    let api = start([
        Rule::when(Condition::Result("fig".into()), Reply::text("{{result:/fruit}}, {{model}}")),
        Rule::when(Condition::Prompt("go".into()), call),
    ]);
    let result = r#"it said {"fruit": "fig"}"#;
    let responses = |input: Value, stream: bool| {
        let body = json!({"model": "m", "input": input, "stream": stream}).to_string();
        exchange(&api, "POST /v1/responses", &body)
    };
    let asked = events(&responses("go".into(), true));
    let called = asked.iter().find(|event| event["type"] == "response.output_item.done");
    assert_eq!(called.expect("a call")["item"]["arguments"], r#"{"of":"go"}"#);
    let ended = asked.last().expect("events");
    assert_eq!(ended["type"], "response.completed");
    assert_eq!(ended["response"]["usage"]["total_tokens"], 15);
    let input = json!([{"type": "function_call_output", "output": result}]);
    let answer = responses(input, false);
    assert!(answer.contains(r#""text":"fig, m""#), "{answer}");
    let none = responses("what".into(), true);
    assert!(none.starts_with("HTTP/1.1 400 ") && none.contains(r#""code":400"#), "{none}");

    let gemini = |method: &str, part: Value| {
        let contents = json!({"contents": [{"role": "user", "parts": [part]}]}).to_string();
        exchange(&api, &format!("POST /v1beta/models/g:{method}"), &contents)
    };
    let stream = gemini("streamGenerateContent?alt=sse", json!({"text": "go"}));
    let [called, ended] = &events(&stream)[..] else { panic!("{stream}") };
    let call = &called["candidates"][0]["content"]["parts"][0]["functionCall"];
    assert_eq!(call, &json!({"name": "f", "args": {"of": "go"}}));
    assert_eq!(ended["candidates"][0]["finishReason"], "STOP");
    assert_eq!(ended["usageMetadata"]["totalTokenCount"], 15);
    let result = json!({"functionResponse": {"name": "f", "response": {"output": result}}});
    let answer = gemini("generateContent", result);
    assert!(answer.contains(r#""parts":[{"text":"fig, g"}]"#), "{answer}");
    let none = gemini("generateContent", json!({"text": "what"}));
    assert!(none.contains(r#""status":"INVALID_ARGUMENT""#), "{none}");
    let tokens = gemini("countTokens", json!({"text": "go"}));
    assert!(tokens.contains(r#"{"totalTokens":"#), "{tokens}");
    assert_eq!(api.conversations().len(), 6, "to count is no conversation");
}
