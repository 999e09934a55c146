//! `offshoot spawn`, as a program calls it inside a run.

use crate::command::{Place, check_text};

#[test]
fn a_request_says_what_the_door_takes() {
    let place = Place::new();
    place.file("sub/here", "");
    let outcome = place.tree(
        &["--ok-exit", "0"],
        r#"ask() { "$OFFSHOOT" -q spawn --wait "$@"; echo $?; }
           ask --cwd sub x -- ls
           ask --ok-exit 0,7 x -- sh -c 'echo seven; exit 7'
           ask x -- sh -c 'exit 7' 2>/dev/null
           ask --output json --json x -- echo '{"a":1}' | tr -d ' \n' | grep -o '"data":{"a":1}'
           ask --json x -- echo '{"a":1}' | tr -d ' \n' | grep -o '"data":"{'
           ask --model m --thinking high x -- true
           ask --max-depth 1 x -- sh -c '"$OFFSHOOT" -q spawn y -- true 2>&1 | head -1'
           ask --max-depth 2 x -- sh -c '"$OFFSHOOT" -q spawn --wait y -- echo below'
           ask --max-depth 2 x -- sh -c '"$OFFSHOOT" -q spawn --wait --max-depth 3 y -- sh -c "\"\$OFFSHOOT\" -q spawn z -- true 2>&1 | head -1"'
           ask --tools read,exec x -- sh -c '"$OFFSHOOT" -q spawn y -- true 2>&1 | head -1'"#,
    );
    let deepest = |depth| {
        format!("error: Maximum subagent depth reached ({depth}). Cannot spawn deeper.\n0\n")
    };
    let expected = [
        "here\n0\nseven\n0\n\n1\n\"data\":{\"a\":1}\n\"data\":\"{\n\n0\n",
        &deepest(1),
        "below\n0\n",
        &deepest(2),
        "error: the right `spawn` is not among the tools of this session\n0\n",
    ];
    assert_eq!(outcome.expect_code(0).stdout(), expected.concat());
    let root =
        place.run(&["list", "--json"]).json()[0]["runId"].as_str().expect("a run").to_owned();
    let events = place.run(&["events", "--json", &root]).expect_code(0);
    assert!(events.stdout().contains(r#""model":"m","thinking":"high""#), "{}", events.stdout());
    place.run(&["audit", &root]).expect_code(0);
}

#[test]
fn what_is_lowered_is_said_with_its_setting() {
    let place = Place::new();
    place.file(
        "c.toml",
        "[[agents.list]]\nid = \"main\"\nsubagents = { allowAgents = [\"main\", \"scout\"] }\n\
         [[agents.list]]\nid = \"scout\"\ntools = { allow = [\"read\"] }\ncommand = [\"true\"]\n\
         subagents = { maxDepth = 2, budget = { tokens = 10 } }\n",
    );
    let limits = ["--config", "c.toml", "--timeout", "40s", "--budget-tokens", "1000"];
    let outcome = place.tree(
        &limits,
        r#"exec 2>&1
           "$OFFSHOOT" spawn --timeout 2m x -- true >/dev/null
           "$OFFSHOOT" spawn --max-depth 7 --timeout 30s x -- true >/dev/null
           "$OFFSHOOT" spawn --agent scout --budget-tokens 50 --max-depth 3 --tools read,write x >/dev/null
           "$OFFSHOOT" -q spawn --timeout 2m --json x -- true | grep -A12 lowered | tr -d ' \n'; echo
           "$OFFSHOOT" -q spawn --timeout 20s --wait x -- sh -c '"$OFFSHOOT" spawn --timeout 25s y -- true 2>&1 >/dev/null'
           "$OFFSHOOT" -q spawn --budget-tokens 2000 x -- true 2>said; echo $?
           sed 's/[0-9]* tokens left/some left/' said
           "$OFFSHOOT" -q run --timeout 2m --output json x -- echo '[1]'
           "$OFFSHOOT" -q wait >/dev/null"#,
    );
    check_text("spawn_lowered", outcome.expect_code(0).stdout());
}

#[test]
fn what_is_not_queued_is_refused_where_no_slot_is_free() {
    let place = Place::new();
    let outcome = place.tree(
        &["--max-concurrent", "1"],
        r#""$OFFSHOOT" -q spawn --queue false x -- true 2>/dev/null; echo $?
           "$OFFSHOOT" -q spawn --queue true --wait x -- echo queued; echo $?"#,
    );
    assert_eq!(outcome.expect_code(0).stdout(), "3\nqueued\n0\n");
}

#[test]
fn a_child_works_in_the_folder_of_its_agent() {
    let place = Place::new();
    for folder in ["own", "other", "third"] {
        place.file(&format!("{folder}/here"), folder);
    }
    place.file(
        "c.toml",
        "[[agents.list]]\nid = \"main\"\n\
         subagents = { allowAgents = [\"main\", \"scout\"] }\n\
         preferredSubagents = [{ scout = \"reads files\" }]\n\
         [[agents.list]]\nid = \"scout\"\ncommand = [\"cat\", \"here\"]\ncwd = \"own\"\n",
    );
    let script = r#"ask() { "$OFFSHOOT" -q spawn --wait "$@"; }
        ask --agent scout x
        ask --agent scout --cwd other x
        "$OFFSHOOT" -q delegate --wait 'read a file'
        "$OFFSHOOT" -q fanout --agent scout --task x
        cd third; ask --agent scout x
        ask x -- cat here"#;
    let outcome = place.tree(&["--config", "c.toml"], script).expect_code(0);
    assert_eq!(outcome.stdout(), "own\nother\nown\nown\nthird\nthird\n", "{}", outcome.stderr);
}
