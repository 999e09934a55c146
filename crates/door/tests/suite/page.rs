//! The example of `docs/protocol.md` is a client.

use std::process::{Command, Stdio};

use offshoot_door::CallerKind;

use super::{Heard, House};

const PAGE: &str = include_str!("../../../../docs/protocol.md");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_in_python_talks_to_a_server() {
    let mut house = House::new();
    let (_, example) = PAGE.split_once("```python\n").expect("the page has one");
    let (example, _) = example.split_once("```").expect("the text has no end");
    let ticket = offshoot_door::Ticket::mint().unwrap();
    house.tickets.admit(super::run(1), ticket.clone());
    #[expect(clippy::disallowed_methods, reason = "a child of a test, which waits for it")]
    let python = Command::new("python3")
        .args(["-c", example, "one", "two"])
        .env("OFFSHOOT_SOCKET", house.path())
        .env("OFFSHOOT_TICKET", ticket.expose())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn();
    let python = match python {
        Ok(python) => python,
        Err(error) => {
            return offshoot_test_support::skip(
                "the example of the page",
                &format!("no python3: {error}"),
            );
        }
    };
    house.tickets.started(super::run(1), offshoot_door::process_identity(python.id()));
    let output = tokio::task::spawn_blocking(|| python.wait_with_output()).await.unwrap().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "84\n");
    let report = Heard::Report(CallerKind::Run(super::run(1)), "2 of 2 are counted".into());
    assert_eq!(house.heard().await, report);
}
