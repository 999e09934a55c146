//! Clients that break every rule, and supervisors that go away.

use futures_util::future::join_all;
use offshoot_door::{Client, ClientError, ErrorCode, Limits, Registry, Status, Wait};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

use super::{FAR, Heard, House, RawClient};

#[tokio::test]
async fn garbage_is_answered_and_hurts_no_other_client() {
    let house = House::new();
    let good = house.client().await;
    // Before the greeting it ends the connection.
    for garbage in ["garbage", "{}", "\u{0}\u{1}", "[]", r#"{"jsonrpc":"2.0","method":"hello"}"#] {
        let mut raw = house.raw().await;
        raw.say(garbage).await;
        assert!(matches!(raw.error().await, -32700 | -32600), "{garbage}");
        raw.ends().await;
    }
    let mut raw = house.raw().await;
    raw.say(r#"{"jsonrpc":"2.0","id":1,"method":"status"}"#).await;
    assert_eq!(raw.error().await, -32600);
    raw.ends().await;
    let mut raw = house.raw().await;
    raw.say(r#"{"jsonrpc":"2.0","id":1,"method":"hello","params":{"protocol":0}}"#).await;
    assert_eq!(raw.error().await, -32005);
    raw.ends().await;

    // After it, it does not.
    let mut raw = RawClient::greeted(&house.path()).await;
    for (line, code) in [
        ("garbage", -32700),
        ("[1,2]", -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"fly"}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"hello","params":{"protocol":1}}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"spawn","params":{"task":7}}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"spawn","params":[]}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"wait","params":{"mode":"most"}}"#, -32602),
    ] {
        raw.say("").await;
        raw.say(line).await;
        assert_eq!(raw.error().await, code, "{line}");
    }
    // What is not known and wants no answer is passed over.
    raw.say(r#"{"jsonrpc":"2.0","method":"sing"}"#).await;
    raw.say(r#"{"jsonrpc":"2.0","id":9,"result":{}}"#).await;
    raw.say(r#"{"jsonrpc":"2.0","id":1,"method":"list","params":{"colour":"red"},"x":1}"#).await;
    assert!(raw.line().await.unwrap().contains("result"));
    good.call(Status {}).await.unwrap();
}

#[tokio::test]
async fn a_line_without_end_ends_the_connection() {
    let house = House::new();
    let good = house.client().await;
    for greeted in [false, true] {
        let raw = if greeted { RawClient::greeted(&house.path()).await } else { house.raw().await };
        let (reader, mut writer) = raw.stream.into_inner().into_split();
        let block = vec![b'x'; 1 << 20];
        let mut written = 0;
        // 100 MB, of which a little more than one is taken.
        while written < 100 << 20 {
            match writer.write(&block).await {
                Ok(count) => written += count,
                Err(_) => break,
            }
        }
        assert!(written < 8 << 20, "{written} bytes were taken");
        let mut said = Vec::new();
        // Reset after the last words: something was unread.
        let _ = reader.take(10_000).read_to_end(&mut said).await;
        let said = String::from_utf8_lossy(&said);
        assert!(said.contains("-32002"), "{said}");
    }
    good.call(Status {}).await.unwrap();
}

#[tokio::test]
async fn half_a_line_is_no_request() {
    let mut house = House::new();
    let mut raw = RawClient::greeted(&house.path()).await;
    let report = r#"{"jsonrpc":"2.0","id":1,"method":"report","params":{"text":"x"}}"#;
    raw.stream.write_all(&report.as_bytes()[..report.len() - 1]).await.unwrap();
    raw.stream.shutdown().await.unwrap();
    raw.ends().await;
    house.client().await.call(offshoot_door::Report { text: "whole".into() }).await.unwrap();
    let Heard::Report(_, text) = house.heard().await else { panic!("a report") };
    assert_eq!(text, "whole");
}

#[tokio::test]
async fn a_client_that_goes_cancels_what_it_waits_for() {
    let mut house = House::new();
    let mut raw = RawClient::greeted(&house.path()).await;
    for id in 1..=2 {
        raw.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"wait"}}"#)).await;
        assert_eq!(house.heard().await, Heard::WaitBegan);
    }
    drop(raw);
    assert_eq!(house.heard().await, Heard::WaitDropped);
    assert_eq!(house.heard().await, Heard::WaitDropped);
}

