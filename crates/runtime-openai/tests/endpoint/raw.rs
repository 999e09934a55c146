//! Answers byte for byte: what endpoints send that no scripted one would.

use offshoot_model::{Reason, Stream, Usage};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use crate::common::{Listener, Place, launch, request, text};

/// Returns the result of one answer with these headers and this body, after which the connection ends.
async fn answered(headers: &str, body: &str) -> (Result<String, String>, Usage) {
    heard(headers, body, Listener::default()).await
}

/// The same before this listener.
async fn heard(headers: &str, body: &str, listener: Listener) -> (Result<String, String>, Usage) {
    let server = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = server.local_addr().expect("an address").port();
    let place = Place::with([], |options| {
        options.base_url = format!("http://127.0.0.1:{port}/v1");
        options.retries.count = 0;
    });
    let serve = async {
        let (mut stream, _) = server.accept().await.expect("a call");
        request(&mut stream).await.expect("a request");
        let answer = format!("HTTP/1.1 {headers}\r\nconnection: close\r\n\r\n{body}");
        // One that has heard enough hangs up.
        let _ = stream.write_all(answer.as_bytes()).await;
        let _ = stream.shutdown().await;
    };
    let ((finished, _), ()) = tokio::join!(place.run_with(launch("go"), listener), serve);
    let answer = match &finished.reason {
        Reason::Completed { .. } => Ok(text(&finished).to_owned()),
        Reason::RuntimeError { message, .. } => Err(message.replace(&port.to_string(), "PORT")),
        other => panic!("{other:?}"),
    };
    (answer, finished.usage.expect("no usage was reported"))
}

const EVENTS: &str = "200 OK\r\ncontent-type: text/event-stream";
const GARBAGE: &str = "http://127.0.0.1:PORT sent what is no answer of a chat";
const JSON: &str = "200 OK\r\ncontent-type: application/json";

async fn check(headers: &str, body: &str, expected: Result<&str, &str>) -> Usage {
    let (found, usage) = answered(headers, body).await;
    match expected {
        Ok(text) => assert_eq!(found.as_deref(), Ok(text), "{body}"),
        Err(begin) => {
            let message = found.expect_err(body);
            assert!(message.starts_with(begin), "{body}: {message}");
        }
    }
    usage
}

fn is_estimated(usage: &Usage) -> bool {
    usage.total().known().is_none() && usage.total().charged() > 100
}

#[tokio::test]
async fn ends_that_are_ends() {
    let said = r#"data: {"choices":[{"delta":{"content":"a"},"finish_reason":null}]}"#;
    let stop = r#"data: {"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
    check(EVENTS, &format!("{said}\n\n{stop}\n\ndata: [DONE]\n\n"), Ok("a")).await;
    check(EVENTS, &format!("{said}\r\n\r\n{stop}\r\n\r\n"), Ok("a")).await;
    check(EVENTS, &format!("{said}\n\n{stop}"), Ok("a")).await;
    check(EVENTS, &format!("{said}\n\ndata: [DONE]\n\n"), Ok("a")).await;
    let whole = r#"{"choices":[{"message":{"content":"whole"},"finish_reason":"stop"}],"usage":{"prompt_tokens":2,"completion_tokens":1}}"#;
    let usage = check(JSON, whole, Ok("whole")).await;
    assert_eq!(usage.total().known(), Some(3));
    for count in ["-2", "2.5", "\"2\"", "18446744073709551615"] {
        let usage =
            check(JSON, &whole.replacen(":2,", &format!(":{count},"), 1), Ok("whole")).await;
        assert!(is_estimated(&usage), "{count} is no count: {usage:?}");
    }
}

#[tokio::test]
async fn ends_that_are_none() {
    let nothing = Err("the service ended its answer before it had begun");
    check(EVENTS, "data: [DONE]\n\n", nothing).await;
    let said = r#"data: {"choices":[{"delta":{"content":"a"},"finish_reason":null}]}"#;
    for body in [
        String::new(),
        said.to_owned(),
        format!("{said}\n\n"),
        format!("{said}\n\n{}", &said[..20]),
    ] {
        let usage = check(EVENTS, &body, Err("the answer broke off")).await;
        assert!(is_estimated(&usage), "{usage:?}");
    }
    check(
        JSON,
        r#"{"choices":[{"mess"#,
        Err("http://127.0.0.1:PORT sent what is no answer of a chat"),
    )
    .await;
    let short = "200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 500";
    check(short, &format!("{said}\n\n"), Err("the answer broke off: ")).await;
}

#[tokio::test]
async fn an_answer_that_was_cut_short_is_none_and_is_charged() {
    let short = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"length\"}]}\n\n\
                 data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}\n\n\
                 data: [DONE]\n\n";
    let usage = check(EVENTS, short, Err("the model came to the end of its tokens")).await;
    assert_eq!(usage.total().known(), Some(10));
}

#[tokio::test]
async fn what_is_no_service() {
    let html = "200 OK\r\ncontent-type: text/html";
    check(html, "<html>Please log in</html>", Err(GARBAGE)).await;
    check(
        "307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/",
        "",
        Err("the service answered 307: Temporary Redirect"),
    )
    .await;
    check(
        "502 Bad Gateway",
        "<html>nginx</html>",
        Err("the service answered 502: <html>nginx</html>"),
    )
    .await;
    check(
        "404 Not Found\r\ncontent-type: application/json",
        r#"{"error":"model 'x' not found"}"#,
        Err("the service answered 404: model 'x' not found"),
    )
    .await;
}

/// An answer reaches those who follow it as it comes, and half a secret at the end of a bit is held back.
#[tokio::test]
async fn words_are_told_as_they_come_without_secrets_across_their_borders() {
    let bit = |text: &str| {
        let content = serde_json::to_string(text).expect("a text");
        format!("data: {{\"choices\":[{{\"delta\":{{\"content\":{content}}}}}]}}\n\n")
    };
    let check = async |bits: &[&str], end: &str, expected: &str| {
        let body: String = bits.iter().map(|text| bit(text)).collect();
        let listener = Listener::default();
        drop(heard(EVENTS, &format!("{body}{end}"), listener.clone()).await);
        let blocks = listener.said();
        assert!(blocks.len() > 1, "they come one by one: {blocks:?}");
        assert!(blocks.iter().all(|(stream, _)| *stream == Stream::Stdout), "{blocks:?}");
        let text: String = blocks.into_iter().map(|(_, text)| text).collect();
        assert_eq!(text, expected);
    };
    let done =
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let words = ["half of a long sentence, ", "and the key sk-se", "cret\nin the next line"];
    let told = "half of a long sentence, and the key [redacted]\nin the next line\n";
    check(&words, done, told).await;
    check(&["one\n", "two\n"], done, "one\ntwo\n").await;
    // One that breaks off: its words were told, and the next line is one of its own.
    check(&["half of it", " and the re"], "", "half of it and the re\n").await;
}
