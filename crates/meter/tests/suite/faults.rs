//! Providers that do not answer as they should. Whatever is not known of a cost is charged at its bound.

use offshoot_fake_model_api::{ApiError, Break, Reply, Rule};
use offshoot_meter::{Ending, Meter, Options};

use crate::house::{House, dollars, raw_provider, slow_provider};

#[tokio::test]
async fn a_broken_stream_is_charged() {
    for how in [Break::Cut, Break::Garbage, Break::Overloaded] {
        let (mut house, _api) = House::with_rules([Rule::always(Reply::Broken(how))]).await;
        let stream = r#"{"model":"priced","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"x"}]}"#;
        let message = house.send("POST", "/v1/messages", stream);
        let reserve = house.grant().await;
        message.await.expect("no panic");
        let settle = house.settle().await;
        let charged = settle.charge.dollars.expect("it has a price");
        // What was read is reported by then; what would have been written is charged at its bound of 100 tokens.
        assert!(charged >= "0.0015".parse().expect("dollars"), "{how:?}: {settle:?}");
        assert!(Some(charged) <= reserve.bound.dollars(), "{how:?}: {settle:?}");
        assert_eq!(settle.ending, Ending::Broken, "{how:?}");
    }
}

#[tokio::test]
async fn a_provider_that_is_down_costs_nothing() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    drop(listener);
    let mut house = House::before(&url, dollars()).await;
    let message = house.message();
    house.grant().await;
    let answer = message.await.expect("no panic");
    assert_eq!(answer.status, 502, "{answer:?}");
    let said = format!("offshoot cannot reach the provider at {url}");
    assert!(answer.body.contains(&said), "{answer:?}");
    let settle = house.settle().await;
    assert_eq!((settle.ending, settle.charge.tokens.total()), (Ending::NotSent, 0));
}

#[tokio::test]
async fn answers_of_no_sense_are_charged_at_their_bound() {
    for answer in [
        // No HTTP, an end before the answer, an answer without its use, and one with two.
        "garbage\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{\"type\":",
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 18\r\n\r\n{\"type\":\"message\"}",
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 4\r\n\r\nhtml",
    ] {
        let (url, served) = raw_provider(answer).await;
        let mut house = House::before(&url, dollars()).await;
        let message = house.message();
        let reserve = house.grant().await;
        message.await.expect("no panic");
        let settle = house.settle().await;
        assert_eq!(settle.charge.dollars, reserve.bound.dollars(), "{answer:?}: {settle:?}");
        served.abort();
    }
    let twice = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
         data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}\n\n\
         data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":5}}\n\n\
         data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":7}}\n\n\
         data: {\"type\":\"message_stop\"}\n\n";
    let (url, served) = raw_provider(twice).await;
    let mut house = House::before(&url, dollars()).await;
    let message = house.message();
    house.grant().await;
    message.await.expect("no panic");
    let settle = house.settle().await;
    assert_eq!(settle.charge.tokens.total(), 17, "the larger of two counts: {settle:?}");
    served.abort();
}

/// A program that hangs up before it has read a whole answer has caused its cost all the same, and no more than that.
#[tokio::test]
async fn an_answer_that_the_program_does_not_read_is_charged_as_it_is_reported() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{";
    let rest = r#""type":"message","content":[],"usage":{"input_tokens":10,"output_tokens":7}}"#;
    let (url, goes_on, served) = slow_provider(head, rest).await;
    let mut house = House::before(&url, dollars()).await;
    let message = house.hang_up_after_head();
    house.grant().await;
    message.await.expect("no panic");
    goes_on.send(()).expect("the provider waits");
    let settle = house.settle().await;
    assert_eq!((settle.ending, settle.charge.tokens.total()), (Ending::Answered, 17));
    served.abort();
}

/// Gemini streams an array of JSON where the program asks for no events. Its provider stops when the program does.
#[tokio::test]
async fn a_stream_of_any_form_ends_with_its_program() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n[";
    let (url, _goes_on, served) = slow_provider(head, "]").await;
    let mut house = House::before(&url, dollars()).await;
    let body =
        r#"{"contents":[{"parts":[{"text":"x"}]}],"generationConfig":{"maxOutputTokens":9}}"#;
    let message = house.hang_up_after_head_of("/v1beta/models/priced:streamGenerateContent", body);
    let reserve = house.grant().await;
    message.await.expect("no panic");
    // The provider never goes on, so only a connection that is closed at once is settled at once.
    let settle = house.settle().await;
    assert_eq!((settle.ending, settle.charge.dollars), (Ending::Broken, reserve.bound.dollars()));
    served.abort();
}

