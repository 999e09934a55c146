//! Questions and answers.

use futures_util::future::join_all;
use offshoot_door::{
    CallerKind, CallerWord, Client, ClientError, ContextPut, ErrorCode, FEATURES, History, Limits,
    List, Merge, MergeOrder, Report, RunName, Spawn, Status, Value, Wait,
};
use offshoot_model::{JsonText, ProcessIdentity, RunId, ValueKind};

use super::{FAR, Heard, House, RawClient, run};

#[tokio::test]
async fn a_client_is_told_as_whom_it_asks() {
    let mut house = House::new();
    let client = house.client().await;
    let welcome = client.welcome();
    assert_eq!((welcome.protocol, welcome.caller, welcome.run_id), (1, CallerWord::Operator, None));
    assert_eq!(welcome.features, FEATURES);
    assert_eq!(client.call(Status {}).await.unwrap().caller, CallerWord::Operator);
    client.call(Report { text: "line 1\nline 2 ü".into() }).await.unwrap();
    let report = Heard::Report(CallerKind::Operator, "line 1\nline 2 ü".into());
    assert_eq!(house.heard().await, report);
}

#[tokio::test]
async fn a_refusal_is_an_answer() {
    let house = House::new();
    let client = house.client().await;
    let error = client.call(Spawn::task("too deep")).await.unwrap_err();
    assert_eq!(error.to_string(), "the supervisor refused: Maximum subagent depth");
    assert_eq!(error.hint(), Some("do it yourself"));
    let ClientError::Refused(refused) = error else { panic!("a refusal") };
    assert_eq!((refused.status.as_str(), refused.code.as_str()), ("forbidden", "depth_limit"));
    assert_eq!(client.call(Spawn::task("fine")).await.unwrap().run_id, run(7));
}

#[tokio::test]
async fn what_cannot_be_done_is_said() {
    let house = House::new();
    let client = house.client().await;
    let order = MergeOrder { strategy: "sum".into(), ..MergeOrder::default() };
    let merge = Merge { order, runs: vec![], results: vec![] };
    let error = client.call(merge).await.unwrap_err();
    assert_eq!(error.to_string(), "the supervisor cannot answer `merge`: no merge here");
    assert!(matches!(error, ClientError::Failed { code: ErrorCode::Failed, .. }));
}

#[tokio::test]
async fn many_questions_are_open_at_once_and_none_waits_for_another() {
    let mut house = House::new();
    let client = house.client().await;
    let waiting = client.call(Wait::default());
    let others = async {
        assert_eq!(house.heard().await, Heard::WaitBegan);
        let calls = (0..200).map(|number| {
            let client = client.clone();
            async move {
                let name = number.to_string();
                let value = Value::Text("x".repeat(number));
                let answer = client.call(ContextPut::new(name, value)).await.unwrap();
                assert_eq!(answer.name, number.to_string());
                assert_eq!((answer.kind, answer.size), (ValueKind::Text.into(), number as u64));
            }
        });
        join_all(calls).await;
    };
    tokio::select! {
        answer = waiting => panic!("nothing ends this wait: {answer:?}"),
        () = others => {}
    }
    assert_eq!(house.heard().await, Heard::WaitDropped);
}

#[tokio::test]
async fn a_call_that_is_dropped_is_cancelled_and_the_connection_goes_on() {
    let mut house = House::new();
    let client = house.client().await;
    {
        let wait = client.call(Wait::default());
        tokio::pin!(wait);
        tokio::select! {
            answer = &mut wait => panic!("nothing ends this wait: {answer:?}"),
            heard = house.heard() => assert_eq!(heard, Heard::WaitBegan),
        }
    }
    assert_eq!(house.heard().await, Heard::WaitDropped);
    client.call(Status {}).await.unwrap();
}

