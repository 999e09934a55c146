//! Layers from the crate `config`, and the result back.

use config::{ConfigError, Map, Source, Value};
use offshoot_config::{Config, Loader, Source as File, SourceKind};
use serde_json::json;

use crate::layers::template_in_force;

/// Settings of a team, each with its origin.
#[derive(Clone, Debug)]
struct Team(Vec<(&'static str, &'static str, Value)>);

impl Source for Team {
    fn clone_into_box(&self) -> Box<dyn Source + Send + Sync> {
        Box::new(self.clone())
    }

    fn collect(&self) -> Result<Map<String, Value>, ConfigError> {
        let with_origin = |(key, origin, value): &(&str, &str, Value)| {
            let key = format!("offshoot.agents.defaults.subagents.{key}");
            (key, Value::new(Some(&(*origin).to_owned()), value.kind.clone()))
        };
        Ok(self.0.iter().map(with_origin).collect())
    }
}

/// Loads the settings of a team, below the environment and above a file.
fn load(settings: &[(&'static str, &'static str, Value)]) -> Result<Config, String> {
    let team = config::Config::builder().add_source(Team(settings.to_vec())).build();
    let team = team.expect("settings of a test").get_table("offshoot").expect("they have settings");
    let subagents = "[agents.defaults.subagents]\nmaxDepth = 2\nmaxSpawns = 2\n";
    let ceiling = "[ceiling]\nmaxConcurrent = 4\n";
    Loader::new()
        .layer(team)
        .environment([("OFFSHOOT__AGENTS__DEFAULTS__SUBAGENTS__GRACESECONDS", "7")])
        .file(File::new(SourceKind::User, "user.toml", format!("{ceiling}{subagents}")))
        .load()
        .map_err(|errors| errors.to_string())
}

#[test]
fn a_layer_stands_above_the_files_with_the_origins_of_its_values() {
    let config = load(&[
        ("maxDepth", "team.toml", 3.into()),
        // That crate writes the names of variables small, and their values are text.
        ("allowagents", "the environment", "['a', 'b']".into()),
        ("gracesecond", "the environment", "1".into()),
    ]);
    let unknown = config.expect_err("no such key");
    let path = "agents.defaults.subagents";
    let nearest = "unknown key, nearest is `graceSeconds`";
    assert_eq!(unknown, format!("layer the environment: {path}.gracesecond: {nearest}"));

    let config = load(&[
        ("maxDepth", "team.toml", 3.into()),
        ("allowagents", "the environment", "['a', 'b']".into()),
        ("graceseconds", "the environment", "1".into()),
        ("budget.share", "team.toml", 0.25.into()),
    ]);
    let config = config.expect("they are right");
    let check = |key: &str, value: serde_json::Value, origin: &str| {
        let path = format!("{path}.{key}");
        let (_, valued) = config.values().find(|(key, _)| *key == path).expect("it is set");
        assert_eq!((valued.value, valued.origin.to_string()), (value, origin.to_owned()), "{key}");
    };
    check("maxDepth", json!(3), "layer team.toml");
    check("maxSpawns", json!(2), "user file user.toml:5");
    check("allowAgents", json!(["a", "b"]), "layer the environment");
    check("budget.share", json!(0.25), "layer team.toml");
    let variable = "environment OFFSHOOT__AGENTS__DEFAULTS__SUBAGENTS__GRACESECONDS";
    check("graceSeconds", json!(7), variable);
}

#[test]
fn everything_that_is_wrong_is_told_with_its_origin() {
    let found = load(&[
        ("maxDepth", "a.toml", 11.into()),
        ("maxConcurrent", "b.toml", 5.into()),
        ("allowAgents", "the environment", "['a', 'B!']".into()),
    ]);
    let mut found: Vec<String> =
        found.expect_err("three are wrong").lines().map(str::to_owned).collect();
    found.sort();
    let path = "agents.defaults.subagents";
    let ceiling = "allowed is 4 by the ceiling of user file user.toml:2";
    let id =
        "allowed is an agent id: a lower-case letter or digit, then up to 63 of a-z, 0-9, _ and -";
    assert_eq!(
        found,
        [
            format!(
                "layer a.toml: {path}.maxDepth: found 11, allowed is a whole number from 1 to 10"
            ),
            format!("layer b.toml: {path}.maxConcurrent: found 5, {ceiling}"),
            format!("layer the environment: {path}.allowAgents[1]: found \"B!\", {id}"),
        ]
    );
}

/// Writes the settings out and reads them back as a layer: they are the same.
#[test]
fn all_keys_go_there_and_back() {
    let text = template_in_force();
    // Neither stands in a layer of a program.
    let (text, _) = text.split_once("[host]").expect("the template has one");
    let models = "[prices.\"m-1.5\"]\ninputPerMillion = 0.1\n";
    let file = File::new(SourceKind::User, "all.toml", format!("{text}\n{models}"));
    let config = Loader::new().file(file).load().expect("a configuration");
    let out = config::Config::builder().add_source(config.clone()).build().expect("a table");
    let origin = out.get_table("agents.defaults.subagents").expect("a table")["maxDepth"].clone();
    let origin = origin.origin().expect("each value has one");
    assert!(origin.starts_with("user file all.toml:"), "{origin}");
    let back = Loader::new()
        .layer(out.collect().expect("a table"))
        .load()
        .expect("the configuration was refused");
    let values = |config: &Config| {
        let mut values: Vec<_> =
            config.values().map(|(key, valued)| (key, valued.value.to_string())).collect();
        values.sort();
        values
    };
    assert_eq!(values(&back), values(&config));
}
