//! The bounds that a plan meets first, as a dry run says them.

use crate::command::Place;

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