#[tokio::test]
async fn a_cancelled_request_is_answered_once() {
    let mut house = House::new();
    let mut raw = RawClient::greeted(&house.path()).await;
    raw.say(r#"{"jsonrpc":"2.0","id":"w","method":"wait"}"#).await;
    assert_eq!(house.heard().await, Heard::WaitBegan);
    // The same id again; one that is not open; no id at all.
    raw.say(r#"{"jsonrpc":"2.0","id":"w","method":"status"}"#).await;
    assert_eq!(raw.error().await, -32600);
    raw.say(r#"{"jsonrpc":"2.0","method":"cancel_request","params":{"id":"x"}}"#).await;
    raw.say(r#"{"jsonrpc":"2.0","method":"cancel_request"}"#).await;
    raw.say(r#"{"jsonrpc":"2.0","method":"cancel_request","params":{"id":"w"}}"#).await;
    let answer = raw.line().await.unwrap();
    assert!(answer.contains(r#""id":"w""#) && answer.contains("-32001"), "{answer}");
    assert_eq!(house.heard().await, Heard::WaitDropped);
    // The id is free again.
    raw.say(r#"{"jsonrpc":"2.0","id":"w","method":"wait","params":{"timeoutMs":0}}"#).await;
    let answer = raw.line().await.unwrap();
    assert_eq!(answer, r#"{"jsonrpc":"2.0","id":"w","result":{"ended":[],"pending":[]}}"#);
}

#[tokio::test]
async fn a_wait_tells_how_it_goes() {
    let house = House::new();
    let client = house.client().await;
    let mut told = Vec::new();
    let wait = Wait { timeout_ms: Some(1), ..Wait::default() };
    client
        .call_with_progress(wait, |progress| told.push((progress.ended, progress.total)))
        .await
        .unwrap();
    assert_eq!(told, [(1, 2)]);
}

#[tokio::test]
async fn values_stay_the_text_they_came_as() {
    let house = House::new();
    let client = house.client().await;
    let value =
        JsonText::parse("{\n  \"b\": 1,\n  \"a\": 12345678901234567890.10\n}".into()).unwrap();
    let size = value.as_str().len() as u64;
    let put = ContextPut::new("n", Value::Json(value));
    assert_eq!(client.call(put).await.unwrap().size, size);
}

#[tokio::test]
async fn a_file_is_handed_in_by_its_descriptor() {
    let house = House::new();
    let client = house.client().await;
    let path = house.folder.path().join("file");
    std::fs::write(&path, "12345").unwrap();
    // A request beside each, so that a descriptor could get to the wrong one.
    let puts = (0..100).map(|number| {
        let (client, path) = (client.clone(), &path);
        async move {
            client.call(List::default()).await.unwrap();
            client.put_file(number.to_string(), None, path).await.unwrap()
        }
    });
    for (number, put) in join_all(puts).await.into_iter().enumerate() {
        assert_eq!((put.name, put.size), (number.to_string(), 5));
    }
    let missing = house.folder.path().join("none");
    let error = client.put_file("x", None, &missing).await.unwrap_err();
    assert_eq!(error.to_string(), format!("cannot read {}", missing.display()));
}

#[tokio::test]
async fn a_run_that_is_over_asks_nothing_more() {
    let house = House::new();
    let ticket = offshoot_door::Ticket::mint().unwrap();
    let a = run(1);
    house.tickets.admit(a, ticket.clone());
    house.tickets.started(a, Some(own_process()));
    let client = house.connect(Some(&ticket)).await.unwrap();
    assert_eq!(client.welcome().run_id, Some(a));
    assert_eq!(client.call(Status {}).await.unwrap().run_id, Some(a));
    house.tickets.ended(a);
    let error = client.call(Status {}).await.unwrap_err();
    let ClientError::Refused(refused) = error else { panic!("a refusal") };
    assert_eq!(refused.code, "caller_ended");
    let error = house.connect(Some(&ticket)).await.unwrap_err();
    let ClientError::Refused(refused) = &error else { panic!("a refusal: {error}") };
    assert_eq!(refused.code, "unknown_caller");
    assert!(!format!("{error:?}").contains(&ticket.expose()));
}

#[tokio::test(flavor = "current_thread")]
async fn a_process_may_call_before_it_is_said_to_run() {
    let house = House::new();
    let ticket = offshoot_door::Ticket::mint().unwrap();
    house.tickets.admit(run(1), ticket.clone());
    let mut early = house.raw().await;
    let hello = format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"hello","params":{{"protocol":1,"ticket":"{}"}}}}"#,
        ticket.expose()
    );
    early.say(&hello).await;
    // Those who come later are served meanwhile; by then it stands at the door.
    for _ in 0..3 {
        RawClient::greeted(&house.path()).await;
    }
    house.tickets.started(run(1), Some(own_process()));
    let answer = early.line().await.unwrap();
    assert!(answer.contains(&run(1).to_string()), "{answer}");

    // A run that never starts: its ticket is worth nothing in the end.
    house.tickets.ended(run(1));
    house.tickets.admit(run(2), ticket);
    let mut never = house.raw().await;
    never.say(&hello).await;
    house.tickets.ended(run(2));
    assert_eq!(never.error().await, -32000);
    never.ends().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_never_said_to_run_is_refused_in_the_end() {
    let house = House::new();
    let ticket = offshoot_door::Ticket::mint().unwrap();
    house.tickets.admit(run(1), ticket.clone());
    let mut raw = house.raw().await;
    raw.say(&format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"hello","params":{{"protocol":1,"ticket":"{}"}}}}"#,
        ticket.expose()
    ))
    .await;
    let answer = raw.line().await.unwrap();
    assert!(answer.contains("unknown_caller") && answer.contains(r#""id":0"#), "{answer}");
    assert!(!answer.contains(&ticket.expose()), "{answer}");
}

#[tokio::test]
async fn bounds_are_told_before_anything_breaks() {
    let limits =
        Limits { message_bytes: 10_000, answer_bytes: 100_000, requests: 3, ..Limits::default() };
    let mut house = House::with(limits);
    let client = house.client().await;
    let text = "x".repeat(10_000);
    let error = client.call(Report { text }).await.unwrap_err();
    assert!(matches!(error, ClientError::TooLarge { most: 10_000, .. }), "{error}");
    assert!(error.hint().is_some());

    let history = History { run: RunName("main".into()), after: None, limit: None };
    let error = client.call(history).await.unwrap_err();
    let ClientError::Failed { code, .. } = &error else { panic!("{error}") };
    assert_eq!(*code, ErrorCode::AnswerTooLarge);
    assert_eq!(error.hint(), Some("ask for less at once"));
    assert_eq!(house.heard().await, Heard::History);

    let mut raw = RawClient::greeted(&house.path()).await;
    for id in 1..=3 {
        raw.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"wait"}}"#)).await;
        assert_eq!(house.heard().await, Heard::WaitBegan);
    }
    raw.say(r#"{"jsonrpc":"2.0","id":4,"method":"status"}"#).await;
    assert_eq!(raw.error().await, -32004);
    client.call(List::default()).await.unwrap();
}

#[tokio::test]
async fn a_missing_server_is_reported_with_its_path() {
    let house = House::new();
    let nowhere = house.folder.path().join("nowhere.sock");
    let error = Client::connect(&nowhere, &house.registry, None).await.unwrap_err();
    assert_eq!(error.to_string(), format!("no supervisor at `{}`", nowhere.display()));
    assert!(error.hint().unwrap().contains("OFFSHOOT_SOCKET"));
    let deep = nowhere.join("x".repeat(200));
    let error = Client::connect(&deep, &house.registry, None).await.unwrap_err();
    assert!(matches!(error, ClientError::NoSupervisor { .. }), "{error}");
    // A server that accepts and says nothing that is understood.
    let listener = tokio::net::UnixListener::bind(&nowhere).unwrap();
    let connect = Client::connect(&nowhere, &house.registry, None);
    let liar = async {
        use tokio::io::AsyncWriteExt;
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"220 mail.example.org\n").await.unwrap();
        stream
    };
    let (error, _stream) = tokio::time::timeout(FAR, async { tokio::join!(connect, liar) })
        .await
        .expect("it gives up at once");
    assert!(matches!(error, Err(ClientError::Protocol { .. })));
}

fn own_process() -> ProcessIdentity {
    offshoot_door::process_identity(std::process::id()).expect("the process is gone")
}

#[tokio::test]
async fn a_run_of_its_own_is_no_operator() {
    let house = House::new();
    let (a, b): (RunId, RunId) = (run(1), run(2));
    let [of_a, of_b] = [(); 2].map(|()| offshoot_door::Ticket::mint().unwrap());
    house.tickets.admit(a, of_a);
    house.tickets.started(a, Some(own_process()));
    house.tickets.admit(b, of_b.clone());
    house.tickets.started(b, None);
    // Without a ticket it is what its process is; a sibling's ticket is refused.
    let client = house.connect(None).await.unwrap();
    assert_eq!(client.welcome().run_id, Some(a));
    let error = house.connect(Some(&of_b)).await.unwrap_err();
    assert!(matches!(error, ClientError::Refused(_)), "{error}");
}
