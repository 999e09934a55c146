//! Agents, children and merges of plugins in a real tree.

use std::path::PathBuf;
use std::sync::Arc;

use offshoot_config::{Config, Loader};
use offshoot_model::{JsonText, Payload};
use offshoot_plugin_host::Surroundings;
use offshoot_plugin_tests::{folder, json, load};
use offshoot_process::{Options, Processes};
use offshoot_spawner::{ExternalMerge, FanOut, Piece, RootSpec, RunSpec, Spawner};

fn config(settings: &[(&str, &str)]) -> Config {
    let loader = settings.iter().fold(Loader::new(), |loader, (key, value)| {
        loader.flag(format!("agents.defaults.subagents.{key}"), *value, "test")
    });
    loader.load().expect("the settings of a test are right")
}

/// With one slot, so that a parent that waits must lend it.
const SETTINGS: &[(&str, &str)] =
    &[("allowRecursiveSpawn", "true"), ("maxDepth", "3"), ("maxConcurrent", "1")];

#[tokio::test]
async fn children_of_a_plugin_stand_under_the_same_admission() {
    let (_folder, place) = folder();
    let misbehave = load("misbehave", &place, Surroundings::default());
    let check = async |settings: &[(&str, &str)], runs: usize, expected: &str| {
        let greedy =
            misbehave.runtime("greedy", &json("{}")).expect("the plugin has no such runtime");
        let spawner = Spawner::builder().config(config(settings)).runtime(greedy).build();
        let spawner = spawner.expect("a spawner");
        let session = spawner.open(RootSpec::new("greed")).await.expect("a root");
        let fan = session
            .fan_out(FanOut::new([Piece::task("more")]))
            .await
            .expect("the pieces were refused");
        let answer = fan.answer().await.expect("an answer");
        session.conclude(&answer).await.expect("a whole record");
        assert_eq!(answer.answer.to_payload(), Some(Payload::text(expected)));
        let tree = spawner.tree().expect("a whole record");
        assert_eq!(tree.nodes().count(), runs + 1, "and the root that holds the piece");
    };
    let limit = "[depth_limit depth_limit]";
    check(SETTINGS, 7, &format!("[[{limit} {limit}] [{limit} {limit}]]")).await;
    let few = [SETTINGS, &[("maxSpawns", "3")]].concat();
    check(&few, 4, &format!("[[{limit} {limit}] spawn_limit]")).await;
    check(&[("maxConcurrent", "1")], 1, "[recursion_disabled recursion_disabled]").await;
}

#[tokio::test]
async fn a_program_of_one_plugin_is_merged_by_another() {
    let (_folder, place) = folder();
    let processes = Some(Processes::start(Options::default()).expect("processes cannot be held"));
    let exec = load("exec", &place, Surroundings { processes, ..Surroundings::default() });
    let exec = exec.runtime("exec", &json("{}")).expect("the plugin has no such runtime");
    let misbehave = load("misbehave", &place, Surroundings::default());

    let spawner = Spawner::builder().runtime(exec).build().expect("a spawner");
    let session = spawner.open(RootSpec::new("mixed")).await.expect("a root");
    let merged = async |params: &str| {
        let merge =
            misbehave.merge("misbehave", &json("{}")).expect("the plugin has no such merge");
        let params = JsonText::of(&params).expect("text");
        let order = FanOut {
            run_spec: Some(RunSpec::command(PathBuf::from("/"), ["cat"])),
            external: Some(ExternalMerge { merge: Arc::new(merge), params }),
            ..FanOut::new(["a", "b"].map(Piece::task))
        };
        session
            .fan_out(order)
            .await
            .expect("the pieces were refused")
            .answer()
            .await
            .expect("the pieces ran")
    };
    let answer = merged("well").await;
    assert_eq!(answer.answer.to_payload(), Some(Payload::text("well")));
    for place in ["push", "finish"] {
        let error = merged(place).await.verdict.expect_err("it panics");
        assert!(error.to_string().contains("panicked"), "{error}");
    }
    session.conclude(&answer).await.expect("a whole record");
}
