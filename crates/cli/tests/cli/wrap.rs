//! Agents behind a wrapper: a prefix of their command, which may shut them in. Here with real ones.

use std::fs;

use offshoot_test_support::Disk;

use crate::command::Place;

/// A configuration in which the runtime for programs has this wrapper.
fn wrapped(place: &Place, words: &[&str]) {
    let words = serde_json::to_string(words).expect("words are JSON, and TOML");
    place.file("c.toml", format!("[runtimes.exec]\nwrap = {words}\n"));
}

/// True if root may mount here; where that is not permitted, the test says so.
fn may_shut_in() -> bool {
    Disk::of(64 * 1024).is_some()
}

#[test]
fn children_are_wrapped_as_their_parents_are() {
    let place = Place::new();
    wrapped(&place, &["setpriv", "--no-new-privs"]);
    let outcome = place.tree(
        &["--config", "c.toml"],
        r#"privileges() { sed -n 's/^NoNewPrivs:[^0-9]*//p' /proc/self/status; }
           privileges; "$OFFSHOOT" spawn --wait x -- sed -n 's/^NoNewPrivs:[^0-9]*//p' /proc/self/status"#,
    );
    assert_eq!(outcome.expect_code(0).stdout(), "1\n1\n");
}

#[test]
fn an_agent_in_a_world_of_processes_of_its_own_still_asks_for_children() {
    if !may_shut_in() {
        return;
    }
    let place = Place::new();
    wrapped(&place, &["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]);
    let outcome = place.tree(
        &["--config", "c.toml", "--max-depth", "1"],
        r#"echo "process $$ at depth $OFFSHOOT_DEPTH"
           "$OFFSHOOT" spawn --wait x -- sh -c '
             echo "process $$ at depth $OFFSHOOT_DEPTH"
             "$OFFSHOOT" -q spawn y -- cat 2> /dev/null; echo $?
             "$OFFSHOOT" -q --data-dir elsewhere run y -- cat 2> /dev/null; echo $?'"#,
    );
    let expected = "process 1 at depth 0\nprocess 1 at depth 1\n3\n3\n";
    assert_eq!(outcome.expect_code(0).stdout(), expected);
    assert!(!place.path().join("elsewhere").exists());
}

#[test]
fn a_file_is_the_one_that_the_agent_sees() {
    if !may_shut_in() {
        return;
    }
    let place = Place::new();
    wrapped(&place, &["unshare", "--mount"]);
    for (path, text) in [("world/notes", "outside\n"), ("secret", "kept from the agent\n")] {
        place.file(path, text);
    }
    fs::create_dir(place.path().join("empty")).expect("the folder is new");
    let outcome = place.tree(
        &["--config", "c.toml"],
        r#"mount -t tmpfs none world && echo inside > world/notes
           hidden=$PWD/secret; ln -s "$hidden" world/link; mount --bind /dev/null secret
           read_it() { "$OFFSHOOT" -q spawn --wait --context it="$1" x -- sh -c 'sed -n "s/^Read //p" | xargs cat' 2>&1; echo $?; }
           read_it world/notes
           read_it world/link
           read_it world/none"#,
    );
    let text = outcome.expect_code(0);
    let lines: Vec<&str> = text.stdout().lines().collect();
    assert_eq!(lines[..2], ["inside", "0"]);
    assert!(!text.stdout().contains("kept from the agent"), "{}", text.text());
    assert!(text.stdout().contains("world/link` is not a regular file"), "{}", text.text());
    assert!(text.stdout().contains("world/none\n  caused by: no such file"), "{}", text.text());
}

#[test]
fn another_user_cannot_read_the_record_and_is_no_caller() {
    if !may_shut_in() {
        return;
    }
    let place = Place::new();
    wrapped(&place, &["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    let outcome = place.tree(
        &["--config", "c.toml"],
        r#"id -u; "$FAKE" ask status '{}' 2>/dev/null || echo nobody
           cat .offshoot/offshoot.db > /dev/null 2>&1 || echo unreadable"#,
    );
    assert_eq!(outcome.expect_code(0).stdout(), "65534\nnobody\nunreadable\n");
}

#[test]
fn the_program_of_a_model_is_wrapped_too() {
    let place = Place::new();
    // It stands for a Claude Code, and ends without a result as soon as it has shown how it was started.
    place.file("model.sh", "echo \"$WRAPPED by $0\" > seen");
    place.file(
        "c.json5",
        r#"{
            agents: { defaults: { subagents: { allowAgents: ["*"] } }, list: [{ id: "model", runtime: "claude" }] },
            runtimes: { claude: { wrap: ["env", "WRAPPED=yes"], command: ["sh", "model.sh"] } },
        }"#,
    );
    let outcome = place.tree(
        &["--config", "c.json5"],
        r#""$OFFSHOOT" -q spawn --wait --agent model think 2> /dev/null; echo $?; cat seen"#,
    );
    assert_eq!(outcome.expect_code(0).stdout(), "1\nyes by model.sh\n");
}
