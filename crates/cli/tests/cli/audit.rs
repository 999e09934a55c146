//! `offshoot audit`: real trees pass it, and a record that was changed afterwards does not.

use rusqlite::Connection;
use serde_json::Value;

use crate::command::Place;
use crate::forged::forge;

/// A place in which agents have asked for agents, two levels deep; and the id of their tree.
fn with_a_tree() -> (Place, String) {
    let place = Place::new();
    let script = r#"
        [ "$OFFSHOOT_DEPTH" = 2 ] || for task in a b; do
            "$OFFSHOOT" spawn --wait "$task" -- sh "$0" >/dev/null || exit 9
        done
        echo done"#;
    let script = place.file("agent.sh", script);
    let run = ["run", "--json", "--allow-recursive-spawn", "--max-concurrent", "2", "start", "--"];
    let run = [&run[..], &["sh", script.to_str().expect("a path of ours")]].concat();
    let report = place.run(&run).expect_code(0).json();
    let id = report["runId"].as_str().expect("the report names the root").to_owned();
    (place, id)
}

fn change(place: &Place, statement: &str) {
    let database = Connection::open(place.path().join(".offshoot/offshoot.db")).expect("a record");
    assert!(database.execute(statement, ()).expect("it is one statement") > 0);
}

#[test]
fn a_tree_of_agents_passes() {
    let (place, id) = with_a_tree();
    let audited = place.run(&["audit", "--json", &id]).expect_code(0).json();
    assert_eq!(audited["holds"], true);
    assert_eq!(audited["chain"]["link"].as_str().map(str::len), Some(64));
    let findings = &audited["findings"];
    assert_eq!(findings["breaches"], Value::Array(Vec::new()));
    assert_eq!((&findings["runs"], &findings["spawns"]), (&7.into(), &6.into()));
    assert_eq!(findings["deepest"], 2);
    assert_eq!(findings["endings"]["completed"], 7);
    assert_eq!(findings["rules"]["maxConcurrent"], 2);
    let peak = findings["peakConcurrency"].as_u64().expect("a number");
    assert!((1..=2).contains(&peak), "{peak}");

    let told = place.run(&["audit", &id]).expect_code(0);
    let text = told.stdout();
    for line in ["runs    7", "spawns  6 of 64,", "depth   2", "chain   holds, last link"] {
        let words: Vec<&str> = line.split_whitespace().collect();
        let found = text.lines().any(|line| {
            line.split_whitespace().zip(&words).filter(|(a, b)| a == *b).count() == words.len()
        });
        assert!(found, "{line} in\n{text}");
    }
    assert!(text.ends_with("no breach\n"), "{text}");
}

#[test]
fn what_was_changed_afterwards_is_named() {
    let (place, id) = with_a_tree();
    change(
        &place,
        "UPDATE events SET body = replace(body, '\"depth\":2', '\"depth\":1') WHERE kind = 'admitted'",
    );
    let audited = place.run(&["audit", "--json", &id]).expect_code(1).json();
    assert_eq!(audited["holds"], false);
    assert_eq!(audited["chain"]["holds"], false);
    let error = audited["chain"]["error"].as_str().expect("it says what");
    assert!(error.contains("is not what was recorded"), "{error}");
    // The rest is read all the same, and shows what does not fit.
    let breaches = audited["findings"]["breaches"].as_array().expect("a list");
    assert!(breaches.iter().all(|breach| breach["rule"] == "lineage"), "{breaches:?}");
    assert!(breaches.len() >= 4, "{breaches:?}");
    let told = place.run(&["audit", &id]).expect_code(1);
    let text = told.stdout();
    assert!(text.contains("breach: event"), "{text}");
}

#[test]
fn a_record_that_cannot_be_read_in_a_place_is_read_elsewhere() {
    let (place, id) = with_a_tree();
    change(&place, "UPDATE events SET body = '{\"unheard_of\":1}' WHERE seq = 3");
    let audited = place.run(&["audit", "--json", &id]).expect_code(1).json();
    assert_eq!(audited["unreadable"].as_array().map(Vec::len), Some(1));
    assert_eq!(audited["findings"]["breaches"][0]["rule"], "sequence");
    place.run(&["audit", "nothing-like-it"]).expect_code(2);
}

