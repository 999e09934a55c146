//! The caller of a request: its ticket, and the process that holds the connection.

use offshoot_fake_model_api::{Reply, Rule};
use offshoot_meter::{Ending, Terms, Ticket};
use offshoot_model::RunId;
use offshoot_process::Identity;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use uuid::Uuid;

use crate::house::{House, MESSAGE};

#[tokio::test]
async fn a_strangers_request_is_refused() {
    let (mut house, api) = House::with_rules([Rule::always(Reply::text("hello"))]).await;
    // A ticket of no run, one of a run that is another process, and none.
    let other = RunId::from_uuid(Uuid::now_v7());
    let ticket = Ticket::mint().expect("random numbers");
    house.runs.admit(other, &ticket, Terms::default());
    house.runs.started(other, Some(Identity { pid: 1, start_time: 0 }));
    for (ticket, why) in [
        ("offshoot-meter-0", "its ticket is that of no running agent"),
        (ticket.expose(), "the process that sent it does not belong to the agent of its ticket"),
        ("", "its ticket is that of no running agent"),
    ] {
        let answer =
            house.send_as(ticket, "POST", "/v1/messages", MESSAGE).await.expect("no panic");
        assert_eq!(answer.status, 402, "{answer:?}");
        assert!(answer.body.contains("unknown_caller") && answer.body.contains(why), "{answer:?}");
    }
    assert!(house.is_silent(), "nothing is asked for a stranger");
    assert!(api.requests().is_empty(), "and nothing leaves");
}

#[tokio::test]
async fn a_ticket_is_worth_nothing_after_the_end() {
    let (house, _api) = House::with_rules([Rule::always(Reply::text("hello"))]).await;
    house.runs.end(house.run).await;
    let answer = house.message().await.expect("no panic");
    assert!(answer.body.contains("its ticket is that of no running agent"), "{answer:?}");
}

/// The end of a run closes its connections, and waits until each of its requests is told as over.
#[tokio::test]
async fn the_end_of_a_run_settles_what_is_open() {
    let (mut house, api) = House::with_rules([Rule::always(Reply::Hang)]).await;
    let held = house.message();
    let _held = house.reserve().await;
    let sent = house.message();
    house.grant().await;
    api.arrived(1).await;
    house.runs.end(house.run).await;
    let ends = [house.settle().await.ending, house.settle().await.ending];
    assert!(ends.contains(&Ending::NotSent) && ends.contains(&Ending::Broken), "{ends:?}");
    for answer in [held.await.expect("no panic"), sent.await.expect("no panic")] {
        assert_eq!(answer.status, 0, "its connection is closed: {answer:?}");
    }
}

/// A plugin sends the requests of all its runs over connections that it keeps.
#[tokio::test]
async fn a_connection_goes_on_with_the_run_whose_request_it_carries() {
    let rules = [Rule::always(Reply::text("hello")).times(1), Rule::always(Reply::Hang)];
    let (mut house, api) = House::with_rules(rules).await;
    let (other, ticket) = house.neighbour();
    let mut connection = TcpStream::connect(house.address).await.expect("it listens");
    let request = |ticket: &str| {
        let length = MESSAGE.len();
        format!(
            "POST /v1/messages HTTP/1.1\r\nhost: meter\r\nx-api-key: {ticket}\r\ncontent-length: {length}\r\n\r\n{MESSAGE}"
        )
    };
    connection.write_all(request(house.ticket.expose()).as_bytes()).await.expect("it is read");
    house.grant().await;
    assert_eq!(house.settle().await.ending, Ending::Answered);
    let mut answer = Vec::new();
    while !String::from_utf8_lossy(&answer).contains("hello") {
        assert!(connection.read_buf(&mut answer).await.expect("it is open") > 0);
    }
    connection.write_all(request(ticket.expose()).as_bytes()).await.expect("it is read");
    house.grant().await;
    api.arrived(2).await;
    house.runs.end(house.run).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(house.is_silent(), "the request of another run goes on");
    house.runs.end(other).await;
    assert_eq!(house.settle().await.ending, Ending::Broken);
    let rest = connection.read_to_end(&mut answer).await;
    assert!(rest.is_err() || !String::from_utf8_lossy(&answer).contains("200 OK\r\n\r\n"));
}
