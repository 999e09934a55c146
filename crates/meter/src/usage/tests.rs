use proptest::prelude::*;
use serde_json::json;

use super::*;

fn report(protocol: Protocol, pieces: &[Value]) -> Report {
    let mut report = Report::default();
    for piece in pieces {
        report.take(protocol, piece.to_string().as_bytes());
    }
    report
}

/// Input, read from a cache, written to one for minutes, for an hour, and output.
fn tokens(report: &Report) -> [u64; 5] {
    let Tokens { input, cache_read, cache_write, cache_write_hour, output } = report.tokens;
    [input, cache_read, cache_write, cache_write_hour, output]
}

#[test]
fn messages() {
    let start = json!({"type": "message_start", "message": {"usage": {
        "input_tokens": 10, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 30, "output_tokens": 1,
        "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
        "service_tier": "priority", "speed": "fast", "inference_geo": "us",
    }}});
    let end = json!({"type": "message_delta", "usage": {"output_tokens": 50, "server_tool_use": {"web_search_requests": 2}}});
    let begun = report(Protocol::Messages, std::slice::from_ref(&start));
    assert_eq!(tokens(&begun), [10, 20, 10, 20, 1]);
    assert_eq!((begun.input_known, begun.output_known), (true, false));
    let whole = report(Protocol::Messages, &[start, json!({"type": "ping"}), end]);
    assert_eq!(tokens(&whole), [10, 20, 10, 20, 50]);
    assert!(whole.is_whole());
    assert_eq!(whole.tools, [("web_search".to_owned(), 2)].into());
    assert_eq!(whole.service, Service { priority: true, fast: true, region: true, flex: false });
    let whole = report(
        Protocol::Messages,
        &[json!({"type": "message", "usage": {"input_tokens": 3, "output_tokens": 4}})],
    );
    assert_eq!((tokens(&whole), whole.is_whole()), ([3, 0, 0, 0, 4], true));
    assert!(report(Protocol::Messages, &[json!({"type": "error", "error": {}})]).failed);
}

#[test]
fn a_report_says_no_more_than_stands_in_it() {
    let of = |usage: Value| {
        report(Protocol::Messages, &[json!({"type": "message_delta", "usage": usage})])
    };
    assert!(!of(json!({"input_tokens": 3})).output_known);
    assert!(!of(json!({"input_tokens": -3, "output_tokens": 4})).output_known);
    assert!(of(json!({"output_tokens": 4})).output_known);
    // A tool that was not used needs no price.
    let unused = of(json!({"output_tokens": 4, "server_tool_use": {"web_search_requests": 0}}));
    assert!(unused.tools.is_empty());
    let ordinary = json!({"output_tokens": 4, "service_tier": "standard", "speed": "standard", "inference_geo": "global"});
    for usage in [ordinary, json!({"output_tokens": 4})] {
        assert_eq!(of(usage).service, Service::default());
    }
    for (key, word, expected) in [
        ("service_tier", "priority", Service { priority: true, ..Service::default() }),
        ("speed", "fast", Service { fast: true, ..Service::default() }),
        ("inference_geo", "us", Service { region: true, ..Service::default() }),
    ] {
        assert_eq!(of(json!({"output_tokens": 4, key: word})).service, expected, "{key}");
    }
}

#[test]
fn rounds_are_added_up_and_other_models_kept_apart() {
    let whole = report(
        Protocol::Messages,
        &[
            json!({"type": "message", "usage": {"input_tokens": 5, "output_tokens": 6, "iterations": [
                {"type": "compaction", "input_tokens": 180_000, "output_tokens": 3_500},
                {"type": "message", "input_tokens": 23_000, "output_tokens": 1_000},
                {"type": "advisor_message", "model": "big", "input_tokens": 800, "output_tokens": 90},
            ]}}),
        ],
    );
    assert_eq!(tokens(&whole), [203_000, 0, 0, 0, 4_500]);
    assert_eq!(whole.others["big"], Tokens { input: 800, output: 90, ..Tokens::default() });
}

