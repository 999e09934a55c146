//! The bounds that a plan meets first, as a dry run says them.

use std::fs;

use offshoot_fake_model_api::{Reply, Rule};

use crate::command::Place;
use crate::openai;

#[test]
fn a_dry_run_says_what_the_plan_meets_first() {
    let place = Place::new();
    place.file("in", "one\ntwo\nthree\n");
    place.file("c.toml", "[runtimes.exec]\nmeter = \"on\"\n");
    // As another tree of the user has told of it.
    let wall = |until: &str| {
        let account = r#"{"account":{"runtime":"exec"},"window":"five_hour","until":"#;
        place.file("home/.local/state/offshoot/walls/exec.json", format!("{account}{until}}}"));
    };
    let words = ["--config", "c.toml", "map", "--dry-run", "--split", "lines:1"];
    let plan = |more: &[&str]| {
        let mut command = place.command(&[&words[..], more, &["in", "--", "cat"]].concat());
        command.env("OPENAI_API_KEY", "a-dummy");
        place.outcome(command, &[]).expect_code(0)
    };
    wall("4000000000000000");
    let planned = plan(&["--max-concurrent", "2"]);
    let said = [
        "quota: no run of exec starts before 2096-10-02T07:06:40.000Z (five_hour)\n",
        "at once: 2, as many as maxConcurrent lets run\n",
        "memory: ",
        "meter: requests of exec to models are reserved before they leave\n",
    ];
    let found: Vec<_> = said.iter().map(|said| planned.stdout().find(said)).collect();
    assert!(found.is_sorted() && found.iter().all(Option::is_some), "{}", planned.text());
    let ahead = &plan(&["--json"]).json()["ahead"];
    assert_eq!((&ahead["atOnce"], &ahead["boundBy"]), (&3.into(), &serde_json::Value::Null));
    assert_eq!(ahead["walls"][0]["until"], "2096-10-02T07:06:40Z");
    assert_eq!(ahead["metered"], serde_json::json!(["exec"]));
    // A reset that is over holds nothing back.
    wall("1");
    assert!(!plan(&[]).stdout().contains("quota: "));
}

#[test]
fn a_dry_run_tells_the_tokens_that_a_model_would_read_and_their_price() {
    let (place, api) = openai::stage([Rule::always(Reply::text("hello"))], "");
    let config = fs::read_to_string(place.path().join("c.toml")).expect("it was written");
    let prices = "[prices.small]\ninputPerMillion = 3\noutputPerMillion = 15\n";
    place.file("c.toml", format!("{config}\n{prices}"));
    place.file("in", "The quick brown fox jumps over the lazy dog.\n".repeat(2_000));
    let words = ["--config", "c.toml", "map", "--dry-run", "--runtime", "openai"];
    let plan = |more: &[&str]| {
        place.run(
            &[&words[..], &["--split", "lines:200"], more, &["in", "--task", "Count the foxes."]]
                .concat(),
        )
    };
    let planned = plan(&[]).expect_code(0);
    // 10 tasks of 4 tokens, and 2,000 lines of 10 or 11.
    let input = &plan(&["--json"]).expect_code(0).json()["input"];
    let tokens = input["tokens"].as_u64().expect("tokens");
    assert!((20_040..=22_140).contains(&tokens), "{input}");
    assert_eq!((&input["model"], &input["tokenizer"]), (&"small".into(), &"o200k_base".into()));
    let usd = input["microUsd"].as_f64().expect("a price");
    assert!((usd - tokens as f64 * 3e-6).abs() < 2e-6 || usd as u64 == tokens * 3, "{input}");
    assert!(planned.stdout().contains("(tokenizer o200k_base), $0.06"), "{}", planned.text());
    assert!(
        planned.stdout().contains("at the price of small; what runtimes"),
        "{}",
        planned.text()
    );
    assert!(api.conversations().is_empty());
    // A program of the operator's own reads no tokens that are known of.
    let own = place.run(&["map", "--dry-run", "in", "--", "cat"]).expect_code(0);
    assert!(!own.stdout().contains("to read"), "{}", own.text());
}

#[test]
fn a_dry_run_says_that_a_day_has_too_little_left() {
    let (place, _api) = openai::stage([Rule::always(Reply::text("hello"))], "");
    place.file("home/.config/offshoot/config.toml", "[host]\ntokensPerDay = 1000\n");
    let plan = |more: &[&str]| {
        let words = ["run", "--config", "c.toml", "--dry-run", "--runtime", "openai"];
        place.run(&[&words[..], more, &["x"]].concat()).expect_code(0)
    };
    let day = "day: host.tokensPerDay: 0 tokens of 1,000 tokens is spent today or reserved\n";
    let refused = "\nday: refused before it starts: ";
    let fits = plan(&["--budget-tokens", "1000"]);
    assert!(fits.stdout().contains(day) && !fits.stdout().contains(refused), "{}", fits.text());
    assert!(fits.stdout().contains("\n  host.tokensPerDay  "), "{}", fits.text());
    for more in [&["--budget-tokens", "1001"][..], &[]] {
        let planned = plan(more);
        assert!(planned.stdout().contains(refused), "{}", planned.text());
        let words = [&["run", "--config", "c.toml", "--runtime", "openai"], more, &["x"]].concat();
        let real = place.run(&words);
        let why = real.text();
        let why = why.split("error: ").nth(1).and_then(|it| it.lines().next()).expect("a reason");
        assert!(planned.stdout().contains(why), "{why}: {}", planned.text());
    }
}

#[test]
fn a_dry_run_says_that_a_budget_pays_for_nothing() {
    let (place, _api) = openai::stage([Rule::always(Reply::text("hello"))], "");
    let words = ["run", "--config", "c.toml", "--dry-run", "--runtime", "openai"];
    let planned = place.run(&[&words[..], &["--budget-tokens", "0", "x"]].concat()).expect_code(0);
    let said = "budget: 0 tokens, which pays for nothing: no agent starts\n";
    assert!(planned.stdout().contains(said), "{}", planned.text());
}

#[test]
fn a_dry_run_says_what_an_endpoint_without_a_price_costs_and_how_often_it_is_tried() {
    let (place, _api) = openai::stage([Rule::always(Reply::text("hello"))], "");
    let words = ["run", "--config", "c.toml", "--dry-run", "--runtime", "openai", "x"];
    let planned = place.run(&words).expect_code(0);
    let said = ["cost: not known before, ", "\n  retries.count               0  "];
    assert!(said.iter().all(|said| planned.stdout().contains(said)), "{}", planned.text());
    let config = fs::read_to_string(place.path().join("c.toml")).expect("it was written");
    place.file("c.toml", format!("{config}[runtimes.openai]\ncost = \"none\"\n"));
    let planned = place.run(&words).expect_code(0);
    let said = "\ncost: none, as runtimes.openai.cost says\n";
    assert!(planned.stdout().contains(said), "{}", planned.text());
}
