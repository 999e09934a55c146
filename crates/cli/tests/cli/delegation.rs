//! The example `examples/delegation`: three validators at the same time, a gate, and an agent below another.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::command::{Outcome, Place};

const TASK: &str = "enable parallel completion loading in zsh";

/// The example as it is shipped, in a folder of its own, prepared and trusted.
fn place() -> Place {
    let place = Place::new();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/delegation");
    let copied = [".claude/agents", "scripts", "team.toml", "prepare.sh"];
    for name in copied {
        copy(&example.join(name), name, &place);
    }
    shell(&place, "sh prepare.sh").expect_code(0);
    place.run(&["trust"]).expect_code(0);
    place
}

fn copy(from: &Path, name: &str, place: &Place) {
    if from.is_file() {
        place.file(name, fs::read(from).expect("the example is there"));
        return;
    }
    for entry in fs::read_dir(from).expect("the example is there") {
        let entry = entry.expect("the folder can be read");
        let file = entry.file_name();
        copy(&entry.path(), &format!("{name}/{}", file.to_str().expect("a plain name")), place);
    }
}

fn shell(place: &Place, lines: &str) -> Outcome {
    place.outcome(place.command_of("sh", &["-euc", lines]), &[])
}

fn workflow(place: &Place, config: &str, more: &[&str]) -> Outcome {
    let run = ["-q", "run", "--config", config, "--agent", "chezmoi-workflow"];
    place.run(&[&run, more, &[TASK]].concat())
}

/// The runs of the newest tree below its root, from the record.
fn runs(place: &Place) -> Vec<Value> {
    let list = place.run(&["list", "--tree", "last", "--all", "--json"]).expect_code(0).json();
    let runs = list.as_array().expect("a list").iter();
    runs.filter(|run| run["depth"] != 0).cloned().collect()
}

/// Agent, depth and status of each run.
fn summaries(runs: &[Value]) -> Vec<String> {
    let word = |value: &Value| value.as_str().expect("a word").to_owned();
    let summary =
        |run: &Value| format!("{} {} {}", word(&run["agent"]), run["depth"], word(&run["status"]));
    let mut summaries: Vec<String> = runs.iter().map(summary).collect();
    summaries.sort();
    summaries
}

fn commits(place: &Place) -> String {
    shell(place, "git -C dotfiles log --format=%s").expect_code(0).stdout().to_owned()
}

/// Of each validator the places in the record at which it got its slot and at which it ended.
fn spans(place: &Place) -> Vec<(u64, u64)> {
    let events = place.run(&["events", "last", "--json"]).expect_code(0);
    let events: Vec<Value> =
        events.stdout().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let seq = |run: &Value, kind: &str| {
        let is_it = |event: &&Value| event["run"] == run["runId"] && event["kind"]["type"] == kind;
        events.iter().find(is_it).and_then(|event| event["seq"].as_u64()).expect("an event")
    };
    let runs = runs(place);
    let is_validator =
        |run: &&Value| ["scan", "test", "drift"].iter().any(|it| run["label"] == *it);
    let validators = runs.iter().filter(is_validator);
    let mut spans: Vec<_> =
        validators.map(|run| (seq(run, "starting"), seq(run, "ended"))).collect();
    assert_eq!(spans.len(), 3, "{runs:?}");
    spans.sort_unstable();
    spans
}

#[test]
fn a_change_that_all_have_validated_is_committed() {
    let place = place();
    let outcome = workflow(&place, "team.toml", &[]).expect_code(0);
    let (answers, tree) =
        outcome.stdout().split_at(outcome.stdout().find("chezmoi").expect("a tree"));
    assert_eq!(answers, "scan: SAFE\ntest: PASS\ndrift: DRIFT\nsync: COMMITTED\n");
    let names = tree.lines().map(|line| {
        let (name, _) = line.split_once(" (").expect("a depth");
        name.rsplit_once(' ').expect("an id behind the name").0
    });
    let drawn = [
        "chezmoi-workflow",
        "├─ security-scanner: scan",
        "├─ test-validator: test",
        "├─ template-sync-agent: drift",
        "└─ template-sync-agent: sync",
        "   └─ git-coordinator: commit",
    ];
    assert_eq!(names.collect::<Vec<_>>(), drawn, "{tree}");
    let expected = [
        "git-coordinator 2 completed",
        "security-scanner 1 completed",
        "template-sync-agent 1 completed",
        "template-sync-agent 1 completed",
        "test-validator 1 completed",
    ];
    assert_eq!(summaries(&runs(&place)), expected);
    assert_eq!(commits(&place), format!("{TASK}\nthe first version\n"));
    place.run(&["audit", "last"]).expect_code(0);
    // Once more: the template has the change, and there is nothing to commit.
    let again = workflow(&place, "team.toml", &[]).expect_code(0);
    assert!(again.stdout().starts_with("scan: SAFE\ntest: PASS\ndrift: IN SYNC\nchezmoi"));
    assert_eq!(runs(&place).len(), 3);
}

