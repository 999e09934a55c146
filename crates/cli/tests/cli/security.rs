//! Programs that want more than they were granted. They ask at the door in every way they can think of, and gain
//! nothing: the same depth, the same budget, the same rights.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use offshoot_test_support::lacking;
use serde_json::Value;

use crate::command::Place;

/// The labels of the runs below the root, with their depths.
fn runs(place: &Place) -> Vec<(String, u64)> {
    let listed = place.run(&["list", "--all", "--json"]).expect_code(0).json();
    let listed = listed.as_array().expect("a list");
    let row = |run: &Value| {
        let label = run["label"].as_str().unwrap_or_default().to_owned();
        (label, run["depth"].as_u64().expect("a depth"))
    };
    listed.iter().filter(|run| run["depth"] != 0).map(row).collect()
}

#[test]
fn a_cleared_environment_changes_nothing() {
    let place = Place::new();
    let outcome = place.tree(
        &["--max-depth", "1"],
        r#""$OFFSHOOT" spawn --wait --label child x -- sh -c '
             env -i PATH="$PATH" "$OFFSHOOT" -q spawn x -- cat 2>/dev/null; echo $?
             env -i PATH="$PATH" XDG_RUNTIME_DIR="$PWD" "$OFFSHOOT" -q spawn x -- cat 2>/dev/null; echo $?'
           env -i "$OFFSHOOT" spawn --wait --label bare mine -- /bin/cat"#,
    );
    assert_eq!(outcome.expect_code(0).stdout(), "3\n3\nmine\n");
    assert_eq!(runs(&place), [("child".to_owned(), 1), ("bare".to_owned(), 1)]);
}

#[test]
fn a_tree_that_an_agent_opens_by_hand_is_a_child_of_it() {
    let place = Place::new();
    let outcome = place.tree(
        &["--max-depth", "1"],
        r#"by_hand() { env -i PATH="$PATH" XDG_RUNTIME_DIR="$PWD" "$OFFSHOOT" -q --data-dir elsewhere "$@" 2>/dev/null; }
           "$OFFSHOOT" -q --data-dir elsewhere run --label one 1 -- cat
           by_hand run --label two 2 -- sh -c '
             echo "depth $OFFSHOOT_DEPTH"
             env -i PATH="$PATH" "$OFFSHOOT" -q --data-dir elsewhere run 3 -- cat 2>/dev/null; echo $?
             env -i PATH="$PATH" "$OFFSHOOT" -q --data-dir elsewhere run --allow-recursive-spawn 3 -- cat 2>/dev/null; echo $?'
           by_hand run --max-depth 9 4 -- cat; echo $?
           by_hand map /etc/passwd -- echo mapped; echo $?
           by_hand fanout --task 5 --task 6 --merge sum -- sh -c 'read n; echo $n'; echo $?
           by_hand fanout --max-concurrent 99 --task 7 -- cat; echo $?"#,
    );
    assert_eq!(outcome.expect_code(0).stdout(), "1\ndepth 1\n3\n3\n4\n0\nmapped\n0\n11\n0\n2\n");
    let expected = [("one", 1), ("two", 1), ("", 1), ("passwd", 1), ("5", 1), ("6", 1)];
    assert_eq!(runs(&place), expected.map(|(label, depth)| (label.to_owned(), depth)));
    assert!(!place.path().join("elsewhere").exists(), "no tree was opened there");
}

#[test]
fn a_supervisor_that_cannot_be_reached_is_no_way_out() {
    let place = Place::new();
    let outcome = place.tree(
        &[],
        r#"rm "$OFFSHOOT_SOCKET"
           "$OFFSHOOT" -q --data-dir elsewhere run x -- cat; echo $?"#,
    );
    assert_eq!(outcome.expect_code(0).stdout(), "3\n");
    assert!(!place.path().join("elsewhere").exists());
}

