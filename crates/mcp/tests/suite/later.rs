//! A server that gets its client of the door when it needs one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use offshoot_door::{ClientError, ErrorCode};
use offshoot_mcp::{ClientSource, Opener};
use serde_json::json;

use super::*;

/// Serves a client by a source that works only from the second time on; with how often it was tried.
async fn house(visitor: Client) -> (RunningService<RoleClient, ()>, Arc<AtomicUsize>) {
    let tried = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&tried);
    let opener: Opener = Box::new(move || {
        let (visitor, time) = (visitor.clone(), counter.fetch_add(1, Ordering::Relaxed));
        let message = "the door is stuck".to_owned();
        let stuck = ClientError::Failed {
            method: "open",
            code: ErrorCode::Failed,
            message,
            hint: Some("push".to_owned()),
        };
        async move { if time == 0 { Err(stuck) } else { Ok(visitor) } }.boxed()
    });
    let (here, there) = tokio::io::duplex(1 << 20);
    let (input, output) = tokio::io::split(there);
    #[expect(clippy::disallowed_methods, reason = "it ends with its client")]
    tokio::spawn(serve(ClientSource::Later(opener), Options::default(), input, output));
    let client = ().serve(here).await.expect("they shake hands");
    (client, tried)
}

#[tokio::test]
async fn nothing_is_opened_before_a_call_and_then_once() {
    // The door of another house, of which only the way in is used.
    let full = House::with(false, Options::default()).await;
    let visitor = Client::connect(full.door.path(), &full.registry, None).await;
    let visitor = visitor.expect("the operator may come");
    let (client, tried) = house(visitor).await;
    let tools = client.list_all_tools().await.expect("a list");
    assert_eq!(tools[0].name, "sessions_spawn", "a root of its own may spawn");
    assert_eq!(tried.load(Ordering::Relaxed), 0);

    let status = || client.call_tool(params("sessions_status", json!({})));
    let stuck = status().await.expect("a result");
    assert_eq!(stuck.is_error, Some(true));
    let words = stuck.structured_content.expect("words");
    assert_eq!((&words["code"], &words["hint"]), (&json!("failed"), &json!("push")));
    assert!(words["message"].as_str().is_some_and(|said| said.contains("the door is stuck")));

    let (one, other) = tokio::join!(status(), status());
    for answer in [one, other] {
        let status = answer.expect("a result").structured_content.expect("a status");
        assert_eq!(status["maxDepth"], 3);
    }
    assert_eq!(tried.load(Ordering::Relaxed), 2, "tried again, and then kept");
    // Now the door tells what may be used.
    let tools = client.list_all_tools().await.expect("a list");
    assert_eq!(tools[0].name, "sessions_report");
    full.close().await;
}
