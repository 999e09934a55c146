//! The schemas of the tools before the official inspector.

use std::path::Path;

use offshoot_mcp_clients::inspector;
use serde_json::Value;

use crate::place::Place;

#[test]
fn the_inspector_finds_nothing_to_say_about_any_schema() {
    let Some(words) = inspector("the_inspector_finds_nothing_to_say_about_any_schema") else {
        return;
    };
    let place = Place::new("");
    // The inspector takes options of the server for its own.
    let server = place.server(&["mcp", "--", "cat"]).join(" ");
    std::fs::write(place.path().join("serve"), format!("exec {server}\n"))
        .expect("the file cannot be written");
    let mut command = place.program(Path::new(&words[0]));
    command.args(&words[1..]).args(["sh", "serve", "--method", "tools/list", "--strict"]);
    let output = command.output().expect("node is there");
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    assert!(output.status.success(), "{}\n{stdout}\n{stderr}", output.status);
    assert_eq!(stderr, "", "a warning");
    let list: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(list["tools"].as_array().map(Vec::len), Some(14), "{list}");
}
