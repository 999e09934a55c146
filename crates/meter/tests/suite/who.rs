//! The caller of a request: its ticket, and the process that holds the connection.

use offshoot_fake_model_api::{Reply, Rule};
use offshoot_meter::{Ending, Terms, Ticket};
use offshoot_model::RunId;
use offshoot_process::Identity;
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