#[tokio::test]
async fn a_client_that_does_not_read_is_not_read_either() {
    const ASKED: usize = 500;
    let mut house = House::new();
    let good = house.client().await;
    let raw = RawClient::greeted(&house.path()).await;
    let (mut reader, mut writer) = raw.stream.into_inner().into_split();
    let ask = |id| {
        let params = r#""params":{"run":"main","limit":30}"#;
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"history\",{params}}}\n")
    };
    // In one piece it fits into the buffers of the system.
    let all: String = (0..ASKED).map(ask).collect();
    writer.write_all(all.as_bytes()).await.unwrap();
    // Others are served meanwhile, so the door has had its turns.
    for _ in 0..ASKED {
        good.call(Status {}).await.unwrap();
    }
    let mut begun = 0;
    while let Ok(heard) = house.heard.try_recv() {
        assert_eq!(heard, Heard::History);
        begun += 1;
    }
    // How many answers the buffers of the system take is theirs; most of them they do not.
    assert!((1..ASKED / 2).contains(&begun), "{begun} were begun, and none was taken");
    // When it reads again, it gets all that it asked for.
    let mut answers = 0;
    let mut block = vec![0; 1 << 16];
    while answers < ASKED {
        let read = reader.read(&mut block).await.unwrap();
        answers += block[..read].iter().filter(|byte| **byte == b'\n').count();
    }
    assert_eq!(answers, ASKED);
}

#[tokio::test]
async fn the_last_words_of_a_supervisor_are_heard_also_while_one_speaks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.sock");
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    let registry = Registry::in_folders([folder.path().join("user")]);
    let _registered = registry.register(&path, None).unwrap();
    let ask = || async {
        let client = Client::connect(&path, &registry, None).await.unwrap();
        // More than the buffers of the system take, so that it is still being written.
        client.call(offshoot_door::Report { text: "x".repeat(900_000) }).await.unwrap_err()
    };
    // Whether the words or the closed ear are noticed first is chance.
    for _ in 0..20 {
        let (error, ()) = tokio::join!(ask(), listen_to_little(&listener));
        let ClientError::Failed { method, code, .. } = error else { panic!("{error:?}") };
        assert_eq!((method, code), ("report", ErrorCode::MessageTooLarge));
    }
}

/// A supervisor that greets, reads a little, and ends with an error.
async fn listen_to_little(listener: &tokio::net::UnixListener) {
    let (stream, _) = listener.accept().await.expect("the client connects");
    let mut stream = BufReader::new(stream);
    stream.read_line(&mut String::new()).await.expect("a greeting");
    let welcome = r#"{"jsonrpc":"2.0","id":0,"result":{"protocol":1,"caller":"operator","maxMessageBytes":1000000}}"#;
    stream.write_all(format!("{welcome}\n").as_bytes()).await.expect("the reader is gone");
    stream.read_exact(&mut [0; 100]).await.expect("a request");
    let last = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32002,"message":"too long"}}"#;
    stream.write_all(format!("{last}\n").as_bytes()).await.expect("the reader is gone");
}