/// A program has the whole answer of a chat with its last event, and need not wait until the provider closes the connection.
#[tokio::test]
async fn a_chat_has_ended_with_its_last_event() {
    const HEAD: &str =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    const USED: &str = r#""usage":{"prompt_tokens":10,"completion_tokens":7}"#;
    let word = |more: &str| format!("data: {{\"choices\":[{{\"delta\":{{}}{more}}}]}}\n\n");
    let so_far = |end: &str| {
        let choice = format!("{{\"delta\":{{}},\"finish_reason\":{end}}}");
        format!("data: {{\"choices\":[{choice}],{USED}}}\n\n")
    };
    let body = r#"{"model":"priced","max_tokens":100,"stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"x"}]}"#;
    for (events, last, ending, tokens) in [
        // The use in an event of its own, as OpenAI has it.
        (
            format!("{}data: {{\"choices\":[],{USED}}}\n\ndata: [DONE]\n\n", word("")),
            "[DONE]",
            Ending::Answered,
            Some(17),
        ),
        // The numbers so far with each event.
        (format!("{}data: [DONE]\n\n", so_far("null")), "[DONE]", Ending::Answered, Some(17)),
        // Its provider may have written on, for another choice too.
        (so_far("\"stop\""), "\"stop\"", Ending::Broken, None),
        (so_far("null"), "usage", Ending::Broken, None),
        (word(""), "delta", Ending::Broken, None),
        // All came, and nothing says what it used.
        (format!("{}data: [DONE]\n\n", word("")), "[DONE]", Ending::Unreported, None),
    ] {
        let begin: &'static str = format!("{HEAD}{events}").leak();
        let (url, goes_on, served) = slow_provider(begin, "").await;
        let mut house = House::before(&url, dollars()).await;
        let message = house.hang_up_after("/v1/chat/completions", body, last);
        let reserve = house.grant().await;
        message.await.expect("no panic");
        let settle = house.settle().await;
        assert_eq!(settle.ending, ending, "{events}");
        let bound = reserve.bound.tokens();
        let most = if events.contains("usage") { 10 + 100 } else { bound };
        assert_eq!(settle.charge.tokens.total(), tokens.unwrap_or(most), "{events}");
        drop(goes_on);
        served.abort();
    }
}

#[tokio::test]
async fn a_refusal_of_the_provider_costs_nothing() {
    let (mut house, _api) = House::with_rules([Rule::always(Reply::overloaded())]).await;
    let message = house.message();
    house.grant().await;
    assert_eq!(message.await.expect("no panic").status, 529);
    let settle = house.settle().await;
    assert_eq!((settle.ending, settle.charge.tokens.total()), (Ending::Declined(529), 0));
}

/// A server before the provider has waited too long for an answer, which the provider may have made.
#[tokio::test]
async fn a_time_limit_before_the_provider_is_charged_at_the_bound() {
    for status in [408, 504, 524] {
        let late = Reply::Error(ApiError::new(status, "timeout", "too late"));
        let (mut house, _api) = House::with_rules([Rule::always(late)]).await;
        let message = house.message();
        let bound = house.grant().await.bound.tokens();
        assert_eq!(message.await.expect("no panic").status, status);
        assert_eq!(house.settle().await.charge.tokens.total(), bound, "{status}");
    }
}

/// Another program has the port that was asked for: the meter does not begin, and says so; on a free one it begins.
#[tokio::test]
async fn a_port_that_is_taken_is_said() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = taken.local_addr().expect("it has one").port();
    let open = |port| {
        let (sender, _asks) = tokio::sync::mpsc::unbounded_channel();
        Meter::open(Options { port, ..Options::default() }, sender)
    };
    let Err(refused) = open(port).await else { panic!("two programs have one port") };
    assert_eq!(refused.kind(), std::io::ErrorKind::AddrInUse);
    let meter = open(0).await.expect("a free port");
    assert_ne!(meter.address().port(), port);
}
