//! Prices of models, shown and taken over from files.

use serde_json::json;

use crate::command::Place;

const NOVEMBER: &str = "\
[prices.\"model-5.5\"]
inputPerMillion = 3.0
outputPerMillion = 15.0
contextWindowTokens = 200000
date = 2026-11-01

[prices.small]
inputPerMillion = 0.25
outputPerMillion = 1.25
date = 2026-11-01
";

const KEPT: &str = "home/.config/offshoot/prices.toml";

#[test]
fn prices_are_taken_over_and_shown() {
    let place = Place::new();
    let none = place.run(&["prices", "show"]).expect_code(0);
    assert!(none.text().contains("no model has a price"), "{}", none.text());
    place.file("november.toml", NOVEMBER);
    let first = place.run(&["prices", "update", "november.toml"]).expect_code(0);
    assert_eq!(first.stdout(), "model-5.5  new\nsmall  new\n");
    let shown = place.run(&["prices", "show"]).expect_code(0);
    let rows: Vec<Vec<&str>> =
        shown.stdout().lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0][..3], ["MODEL", "INPUT", "OUTPUT"]);
    assert_eq!(
        rows[1][..5],
        ["model-5.5", "3.0", "15.0", "200000", "2026-11-01"],
        "{}",
        shown.text()
    );
    assert_eq!(rows[2][..4], ["small", "0.25", "1.25", "2026-11-01"], "{}", shown.text());
    let again = place.run(&["prices", "update", "november.toml"]).expect_code(0);
    assert_eq!(again.stdout(), "model-5.5  unchanged\nsmall  unchanged\n");
}

#[test]
fn a_later_file_changes_what_it_names_and_an_earlier_one_nothing() {
    let place = Place::new();
    place.file("november.toml", NOVEMBER);
    place.run(&["prices", "update", "november.toml"]).expect_code(0);
    let december = "[prices.small]\ninputPerMillion = 0.2\ndate = \"2026-12-01\"\n";
    place.file("december.toml", december);
    let words = ["prices", "update", "december.toml", "--json"];
    let tried = place.run(&[&words[..], &["--dry-run"]].concat()).expect_code(0).json();
    let values = json!({
        "inputPerMillion": ["0.25", "0.2"],
        "outputPerMillion": ["1.25", null],
        "date": ["2026-11-01", "\"2026-12-01\""],
    });
    assert_eq!(tried["models"], json!({ "small": { "type": "changed", "values": values } }));
    assert_eq!(tried["written"], false);
    let shown = |model: &str| place.run(&["prices", "show", model, "--json"]).json();
    assert_eq!(shown("small")["date"]["value"], "2026-11-01", "nothing was written");
    let done = place.run(&words).expect_code(0).json();
    assert_eq!((&done["models"], &done["written"]), (&tried["models"], &json!(true)));
    assert_eq!(shown("small")["inputPerMillion"]["value"], 0.2);
    assert_eq!(shown("model-5.5")["date"]["value"], "2026-11-01", "it is not named, and stays");
    let back = place.run(&["prices", "update", "november.toml"]).expect_code(0);
    let kept = "small  kept: its prices are of 2026-12-01, and those of the file of 2026-11-01\n";
    assert_eq!(back.stdout(), format!("model-5.5  unchanged\n{kept}"));
}

#[test]
fn the_own_configuration_stands_above_what_is_taken_over() {
    let place = Place::new();
    place.file("home/.config/offshoot/config.toml", "[prices.small]\ninputPerMillion = 9.0\n");
    place.file("november.toml", NOVEMBER);
    let done = place.run(&["prices", "update", "november.toml"]).expect_code(0);
    let said = "the prices of `small` in user file ";
    assert!(done.text().contains(said), "{}", done.text());
    assert_eq!(done.text().matches("stand above these").count(), 1, "{}", done.text());
    let shown = place.run(&["prices", "show", "small", "--json"]).json();
    assert_eq!(shown["inputPerMillion"]["value"], 9.0);
    assert_eq!(shown["outputPerMillion"]["value"], 1.25);
}

#[test]
fn what_is_no_file_of_prices_is_refused_and_nothing_is_written() {
    let place = Place::new();
    let refused = |text: &str, said: &str| {
        place.file("file.toml", text);
        let outcome = place.run(&["prices", "update", "file.toml"]).expect_code(2);
        assert!(outcome.text().contains(said), "{}", outcome.text());
        assert!(!place.path().join(KEPT).exists());
    };
    refused(&format!("{NOVEMBER}[host]\nmemoryKeep = 0\n"), "holds more than prices: `host`");
    refused("", "file.toml holds no prices");
    refused("[prices.x]\ninput = 3\n", "unknown key");
    refused("[prices.x]\ninputPerMillion = -3.0\n", "prices.x.inputPerMillion");
    refused("prices: {}\n", "file.toml");
    let missing = place.run(&["prices", "show", "nothing"]).expect_code(2);
    assert!(missing.text().contains("no price is configured for the model `nothing`"));
}

#[test]
fn an_agent_does_not_change_what_its_work_costs() {
    let place = Place::new();
    place.file("november.toml", NOVEMBER);
    let outcome = place.tree(&[], "$OFFSHOOT prices update november.toml; echo $?");
    assert_eq!(outcome.stdout(), "3\n", "{}", outcome.text());
    assert!(!place.path().join(KEPT).exists());
}