#[tokio::test]
async fn a_thousand_connections_are_bounded_and_told() {
    // Both ends of each are in this process.
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < 3000) {
        limit = Rlimit { current: limit.maximum, ..limit };
        setrlimit(Resource::Nofile, limit).unwrap();
    }
    let limits = Limits { connections: 100, ..Limits::default() };
    let mut house = House::with(limits);
    let path = house.path();
    let mut first = RawClient::greeted(&path).await;
    let clients = (1..1000).map(|_| house.connect(None));
    let clients = tokio::time::timeout(FAR, join_all(clients)).await.expect("no client hangs");
    let (mut inside, mut outside) = (Vec::new(), 0);
    for client in clients {
        match client {
            Ok(client) => inside.push(client),
            Err(error) => {
                let ClientError::Failed { code, .. } = &error else { panic!("{error:?}") };
                assert_eq!(*code, ErrorCode::TooMany);
                assert!(error.hint().is_some());
                outside += 1;
            }
        }
    }
    assert_eq!((inside.len(), outside), (99, 900));
    for answer in join_all(inside.iter().map(|client| client.call(Status {}))).await {
        answer.unwrap();
    }
    // Who goes makes room.
    first.say(r#"{"jsonrpc":"2.0","id":1,"method":"wait"}"#).await;
    assert_eq!(house.heard().await, Heard::WaitBegan);
    drop(first);
    assert_eq!(house.heard().await, Heard::WaitDropped);
    house.client().await.call(Status {}).await.unwrap();
}

#[tokio::test]
async fn one_run_cannot_shut_out_the_others() {
    let limits = Limits { connections_per_run: 5, ..Limits::default() };
    let house = House::with(limits);
    let ticket = offshoot_door::Ticket::mint().unwrap();
    let run = super::run(1);
    house.tickets.admit(run, ticket.clone());
    let own = offshoot_door::process_identity(std::process::id());
    house.tickets.started(run, own);
    let mut inside = Vec::new();
    for _ in 0..5 {
        inside.push(house.connect(Some(&ticket)).await.unwrap());
    }
    let error = house.connect(Some(&ticket)).await.unwrap_err();
    assert!(error.to_string().contains("5 connections"), "{error}");
    house.tickets.ended(run);
    house.client().await;
}

#[tokio::test]
async fn nothing_is_said_to_a_stranger() {
    let mut house = House::new();
    let ticket = offshoot_door::Ticket::mint().unwrap();
    // Another process has put a socket of its own into the place of the supervisor's.
    let path = house.path();
    house.server.take().unwrap().stop().await;
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    let connected = async {
        let error = Client::connect(&path, &house.registry, Some(&ticket)).await.unwrap_err();
        assert!(matches!(error, ClientError::Stranger { .. }), "{error}");
        assert!(error.hint().is_some());
    };
    let stranger = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).await.unwrap();
        assert_eq!(heard, b"");
    };
    tokio::join!(connected, stranger);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_says_nothing_is_closed() {
    let house = House::new();
    let mut raw = house.raw().await;
    assert_eq!(raw.error().await, -32600);
    raw.ends().await;
}

#[tokio::test]
async fn connections_outlive_the_file_of_the_socket() {
    let house = House::new();
    let client = house.client().await;
    std::fs::remove_file(house.path()).unwrap();
    client.call(Status {}).await.unwrap();
    let error = house.connect(None).await.unwrap_err();
    assert!(matches!(error, ClientError::NoSupervisor { .. }), "{error}");
}

#[tokio::test]
async fn a_server_that_goes_answers_nothing_more() {
    for gently in [false, true] {
        let mut house = House::new();
        let client = house.client().await;
        let path = house.path();
        assert_eq!(house.registry.supervisors().len(), 1);
        let waiting = client.call(Wait::default());
        let server = house.server.take().unwrap();
        let going = async {
            assert_eq!(house.heard().await, Heard::WaitBegan);
            if gently {
                server.stop().await;
                // By now it is dropped, not only about to be.
                assert_eq!(house.heard.try_recv(), Ok(Heard::WaitDropped));
            } else {
                drop(server);
                assert_eq!(house.heard().await, Heard::WaitDropped);
            }
        };
        let (answer, ()) = tokio::join!(waiting, going);
        assert!(matches!(answer, Err(ClientError::Closed)), "{answer:?}");
        assert!(matches!(client.call(Status {}).await, Err(ClientError::Closed)));
        assert!(!path.exists());
        assert_eq!(house.registry.supervisors().len(), 0);
    }
}