#[test]
fn a_record_that_was_written_anew_does_not_continue_a_link_that_was_kept() {
    let (place, id) = with_a_tree();
    let heads = place.run(&["audit", "--head"]).expect_code(0);
    let [tree, events, link] = heads.stdout().split_whitespace().collect::<Vec<_>>()[..] else {
        panic!("one line: {}", heads.text());
    };
    assert_eq!(tree, id);
    let audited = place.run(&["audit", "--json", &id]).expect_code(0).json();
    assert_eq!(audited["chain"]["link"], link);
    assert_eq!(audited["findings"]["events"].to_string(), events);
    let one = place.run(&["audit", "--head", "--json", &id[..13]]).expect_code(0).json();
    assert_eq!((&one[0]["tree"], &one[0]["link"]), (&id.as_str().into(), &link.into()));
    // What was kept in the middle of its life is continued as well.
    let database = Connection::open(place.path().join(".offshoot/offshoot.db")).expect("a record");
    let middle: [u8; 32] = database
        .query_row("SELECT chain FROM events WHERE seq = 5", (), |row| row.get(0))
        .expect("it has more events");
    drop(database);
    let middle: String = middle.iter().map(|byte| format!("{byte:02x}")).collect();
    for (kept, event) in [(link, events), (&middle, "5")] {
        let text = place.run(&["audit", &id, "--since", kept]).expect_code(0);
        let row = format!("the link that was kept is that of event {event}");
        assert!(text.stdout().contains(&row), "{}", text.text());
    }
    forge(&place, r#"UPDATE events SET body = replace(body, '"start"', '"begin"') WHERE seq = 1"#);
    place.run(&["audit", &id]).expect_code(0);
    for kept in [link, &middle] {
        let text = place.run(&["audit", &id, "--since", kept]).expect_code(1);
        assert!(
            text.stdout().contains("the record was written anew since then"),
            "{}",
            text.text()
        );
    }
    // Without a run it is the newest tree.
    assert!(place.run(&["audit"]).expect_code(0).stdout().contains(&id));
}

#[test]
fn the_last_link_of_each_tree_is_kept_where_the_user_wants_it() {
    let place = Place::new();
    let heads = place.path().join("heads");
    let kept = |words: &[&str]| {
        let mut command = place.command(words);
        command.env("OFFSHOOT_AUDIT_HEADS", &heads);
        place.outcome(command, &[]).expect_code(0);
        std::fs::read_to_string(&heads).expect("the file cannot be read")
    };
    kept(&["run", "x", "--", "cat"]);
    place.file("two", "1\n2\n");
    let lines = kept(&["map", "--split", "lines:1", "two", "--", "cat"]);
    assert_eq!(lines, place.run(&["audit", "--head"]).expect_code(0).stdout());
    assert_eq!(lines.lines().count(), 2);
}

#[test]
fn a_program_of_the_operator_is_told_of_each_last_link_and_cannot_break_a_tree() {
    let place = Place::new();
    let run = |heads: &str| {
        place.file("c.toml", format!("[audit]\nheads = {heads}\n"));
        let ran = place.run(&["--config", "c.toml", "run", "x", "--", "cat"]).expect_code(0);
        assert_eq!(ran.stdout(), "x\n", "{heads}");
        ran.stderr
    };
    assert!(!run(r#"["sh", "-c", "cat >> heads"]"#).contains("warning"));
    assert!(!run(r#""heads""#).contains("warning"));
    let lines =
        std::fs::read_to_string(place.path().join("heads")).expect("the file cannot be read");
    assert_eq!(lines, place.run(&["audit", "--head"]).expect_code(0).stdout());
    assert_eq!(lines.lines().count(), 2);
    for (heads, why) in [
        (r#"["no-such-program"]"#, "no-such-program"),
        (r#"["sh", "-c", "echo the disk is full >&2; exit 3"]"#, "exit code 3: the disk is full"),
        (r#""/proc/no/such/file""#, "/proc/no/such/file"),
    ] {
        let said = run(heads);
        assert!(said.contains("is not kept") && said.contains(why), "{heads}: {said}");
    }
}

#[test]
fn a_tree_is_signed_when_it_ends_where_the_configuration_names_a_key() {
    let place = Place::new();
    place.file("key", KEY);
    place.file("key.pub", PUBLIC);
    place.file("c.toml", "[audit]\nheads = \"heads\"\nsign = \"key\"\n");
    let run = ["--config", "c.toml", "run", "x", "--", "cat"];
    for _ in 0..2 {
        place.run(&run).expect_code(0);
    }
    for tree in place.run(&["list", "--json"]).json().as_array().expect("a list") {
        let id = tree["runId"].as_str().expect("the run has no id");
        let verify = ["audit", id, "--verify", "heads", "--key", "key.pub"];
        let verified = place.run(&verify).expect_code(0);
        assert!(verified.stdout().contains("SHA256:"), "{}", verified.text());
    }
    forge(&place, "UPDATE events SET body = replace(body, 'x', 'y') WHERE kind = 'ended'");
    let id = place.run(&["list", "--json"]).json()[0]["runId"].clone();
    let verify =
        ["audit", id.as_str().expect("the run has no id"), "--verify", "heads", "--key", "key.pub"];
    place.run(&verify).expect_code(1);
    // A key that cannot be used is no fault of the tree.
    place.file("key", "no key");
    let ran = place.run(&run).expect_code(0);
    assert!(ran.stderr.contains("is not kept") && ran.stderr.contains("key"), "{}", ran.stderr);
    place.file("c.toml", "[audit]\nsign = \"key\"\n");
    let ran = place.run(&run).expect_code(0);
    assert!(ran.stderr.contains("`audit.heads` is not"), "{}", ran.stderr);
}

#[test]
fn an_agent_redirects_neither_the_last_link_nor_its_signature() {
    use std::os::unix::fs::symlink;
    let place = Place::new();
    let heads = place.path().join("heads");
    place.file("key", KEY);
    place.file("key.pub", PUBLIC);
    let victim = place.file("victim", "mine\n");
    place.file("c.toml", "[audit]\nheads = \"heads\"\nsign = \"key\"\n");
    // The key that holds is that of the beginning.
    let run = |script: &str| {
        let arguments = ["--config", "c.toml", "run", "x", "--", "sh", "-c", script];
        place.run(&arguments).expect_code(0)
    };
    assert_eq!(run("echo no key > key").stderr, "");
    let id = place.run(&["list", "--json"]).json()[0]["runId"].clone();
    let verify =
        ["audit", id.as_str().expect("the run has no id"), "--verify", "heads", "--key", "key.pub"];
    place.run(&verify).expect_code(0);
    place.file("key", KEY);
    std::fs::remove_file(&heads).expect("it was written");

    symlink(&victim, &heads).expect("the link cannot be made");
    let said = run("exit 0").stderr;
    assert!(said.contains("is not kept") && said.contains("heads"), "{said}");
    assert_eq!(std::fs::read_to_string(&victim).expect("the file cannot be read"), "mine\n");
    std::fs::remove_file(&heads).expect("a link");
    // A pipe that is not read would be waited for without end.
    let said = run("mkfifo heads").stderr;
    assert!(said.contains("is not kept") && said.contains("heads"), "{said}");
}

#[test]
fn links_of_the_user_and_names_with_dots_are_no_attack() {
    use std::os::unix::fs::symlink;
    let place = Place::new();
    place.file("p/sub/file", "");
    let run = |folder: &str, heads: &str| {
        let data = place.path().join("data");
        let data = data.to_str().expect("it is UTF-8");
        let mut command = place.command(&["--data-dir", data, "run", "x", "--", "cat"]);
        command.env("OFFSHOOT_AUDIT_HEADS", heads).current_dir(folder);
        assert_eq!(place.outcome(command, &[]).expect_code(0).stderr, "", "{folder}, {heads}");
    };
    let lines = |name: &str| {
        let text = std::fs::read_to_string(place.path().join(name)).expect("it was written");
        text.lines().count()
    };
    let folder = place.path().join("p");
    let folder = folder.to_str().expect("it is UTF-8");
    for heads in ["../heads", "./../heads", "sub/../../heads", &format!("{folder}/../heads")] {
        run(folder, heads);
    }
    assert_eq!(lines("heads"), 4);
    for heads in ["heads", "../p/heads", "sub/../heads", &format!("{folder}/./heads")] {
        run(folder, heads);
    }
    assert_eq!(lines("p/heads"), 4);
    // A folder that holds everything is nothing that agents can write into for that reason.
    symlink("p", place.path().join("link")).expect("the link cannot be made");
    run("/", place.path().join("link/heads").to_str().expect("it is UTF-8"));
    run("/", "/dev/null");
    assert_eq!(lines("p/heads"), 5);
}

#[test]
fn a_project_names_its_files_from_its_own_folder() {
    let place = Place::new();
    let config = |heads: &str| {
        let config = "[[agents.list]]\nid = \"main\"\ncwd = \"sub\"\n\
                      command = [\"sh\", \"./run.sh\"]\n\n[runtimes.exec]\ncost = \"none\"\n\n\
                      [audit]\nsign = \"key\"\n";
        place.file("p/.offshoot/config.toml", format!("{config}heads = {heads}\n"));
        place.run(&["trust", "p"]).expect_code(0);
    };
    for (folder, key, says) in [("p", KEY, "good"), ("p/vendor/x", "another key", "evil")] {
        place.file(&format!("{folder}/key"), key);
        place.file(&format!("{folder}/sub/run.sh"), format!("echo {says}\n"));
        place.file(&format!("{folder}/heads.sh"), format!("cat >> {says}\n"));
    }
    place.file("p/key.pub", PUBLIC);
    let below = |words: &[&str]| {
        let mut command = place.command(words);
        command.current_dir(place.path().join("p/vendor/x"));
        place.outcome(command, &[]).expect_code(0)
    };
    for (heads, lines) in [("\"lines\"", "p/lines"), ("[\"sh\", \"./heads.sh\"]", "p/good")] {
        config(heads);
        let ran = below(&["run", "x"]);
        assert_eq!((ran.stdout(), ran.stderr.as_str()), ("good\n", ""), "{heads}");
        let trees = below(&["list", "--json"]).json();
        let id = trees.as_array().and_then(|trees| trees.last()).expect("a tree")["runId"].clone();
        let (lines, key) = (place.path().join(lines), place.path().join("p/key.pub"));
        let [lines, key] = [&lines, &key].map(|path| path.to_str().expect("it is UTF-8"));
        below(&["audit", id.as_str().expect("the run has no id"), "--verify", lines, "--key", key]);
    }
}

/// A key for this test alone; it opens nothing.
const KEY: &str = "\
-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW
QyNTUxOQAAACD/Zv7qO+8jwSdFaPY8+hlFTDOpep8MsfRg4U2rzKm2ogAAAJD3s3gI97N4
CAAAAAtzc2gtZWQyNTUxOQAAACD/Zv7qO+8jwSdFaPY8+hlFTDOpep8MsfRg4U2rzKm2og
AAAECI6Gmcv8YQNOJWQEdtoVmDzyf7fZ76ZpvDlfISmTxSU/9m/uo77yPBJ0Vo9jz6GUVM
M6l6nwyx9GDhTavMqbaiAAAACWZvciB0ZXN0cwECAwQ=
-----END OPENSSH PRIVATE KEY-----
";
const PUBLIC: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIP9m/uo77yPBJ0Vo9jz6GUVMM6l6nwyx9GDhTavMqbai for tests";

#[test]
fn a_tree_that_was_signed_is_proven_by_its_signature() {
    let (place, id) = with_a_tree();
    place.file("key", KEY);
    place.file("key.pub", PUBLIC);
    let signature = place.run(&["audit", &id, "--sign", "key"]).expect_code(0);
    assert!(
        signature.stdout().starts_with("-----BEGIN SSH SIGNATURE-----"),
        "{}",
        signature.text()
    );
    place.file("signature", signature.stdout());
    let verify = ["audit", &id, "--verify", "signature", "--key", "key.pub"];
    let verified = place.run(&verify).expect_code(0);
    assert!(verified.stdout().contains("signed") && verified.stdout().contains("SHA256:"));
    forge(&place, "UPDATE events SET body = replace(body, 'done', 'gone')");
    let refused = place.run(&verify).expect_code(1);
    assert!(refused.stderr.contains("is no signature of this record"), "{}", refused.stderr);
    place.run(&["audit", &id, "--sign", "signature"]).expect_code(2);
    // One that is not over is not signed.
    let open = "UPDATE events SET body = '\"budget_notice\"', kind = 'budget_notice'
                WHERE kind = 'ended' AND run = (SELECT root FROM roots);
                UPDATE roots SET ended = 0";
    forge(&place, open);
    let refused = place.run(&["audit", &id, "--sign", "key"]).expect_code(2);
    assert!(refused.stderr.contains("is not over"), "{}", refused.stderr);
}