#[test]
fn where_one_has_failed_nothing_is_committed() {
    let place = place();
    let check = |break_it: &str, failed: &str| {
        let change =
            "echo 'load_completions &' > dotfiles/zshrc; git -C dotfiles checkout -q templates";
        shell(&place, &format!("{change}\n{break_it}")).expect_code(0);
        let outcome = workflow(&place, "team.toml", &[]).expect_code(1);
        let said = format!("not applied, because this failed: {failed}");
        assert!(outcome.stderr.contains(&said), "{break_it}: {}", outcome.stderr);
        let runs = runs(&place);
        assert_eq!(runs.len(), 3, "{break_it}: {runs:?}");
        assert!(runs.iter().all(|run| run["agent"] != "git-coordinator"), "{break_it}");
        assert_eq!(commits(&place), "the first version\n", "{break_it}");
    };
    check("echo 'PASSWORD=secret' >> dotfiles/zshrc", "scan");
    check("echo 'if' >> dotfiles/zshrc", "test");
    check("rm dotfiles/templates/zshrc", "drift");
    check("echo 'TOKEN=; if' >> dotfiles/zshrc", "scan test");
    // Mended, it goes through.
    shell(&place, "echo 'load_completions &' > dotfiles/zshrc").expect_code(0);
    workflow(&place, "team.toml", &[]).expect_code(0);
    assert_eq!(commits(&place), format!("{TASK}\nthe first version\n"));
}

#[test]
fn validators_run_at_the_same_time_and_with_one_slot_one_after_another() {
    let place = place();
    // Each validator first waits for the two others, so that they end only if all three run at once.
    let names = ["scan", "test", "sync"];
    let meet = r#"case $OFFSHOOT_TASK in sync*) exec sh scripts/sync.sh ;; esac
        for other in scan test sync; do [ $other = $1 ] || echo > $1-$other & done
        for other in scan test sync; do [ $other = $1 ] || cat $other-$1 > /dev/null; done
        wait; exec sh scripts/$1.sh"#;
    place.file("meet.sh", meet);
    shell(
        &place,
        "for a in scan test sync; do for b in scan test sync; do mkfifo $a-$b; done; done",
    )
    .expect_code(0);
    let team = fs::read_to_string(place.path().join("team.toml")).expect("it was copied");
    let met = names.iter().fold(team, |team, name| {
        let meets =
            team.replace(&format!("\"scripts/{name}.sh\""), &format!("\"meet.sh\", \"{name}\""));
        assert_ne!(meets, team, "{name}");
        meets
    });
    place.file("meet.toml", met);
    workflow(&place, "meet.toml", &[]).expect_code(0);
    let at_once = spans(&place);
    let last_start = at_once.iter().map(|(start, _)| start).max();
    assert!(last_start < at_once.iter().map(|(_, end)| end).min(), "{at_once:?}");
    // With one slot no two of them overlap, and the answer is the same.
    shell(&place, "rm -rf dotfiles; sh prepare.sh").expect_code(0);
    workflow(&place, "team.toml", &["--max-concurrent", "1"]).expect_code(0);
    let in_turn = spans(&place);
    assert!(in_turn.windows(2).all(|pair| pair[0].1 < pair[1].0), "{in_turn:?}");
    place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn where_the_tree_is_as_deep_as_it_may_be_an_agent_does_it_itself() {
    let place = place();
    workflow(&place, "team.toml", &["--max-depth", "1"]).expect_code(0);
    assert!(runs(&place).iter().all(|run| run["agent"] != "git-coordinator"));
    assert_eq!(commits(&place), format!("{TASK}\nthe first version\n"));
}