#[test]
fn chats_and_responses() {
    let used = json!({"usage": {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107,
        "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10}}, "service_tier": "flex"});
    let whole = report(Protocol::Chat, &[json!({"usage": null, "choices": []}), used]);
    assert_eq!(
        (tokens(&whole), whole.is_whole(), whole.service.flex),
        ([30, 60, 10, 0, 7], true, true)
    );
    // More than was read cannot have come from a cache or gone to one.
    let used = |cached: u64, written: u64| {
        let details = json!({"cached_tokens": cached, "cache_write_tokens": written});
        json!({"usage": {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": details}})
    };
    assert_eq!(tokens(&report(Protocol::Chat, &[used(60, 50)])), [0, 60, 40, 0, 7]);
    assert_eq!(tokens(&report(Protocol::Chat, &[used(160, 50)])), [0, 100, 0, 0, 7]);
    // What was thought stands in the total alone.
    let used =
        json!({"usage": {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 157}});
    assert_eq!(tokens(&report(Protocol::Chat, &[used])), [100, 0, 0, 0, 57]);
    let answer = json!({"status": "completed", "service_tier": "priority", "output": [
        {"type": "web_search_call"}, {"type": "web_search_call"}, {"type": "function_call"}, {"type": "message"}],
        "usage": {"input_tokens": 50, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 20}}});
    let event = json!({"type": "response.completed", "response": answer});
    for whole in [report(Protocol::Responses, &[answer]), report(Protocol::Responses, &[event])] {
        assert_eq!((tokens(&whole), whole.is_whole()), ([30, 20, 0, 0, 5], true));
        assert_eq!(whole.tools, [("web_search".to_owned(), 2)].into());
        assert!(whole.service.priority);
    }
    let begun = json!({"type": "response.created", "response": {"usage": null}});
    assert!(!report(Protocol::Responses, &[begun]).input_known);
    assert!(report(Protocol::Responses, &[json!({"type": "error", "message": "x"})]).failed);
    assert!(
        report(
            Protocol::Responses,
            &[json!({"type": "response.failed", "response": {"status": "failed"}})]
        )
        .failed
    );
    assert!(report(Protocol::Chat, &[json!({"error": {"message": "x"}})]).failed);
}

#[test]
fn gemini() {
    let used = |output: u64| {
        json!({"promptTokenCount": 100, "cachedContentTokenCount": 40, "candidatesTokenCount": output,
        "thoughtsTokenCount": 5, "toolUsePromptTokenCount": 3})
    };
    let first = json!({"candidates": [{"content": {}}], "usageMetadata": used(1)});
    let last = json!({"candidates": [{"finishReason": "STOP"}], "usageMetadata": used(9)});
    let begun = report(Protocol::Gemini, std::slice::from_ref(&first));
    assert_eq!((tokens(&begun), begun.is_whole()), ([63, 40, 0, 0, 6], false));
    let whole = report(Protocol::Gemini, &[first.clone(), last.clone()]);
    assert_eq!((tokens(&whole), whole.is_whole()), ([63, 40, 0, 0, 14], true));
    assert_eq!(report(Protocol::Gemini, &[json!([first, last])]), whole);
    let blocked = json!({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 4}});
    assert!(report(Protocol::Gemini, &[blocked]).is_whole());
    assert!(report(Protocol::Gemini, &[json!({"error": {"code": 500}})]).failed);
}

#[test]
fn two_reports_are_the_larger_and_nonsense_is_none() {
    let used = |input: u64, output: u64| json!({"usage": {"prompt_tokens": input, "completion_tokens": output}});
    assert_eq!(tokens(&report(Protocol::Chat, &[used(5, 9), used(7, 3)])), [7, 0, 0, 0, 9]);
    for nonsense in [
        json!({"usage": {"prompt_tokens": -5, "completion_tokens": 1}}),
        json!({"usage": {"prompt_tokens": "5"}}),
        json!({"usage": {"prompt_tokens": 5}}),
        json!({"usage": {"prompt_tokens": null, "completion_tokens": null}}),
        json!({"usage": {"prompt_tokens": 0, "completion_tokens": 0}}),
        json!({"usage": {"prompt_tokens": 5, "completion_tokens": u64::MAX}}),
        json!({"usage": {}}),
        json!({"usage": 5}),
        json!("usage"),
        json!(null),
    ] {
        assert_eq!(
            report(Protocol::Chat, std::slice::from_ref(&nonsense)),
            Report::default(),
            "{nonsense}"
        );
    }
    let mut garbage = Report::default();
    garbage.take(Protocol::Chat, b"{not json");
    garbage.take(Protocol::Messages, b"\xff");
    assert_eq!(garbage, Report::default());
}

#[test]
fn most_pieces_need_not_be_read() {
    assert!(may_tell(Protocol::Chat, br#"{"usage":{}}"#));
    assert!(may_tell(Protocol::Gemini, br#"{"usageMetadata":{}}"#));
    assert!(may_tell(Protocol::Messages, br#"{"type":"error"}"#));
    assert!(!may_tell(Protocol::Messages, br#"{"type":"content_block_delta","delta":{}}"#));
}

proptest! {
    #[test]
    fn nothing_reported_is_ever_taken_back(
        counts in prop::collection::vec((0u64..1000, 0u64..1000), 1..8),
    ) {
        let mut report = Report::default();
        let mut most = (0, 0);
        for (input, output) in counts {
            let piece = json!({"type": "message", "usage": {"input_tokens": input, "output_tokens": output}});
            report.take(Protocol::Messages, piece.to_string().as_bytes());
            most = (most.0.max(input), most.1.max(output));
            prop_assert_eq!((report.tokens.input, report.tokens.output), most);
        }
    }
}