#[test]
fn the_ticket_of_another_run_is_worth_nothing() {
    let place = Place::new();
    // The thief finds the tickets where the kernel shows them to every process of its user.
    place.file(
        "thief.sh",
        r#"for pid in "$@"; do
             ticket=$(tr '\0' '\n' < /proc/$pid/environ | sed -n 's/^OFFSHOOT_TICKET=//p')
             [ ${#ticket} = 32 ] || echo "no ticket to steal"
             OFFSHOOT_TICKET=$ticket "$OFFSHOOT" spawn --label stolen x -- cat 2>said; echo $?
             grep "$ticket" said
           done
           true"#,
    );
    let outcome = place.tree(
        &[],
        r#"mkfifo ready over
           "$OFFSHOOT" spawn --label victim x -- sh -c 'echo $$ > ready; cat over' >/dev/null
           read victim < ready
           "$OFFSHOOT" spawn --wait --label thief x -- sh thief.sh $victim $$
           sh thief.sh $victim
           echo > over
           ticket=$("$OFFSHOOT" spawn --wait --label past x -- sh -c 'echo $OFFSHOOT_TICKET')
           OFFSHOOT_TICKET=$ticket "$OFFSHOOT" -q spawn --label stolen x -- cat 2>/dev/null; echo $?
           OFFSHOOT_TICKET=$ticket "$OFFSHOOT" -q run --label stolen x -- cat 2>/dev/null; echo $?"#,
    );
    assert_eq!(outcome.expect_code(0).stdout(), "3\n3\n3\n3\n3\n");
    let labels: Vec<String> = runs(&place).into_iter().map(|(label, _)| label).collect();
    assert_eq!(labels, ["victim", "thief", "past"]);
}

#[test]
fn the_ticket_of_another_run_is_worth_nothing_in_its_group_either() {
    let place = Place::new();
    // Its parent holds a pipe open until the moment at which it is gone, so that no parent tells whose it is.
    place.file(
        "thief.sh",
        r#"cat gone > /dev/null
           ticket=$(tr '\0' '\n' < /proc/$1/environ | sed -n 's/^OFFSHOOT_TICKET=//p')
           [ ${#ticket} = 32 ] || echo "no ticket to steal"
           OFFSHOOT_TICKET=$ticket "$FAKE" enter-group-of $1 ask report '{"text":"stolen"}' > said 2>&1
           echo > over"#,
    );
    let outcome = place.tree(
        &[],
        r#"mkfifo ready gone over done
           "$OFFSHOOT" spawn --label victim x -- sh -c 'echo $$ > ready; cat done' >/dev/null
           read victim < ready
           "$OFFSHOOT" spawn --wait --label thief x -- env FAKE="$FAKE" VICTIM="$victim" sh -c '
             sh -c "sh thief.sh $VICTIM < /dev/null > /dev/null 2>&1 & exec 3> gone"
             cat over > /dev/null; grep -o unknown_caller said || cat said'
           echo > done"#,
    );
    assert_eq!(outcome.expect_code(0).stdout(), "unknown_caller\n");
}

#[test]
fn what_is_not_below_a_session_does_not_exist_for_it() {
    let place = Place::new();
    // A sibling that runs, by its id and by its key; one that is over; and the parent.
    place.file(
        "stranger.sh",
        r#"ask() { "$FAKE" ask "$1" "$2" | grep -o 'below this session"}\|no variable' | head -1; }
           for other in "$@"; do
             "$OFFSHOOT" -q wait "$other" 2>/dev/null; echo $?
             "$OFFSHOOT" -q cancel "$other" 2>/dev/null; echo $?
             for method in history wait cancel; do
               ask $method "{\"run\":\"$other\",\"runs\":[\"$other\"]}"
             done
             ask send "{\"to\":\"$other\",\"text\":\"x\"}"
             ask merge "{\"runs\":[\"$other\"],\"order\":{\"strategy\":\"sum\"}}"
             ask context.get "{\"name\":\"sub-result-$other\"}"
             ask context.info "{\"name\":\"sub-result-$other\"}"
             ask tree "{\"run\":\"$other\"}"
           done
           "$FAKE" ask list '{}' | grep -o '"label":"[a-z]*"'"#,
    );
    let outcome = place.tree(
        &[],
        r#"mkfifo ready over
           sibling=$("$OFFSHOOT" spawn --label sibling x -- sh -c 'echo $OFFSHOOT_SESSION_KEY > ready; cat over')
           read key < ready
           past=$("$OFFSHOOT" spawn --label past x -- echo secret)
           "$OFFSHOOT" -q wait $past >/dev/null
           "$OFFSHOOT" spawn --wait --label stranger x -- env FAKE="$FAKE" sh stranger.sh \
             $sibling "$key" $past $OFFSHOOT_RUN_ID
           echo > over; "$OFFSHOOT" -q --json wait $sibling | grep -o '"status": *"[a-z]*"'"#,
    );
    let text = outcome.expect_code(0);
    let lines: Vec<&str> = text.stdout().lines().collect();
    let (asked, rest) = lines.split_at(4 * 10);
    let (below, none) = ("below this session\"}", "no variable");
    for answers in asked.chunks(10) {
        let expected = [&["2", "2"][..], &[below; 5], &[none; 2], &[below]].concat();
        assert_eq!(answers, expected);
    }
    assert_eq!(rest[0], "\"label\":\"stranger\"");
    assert_eq!(rest[1].replace(' ', ""), "\"status\":\"completed\"");
}

#[test]
fn a_session_looks_at_what_is_its_own_and_does_no_act_of_the_operator() {
    let place = Place::new();
    place.file(".offshoot/config.toml", "[agents.defaults.subagents]\nmaxDepth = 2\n");
    place.file(
        "stranger.sh",
        r#"for look in "show $1" "show $1 --answer" "events $1" "logs $1" "export $1" "events $OFFSHOOT_RUN_ID" "logs $OFFSHOOT_RUN_ID" "show $OFFSHOOT_RUN_ID" \
                       "show $2 --json" "events $2 --json" "audit $1" "trust" "trust --list" "trust --remove" "prune --older-than 0s" \
                       "plugin trust here" "plugin add here" "plugin remove here" "resume" "agents list"; do
             "$OFFSHOOT" $look > out 2> err; echo "$? $(cat out err | grep -c secret) $look" | sed "s/$1/SIBLING/; s/$2/PARENT/; s/$OFFSHOOT_RUN_ID/OWN/"
           done
           env -i PATH="$PATH" "$OFFSHOOT" trust 2> /dev/null; echo $?"#,
    );
    let outcome = place.tree(
        &[],
        r#"sibling=$("$OFFSHOOT" spawn --label sibling x -- echo secret)
           "$OFFSHOOT" -q wait $sibling > /dev/null
           "$OFFSHOOT" show $sibling --answer; "$OFFSHOOT" events $sibling | grep -c completed
           "$OFFSHOOT" spawn --wait y -- sh stranger.sh $sibling $OFFSHOOT_RUN_ID"#,
    );
    let expected = "secret\n1\n2 0 show SIBLING\n2 0 show SIBLING --answer\n2 0 events SIBLING\n2 0 logs SIBLING\n2 0 export SIBLING\n0 0 events OWN\n0 0 logs OWN\n0 0 show OWN\n\
                    2 0 show PARENT --json\n2 0 events PARENT --json\n3 0 audit SIBLING\n3 0 trust\n3 0 trust --list\n3 0 trust --remove\n\
                    3 0 prune --older-than 0s\n3 0 plugin trust here\n3 0 plugin add here\n3 0 plugin remove here\n3 0 resume\n0 0 agents list\n3\n";
    assert_eq!(outcome.expect_code(0).stdout(), expected);
    assert_eq!(place.run(&["trust", "--list"]).expect_code(0).stdout(), "");
}

#[test]
fn another_user_id_is_no_way_out() {
    let place = Place::new();
    // As another user where that is permitted, and in a user namespace that calls this one root.
    let script = r#""$OFFSHOOT" -q --data-dir "$PWD/elsewhere" run x -- cat 2> /dev/null; echo $?"#;
    let outcome = place
        .tree(&[], &format!("chmod 777 .; setpriv --reuid=12345 --clear-groups sh -c '{script}'"));
    assert_eq!(outcome.expect_code(0).stdout(), "3\n");
    assert!(!place.path().join("elsewhere").exists());

    // There it is still known by its ticket, and asks for a child; without that it is refused.
    let script = r#"for way in "env A=b" "env -i PATH=$PATH"; do
                      $way "$OFFSHOOT" -q --data-dir "$PWD/elsewhere" run x -- cat 2> /dev/null; echo $?
                    done"#;
    let place = Place::new();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777))
        .expect("the mode cannot be set");
    let as_user = ["--reuid=12345", "--regid=12345", "--clear-groups"];
    let mut command = place.command_of("setpriv", &as_user);
    command.arg(place.command(&[]).get_program()).args(["-q", "run", "x", "--", "unshare"]);
    command.args(["--user", "--map-root-user", "sh", "-c", script]).env("HOME", place.path());
    let outcome = place.outcome(command, &[]);
    if outcome.code != 0 && outcome.stderr.contains("unshare failed") {
        return lacking("another_user_id_is_no_way_out", "users may make no namespaces here");
    }
    assert_eq!(outcome.expect_code(0).stdout(), "x\n0\n3\n");
    assert!(!place.path().join("elsewhere").exists());
}

/// A program can do whatever its user may: nothing keeps a right from it. The answer names the runtimes that can.
#[test]
fn a_right_that_cannot_be_withheld_is_refused_with_the_runtimes_that_can() {
    let place = Place::new();
    // A runtime that no agent names is there where it is configured.
    let endpoint = "[runtimes.openai.options]\nbaseUrl = \"http://127.0.0.1:9/v1\"\n";
    place.file("c.toml", endpoint);
    let script =
        r#""$FAKE" ask spawn '{"task":"x","command":["true"],"tools":{"deny":["write"]}}'"#;
    let answer = place.tree(&["--config", "c.toml"], script).expect_code(0);
    let answer = answer.stdout();
    assert!(answer.contains("the runtime `exec` cannot withhold `write`"), "{answer}");
    // Claude Code is another one, where the machine has it.
    let named =
        ["use a runtime that can (`openai`)", "use a runtime that can (`claude`, `openai`)"];
    assert!(named.iter().any(|named| answer.contains(named)), "{answer}");
}

#[test]
fn rights_that_the_caller_lacks_are_not_granted() {
    let place = Place::new();
    place.file("c.toml", "[agents.defaults.subagents.tools]\ndeny = [\"fetch\"]\n");
    let ask = r#"ask() { "$FAKE" ask spawn "{\"task\":\"x\",\"command\":[\"cat\",\"over\"],$1}" | grep -o '"code":"[a-z_]*"\|"runId"'; }
"#;
    let code = |code: &str| format!("\"code\":\"{code}\"\n");
    let script = format!(
        r#"{ask} ask '"tools":{{"allow":["fetch"]}}'; ask '"tools":{{"allow":["read","fetch"]}}'"#
    );
    let outcome = place.tree(&["--config", "c.toml"], &script).expect_code(0);
    assert_eq!(outcome.stdout(), code("tools_not_grantable").repeat(2));

    let script = format!(
        r#"{ask} mkfifo over
           ask '"budget":{{"tokens":101}}'
           ask '"budget":{{"tokens":60}},"label":"granted","runTimeoutSeconds":9999'
           ask '"budget":{{"tokens":60}}'
           echo > over"#
    );
    let outcome = place.tree(&["--budget-tokens", "100", "--timeout", "50"], &script);
    let expected = format!("{}\"runId\"\n{0}", code("budget_exhausted"));
    assert_eq!(outcome.expect_code(0).stdout(), expected);
    let listed = place.run(&["list", "--all", "--json"]).expect_code(0).json();
    let mut runs = listed.as_array().expect("a list").iter();
    let granted = runs.find(|run| run["label"] == "granted").expect("one was granted");
    let id = granted["runId"].as_str().expect("the run has no id");
    let shown = place.run(&["show", id, "--json"]).expect_code(0).json();
    assert_eq!(shown["grant"]["budget"]["tokens"], 60, "{shown}");
    assert_eq!(shown["grant"]["runTimeoutSeconds"], 50, "no longer than its parent: {shown}");
}

#[test]
fn a_process_that_forks_away_is_no_run_or_itself() {
    let place = Place::new();
    // Its parent holds a pipe open until the moment at which it is gone.
    place.file(
        "away.sh",
        r#"cat gone > /dev/null
           { "$OFFSHOOT" -q spawn --label lost x -- cat; echo $?
             env -u OFFSHOOT_TICKET "$OFFSHOOT" -q spawn --label lost x -- cat; echo $?
             env -i PATH="$PATH" "$OFFSHOOT" -q spawn --label lost x -- cat; echo $?
             env -i PATH="$PATH" "$OFFSHOOT" -q --data-dir elsewhere run --label lost x -- cat; echo $?
           } > said 2>/dev/null
           echo > over"#,
    );
    let outcome = place.tree(
        &["--max-depth", "1"],
        r#"mkfifo gone over
           "$OFFSHOOT" spawn --wait --label child x -- sh -c '
             sh -c "setsid sh away.sh < /dev/null > /dev/null 2>&1 & exec 3> gone"
             cat over > /dev/null; cat said'"#,
    );
    assert_eq!(outcome.expect_code(0).stdout(), "3\n3\n3\n3\n");
    assert_eq!(runs(&place), [("child".to_owned(), 1)]);
    assert!(!place.path().join("elsewhere").exists());
}

#[test]
fn agents_see_no_variable_that_they_were_not_given() {
    let place = Place::new();
    place.file("c.toml", "[runtimes.exec]\nenv = [\"WANTED_*\"]\n");
    let mut command = place.command(&[
        "-q",
        "run",
        "--config",
        "c.toml",
        "x",
        "--",
        "sh",
        "-c",
        r#""$OFFSHOOT" spawn --wait x -- env"#,
    ]);
    for (name, value) in [("AWS_SECRET_ACCESS_KEY", "s3cret"), ("WANTED_ONE", "1"), ("LC_X", "x")] {
        command.env(name, value);
    }
    let outcome = place.outcome(command, &[]).expect_code(0);
    assert!(!outcome.stdout().contains("s3cret"), "{}", outcome.text());
    let names: BTreeSet<&str> = outcome
        .stdout()
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name)
        .collect();
    let expected = [
        "HOME",
        "LC_X",
        "OFFSHOOT",
        "OFFSHOOT_DEPTH",
        "OFFSHOOT_RUN_ID",
        "OFFSHOOT_SESSION_KEY",
        "OFFSHOOT_SOCKET",
        "OFFSHOOT_SUPERVISOR",
        "OFFSHOOT_TASK",
        "OFFSHOOT_TASK_FILE",
        "OFFSHOOT_TICKET",
        "OFFSHOOT_TRACE",
        "PATH",
        "WANTED_ONE",
    ];
    // A shell adds a few of its own.
    let names: Vec<&str> =
        names.into_iter().filter(|name| !["_", "SHLVL", "OLDPWD"].contains(name)).collect();
    assert_eq!(names, expected);
}

#[test]
fn what_is_recorded_about_a_program_holds_no_secret() {
    let place = Place::new();
    place.file("c.toml", "[runtimes.exec]\nenv = [\"WANTED_*\"]\n");
    let script = r#"echo "$OFFSHOOT_TICKET" > ticket; echo "no login by $WANTED_KEY with $OFFSHOOT_TICKET" >&2; exit 3"#;
    let mut command = place.command(&["run", "--config", "c.toml", "x", "--", "sh", "-c", script]);
    command.env("WANTED_KEY", "hunter-2-hunter-2");
    let outcome = place.outcome(command, &[]).expect_code(1);
    assert!(
        outcome.stderr.contains("no login by [redacted] with [redacted]"),
        "{}",
        outcome.stderr
    );
    let mut kept = vec![outcome.stderr.into_bytes()];
    files(&place.path().join(".offshoot"), &mut kept);
    let ticket = fs::read_to_string(place.path().join("ticket")).expect("the file cannot be read");
    for secret in ["hunter-2-hunter-2", ticket.trim()] {
        let told =
            |text: &Vec<u8>| text.windows(secret.len()).any(|part| part == secret.as_bytes());
        assert!(!kept.iter().any(told), "{secret} is on record");
    }
}

#[test]
fn what_is_recorded_about_a_model_holds_no_secret() {
    let place = Place::new();
    // It stands for a Claude Code that fails, and says too much.
    place.file("model.sh", "echo \"401 for $ANTHROPIC_API_KEY and $GIVEN\" >&2; exit 1");
    place.file(
        "c.json5",
        r#"{ runtimes: { claude: { wrap: ["env"], command: ["sh", "model.sh"], env: ["GIVEN"] } } }"#,
    );
    let mut command =
        place.command(&["run", "--config", "c.json5", "--runtime", "claude", "think"]);
    command.env("ANTHROPIC_API_KEY", "sk-ant-0123456789").env("GIVEN", "g1ven-by-name");
    let outcome = place.outcome(command, &[]).expect_code(5);
    assert!(outcome.stderr.contains("401 for [redacted] and [redacted]"), "{}", outcome.stderr);
    let mut kept = vec![outcome.stderr.into_bytes()];
    files(&place.path().join(".offshoot"), &mut kept);
    for secret in [&b"sk-ant-0123456789"[..], b"g1ven-by-name"] {
        let told = |text: &Vec<u8>| text.windows(secret.len()).any(|part| part == secret);
        assert!(!kept.iter().any(told), "{} is on record", String::from_utf8_lossy(secret));
    }
}

#[test]
fn a_ticket_is_seen_nowhere() {
    let place = Place::new();
    // Each agent writes its ticket into a folder that is no part of the record, and everything that /proc shows of
    // processes is searched for it.
    fs::create_dir(place.path().join("tickets")).expect("the folder is new");
    fs::create_dir(place.path().join("seen")).expect("the folder is new");
    place.file(
        "agent.sh",
        r#"echo "$OFFSHOOT_TICKET" > tickets/$OFFSHOOT_RUN_ID
           "$OFFSHOOT" report "at depth $OFFSHOOT_DEPTH" 2>/dev/null
           if [ $OFFSHOOT_DEPTH -lt 2 ]; then
             "$OFFSHOOT" -v spawn below -- sh agent.sh; "$OFFSHOOT" -v spawn below -- sh agent.sh
             "$OFFSHOOT" -v --json wait
           else
             "$OFFSHOOT" -v spawn deeper -- cat
             OFFSHOOT_TICKET=no-$OFFSHOOT_TICKET "$OFFSHOOT" -v spawn x -- cat
             printf '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}\n' | "$OFFSHOOT" -v mcp
             cat /proc/[0-9]*/cmdline > seen/$OFFSHOOT_RUN_ID 2>/dev/null
             exit 7
           fi"#,
    );
    let words =
        ["-v", "run", "--allow-recursive-spawn", "--max-depth", "2", "x", "--", "sh", "agent.sh"];
    let outcome = place.run(&words);
    let id = place.run(&["list", "--json"]).json()[0]["runId"]
        .as_str()
        .expect("the run has no id")
        .to_owned();
    let mut said = vec![outcome.stdout.clone(), outcome.stderr.into_bytes()];
    for words in
        [&["events", &id, "--json"][..], &["show", &id], &["tree", "--json"], &["list", "--all"]]
    {
        let looked = place.run(words).expect_code(0);
        said.extend([looked.stdout, looked.stderr.into_bytes()]);
    }
    files(&place.path().join(".offshoot"), &mut said);
    let before = said.len();
    files(&place.path().join("seen"), &mut said);
    assert_eq!(said.len() - before, 4, "four agents have looked");
    let mut tickets = Vec::new();
    files(&place.path().join("tickets"), &mut tickets);
    assert_eq!(tickets.len(), 7, "one for each run");
    for ticket in &tickets {
        let ticket = ticket.trim_ascii();
        assert_eq!(ticket.len(), 32);
        let told = said.iter().find(|text| text.windows(ticket.len()).any(|part| part == ticket));
        assert_eq!(told.map(|text| String::from_utf8_lossy(text)), None, "a ticket is told");
    }
}

/// The contents of all files below.
fn files(folder: &Path, into: &mut Vec<Vec<u8>>) {
    for entry in fs::read_dir(folder).expect("the folder cannot be read") {
        let path = entry.expect("it cannot be read").path();
        match fs::symlink_metadata(&path).expect("the file cannot be examined").file_type() {
            kind if kind.is_dir() => files(&path, into),
            kind if kind.is_file() => into.push(fs::read(&path).expect("the file cannot be read")),
            _ => {}
        }
    }
}
