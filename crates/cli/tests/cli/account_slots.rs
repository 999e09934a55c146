//! Slots that the runs of one account share over all trees of a user: models behind a chat endpoint, in trees of two projects.

use std::process::{Child, Command};

use offshoot_fake_model_api::{Condition, FakeModelApi, Reply, Rule, Script};
use serde_json::Value;

use crate::command::Place;
use crate::host_slots::{count, events, most_at_once, neighbour};
use crate::walls::followed_until;

/// A user whose runs of one account have this many slots together, before a service that takes a moment for each answer.
fn user(slots: u32, more: &str) -> (Place, FakeModelApi) {
    let slow = Reply::Slow { text: "so it is".to_owned(), pause_ms: 20 };
    let rules = [Rule::when(Condition::Prompt("hang".into()), Reply::Hang), Rule::always(slow)];
    let api = FakeModelApi::start(Script::new(rules)).expect("a free port");
    let place = Place::new();
    let host = format!("[host]\nmaxConcurrentPerAccount = {slots}\n{more}");
    let endpoint = format!("baseUrl = \"{}/v1\"\nmodel = \"small\"\n", api.url());
    let config = format!("{host}\n[runtimes.openai.options]\n{endpoint}");
    place.file("home/.config/offshoot/config.toml", config);
    (place, api)
}

/// A fanout of so many tasks for a model.
fn fanout(place: &Place, tasks: usize, more: &[&str]) -> (Command, Child) {
    let words = ["-q", "fanout", "--runtime", "openai", "--merge", "concatenate"];
    let tasks: Vec<String> = (0..tasks).map(|task| format!("task {task}")).collect();
    let tasks = tasks.iter().flat_map(|task| ["--task", &**task]);
    let words: Vec<&str> = words.into_iter().chain(more.iter().copied()).chain(tasks).collect();
    let mut command = place.command(&words);
    let child = command.spawn().expect("the program was built for this test");
    (command, child)
}

#[test]
fn runs_of_one_account_hold_no_more_slots_over_two_trees() {
    let (one, _api) = user(2, "");
    let other = neighbour(&one, 0);
    let trees = [&one, &other].map(|place| (place, fanout(place, 8, &[])));
    for (place, (command, child)) in trees {
        let outcome = place.finish(child, &command, &[]).expect_code(0);
        assert_eq!(outcome.stdout().matches("so it is").count(), 8, "{}", outcome.text());
        place.run(&["audit", "last"]).expect_code(0);
    }
    let told = [&one, &other].map(events);
    assert_eq!(most_at_once(&told), 2, "as many as may, over both");
    for events in &told {
        let full = count(events, "account_full");
        assert_eq!((count(events, "account_bound"), count(events, "account_free")), (1, full));
        assert!(full > 0, "each has more tasks than slots");
        assert_eq!(count(events, "host_bound") + count(events, "host_full"), 0);
    }
}

#[test]
fn programs_count_for_no_account_and_pass_runs_that_wait() {
    let (place, _api) = user(1, "");
    // The model holds the one slot for ever; three programs run meanwhile.
    let mut command = place.command(&["-q", "run", "--runtime", "openai", "hang"]);
    let mut hangs = command.spawn().expect("the program was built for this test");
    followed_until(&place, "  started");
    let words = ["-q", "fanout", "--task", "a", "--task", "b", "--task", "c", "--", "cat"];
    place.run(&words).expect_code(0);
    let waits = neighbour(&place, 0);
    let (command, child) = fanout(&waits, 1, &[]);
    followed_until(&waits, "  account_full  ");
    let held = "held until another run of openai ends (host.maxConcurrentPerAccount), since ";
    let tree = waits.run(&["tree"]).expect_code(0);
    assert_eq!(tree.stdout().matches(held).count(), 1, "beside the root: {}", tree.text());
    let list = waits.run(&["list", "--all", "--json"]).expect_code(0).json();
    let of_openai = |run: &&Value| run["fullAccounts"][0]["account"]["runtime"] == "openai";
    let list = list.as_array().expect("a list");
    assert_eq!(list.iter().filter(of_openai).count(), 1, "{list:?}");
    for words in [&["stats"][..], &["show", "last"]] {
        let said = waits.run(words).expect_code(0);
        assert!(said.stdout().contains(held), "{}", said.text());
    }
    let doctor = waits.run(&["doctor"]).text();
    let taken = "host.maxConcurrentPerAccount: 1 of 1 slots of openai are taken by 1 tree";
    assert!(doctor.contains(taken), "{doctor}");
    let plan = ["fanout", "--dry-run", "--runtime", "openai", "--task", "a", "--task", "b"];
    let planned = neighbour(&place, 0).run(&plan).expect_code(0);
    let said = "at once: 1, as many as host.maxConcurrentPerAccount lets run";
    assert!(planned.stdout().contains(said), "{}", planned.text());
    // A supervisor that is killed leaves its slots to the others.
    hangs.kill().expect("it was not waited for");
    hangs.wait().expect("it was ours");
    waits.finish(child, &command, &[]).expect_code(0);
    let tree = waits.run(&["tree"]).expect_code(0);
    assert!(!tree.stdout().contains("held by"), "{}", tree.text());
}

#[test]
fn trees_that_need_a_slot_of_the_account_and_one_of_the_host_do_not_wait_for_each_other() {
    let (one, _api) = user(1, "maxConcurrent = 1\n");
    let other = neighbour(&one, 0);
    let trees = [&one, &other].map(|place| (place, fanout(place, 6, &[])));
    for (place, (command, child)) in trees {
        place.finish(child, &command, &[]).expect_code(0);
        place.run(&["audit", "last"]).expect_code(0);
    }
}

#[test]
fn an_audit_of_all_trees_counts_the_slots_of_each_account() {
    let (place, _api) = user(2, "");
    let trees = [(); 2].map(|()| fanout(&place, 4, &[]));
    for (command, child) in trees {
        place.finish(child, &command, &[]).expect_code(0);
    }
    let page = place.run(&["audit", "--all", "--json"]).expect_code(0).json();
    assert_eq!((&page["holds"], &page["trees"]), (&true.into(), &2.into()), "{page}");
    let [openai] = &page["host"]["accounts"].as_array().expect("a list")[..] else {
        panic!("one account: {page}")
    };
    assert_eq!((&openai["peak"], &openai["maxConcurrent"]), (&2.into(), &2.into()), "{page}");
    for words in [&["audit", "--all"][..], &["audit", "last"]] {
        let text = place.run(words).expect_code(0);
        let line = text.stdout().lines().find(|line| line.starts_with("openai at once"));
        let line = line.unwrap_or_else(|| panic!("{}", text.text()));
        assert!(line.ends_with(" of 2 (host.maxConcurrentPerAccount)"), "{line}");
    }
}

#[test]
fn a_folder_that_cannot_be_used_starts_no_run_of_the_account() {
    let (place, _api) = user(1, "");
    place.file("home/.local/state/offshoot/account-slots", "a file");
    let outcome = place.run(&["run", "--runtime", "openai", "task"]);
    for said in [
        "host.maxConcurrentPerAccount is set, and the runs of openai in all trees cannot be counted",
        "/.local/state/offshoot/account-slots",
        "mend what the message names of the folder `offshoot/account-slots`",
    ] {
        assert!(outcome.text().contains(said), "{}", outcome.text());
    }
    outcome.expect_code(1);
    place.run(&["run", "x", "--", "echo", "a program has no account"]).expect_code(0);
}
