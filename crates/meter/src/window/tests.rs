use proptest::prelude::*;

use super::*;

fn state(status: u16, headers: &[(&str, &str)]) -> WindowState {
    WindowState::of(status, headers.iter().copied())
}

#[test]
fn a_subscription() {
    let found = state(
        200,
        &[
            ("anthropic-ratelimit-unified-status", "allowed_warning"),
            ("anthropic-ratelimit-unified-5h-utilization", "0.93"),
            ("anthropic-ratelimit-unified-5h-reset", "1795677600"),
            ("anthropic-ratelimit-unified-5h-status", "allowed_warning"),
            ("anthropic-ratelimit-unified-7d-utilization", "0.4"),
            ("content-type", "text/event-stream"),
        ],
    );
    let five = &found.windows["5h"];
    assert_eq!((five.used, five.reset), (Some(0.93), Some(Reset::At(1_795_677_600))));
    assert_eq!(five.status.as_deref(), Some("allowed_warning"));
    assert_eq!(found.windows["7d"].used, Some(0.4));
    assert_eq!(found.windows.len(), 2);
    assert_eq!((found.wall, found.pressure), (None, None));
}

#[test]
fn a_wall_has_its_window_and_its_reset() {
    let headers = [
        ("anthropic-ratelimit-unified-status", "rejected"),
        ("anthropic-ratelimit-unified-representative-claim", "five_hour"),
        ("anthropic-ratelimit-unified-5h-reset", "1795677600"),
        ("anthropic-ratelimit-unified-5h-utilization", "1.0"),
        ("retry-after", "9000"),
    ];
    let wall = Wall { window: Some("5h".into()), reset: Some(Reset::At(1_795_677_600)) };
    let mut backwards = headers;
    backwards.reverse();
    for headers in [headers, backwards] {
        let found = state(429, &headers);
        assert_eq!(found.wall, Some(wall.clone()));
        assert_eq!(found.pressure, None, "it is one or the other");
    }
    // Of a window alone, and of nothing but a long pause.
    let found = state(429, &[("anthropic-ratelimit-unified-7d-status", "rejected")]);
    assert_eq!(found.wall, Some(Wall { window: Some("7d".into()), reset: None }));
    let found = state(429, &[("retry-after", "3600")]);
    let reset = Some(Reset::After(Duration::from_secs(3_600)));
    assert_eq!(found.wall, Some(Wall { window: None, reset }));
    let found = state(429, &[("retry-after", "Thu, 26 Nov 2026 09:00:00 GMT")]);
    assert_eq!(found.wall, Some(Wall { window: None, reset: Some(Reset::At(1_795_683_600)) }));
}

#[test]
fn pressure_is_no_wall() {
    let after = |seconds| Some(Duration::from_secs_f64(seconds));
    let check = |status, headers: &[(&str, &str)], expected: Option<Option<Duration>>| {
        let found = state(status, headers);
        let found =
            (found.pressure.map(|pressure| (pressure.status, pressure.retry_after)), found.wall);
        assert_eq!(found, (expected.map(|after| (status, after)), None), "{status} {headers:?}");
    };
    check(429, &[("retry-after", "7")], Some(after(7.0)));
    check(429, &[("retry-after-ms", "250"), ("retry-after", "7")], Some(after(0.25)));
    check(429, &[("retry-after", "7"), ("retry-after-ms", "250")], Some(after(0.25)));
    check(429, &[], Some(None));
    check(529, &[], Some(None));
    check(503, &[("retry-after", "soon")], Some(None));
    check(200, &[("retry-after", "7")], None);
    check(500, &[], None);
}

#[test]
fn keys_and_other_providers() {
    let found = state(
        200,
        &[
            ("anthropic-ratelimit-requests-limit", "50"),
            ("anthropic-ratelimit-requests-remaining", "49"),
            ("anthropic-ratelimit-input-tokens-reset", "2026-11-26T09:00:00Z"),
        ],
    );
    assert_eq!(
        (found.windows["requests"].limit, found.windows["requests"].remaining),
        (Some(50), Some(49))
    );
    assert_eq!(found.windows["input-tokens"].reset, Some(Reset::At(1_795_683_600)));
    let found = state(
        200,
        &[
            ("x-ratelimit-limit-requests", "60"),
            ("x-ratelimit-remaining-tokens", "149984"),
            ("x-ratelimit-reset-tokens", "6m0s"),
        ],
    );
    assert_eq!(found.windows["requests"].limit, Some(60));
    assert_eq!(found.windows["tokens"].remaining, Some(149_984));
    assert_eq!(found.windows["tokens"].reset, Some(Reset::After(Duration::from_secs(360))));
    let found = state(
        200,
        &[
            ("x-codex-primary-used-percent", "12.5"),
            ("x-codex-primary-window-minutes", "300"),
            ("x-codex-secondary-reset-after-seconds", "60"),
            ("x-codex-secondary-reset-at", "1795677600"),
        ],
    );
    assert_eq!(found.windows["primary"].used, Some(0.125));
    assert_eq!(found.windows["secondary"].reset, Some(Reset::At(1_795_677_600)));
    assert!(
        state(200, &[("x-request-id", "r"), ("x-ratelimit-", "1"), ("x-codex-a", "b")]).is_empty()
    );
}

proptest! {
    #[test]
    fn no_header_makes_it_panic_or_grow(
        headers in prop::collection::vec(("(anthropic-ratelimit-|x-ratelimit-|x-codex-|retry-)(unified-)?[a-z0-9-]{0,90}", "[ -~é]{0,40}"), 0..80),
        status: u16,
    ) {
        let found = WindowState::of(status, headers.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        prop_assert!(found.windows.len() <= MOST_WINDOWS);
    }
}
