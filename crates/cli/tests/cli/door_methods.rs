//! The other requests of agents, beside children: values, histories, merges, several children at once, and a view of their own
//! tree.

use std::io::{BufRead, BufReader};

use offshoot_test_support::named_pipe;
use serde_json::{Value, json};

use crate::command::{Outcome, Place, check};

/// The last lines of an answer, each a JSON value.
fn lines(outcome: &Outcome) -> Vec<Value> {
    let parse = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    outcome.stdout().lines().map(parse).collect()
}

/// Asks at the door of the root of a tree, in the words of the protocol: each of `asks` is a method and its parameters,
/// in Python, where `a` is a list of the answers so far. Prints answers, refusals and progress, one a line.
pub(crate) fn ask(place: &Place, more: &[&str], asks: &str) -> Vec<Value> {
    let client = format!(
        r#"
import json, os, socket
s = socket.socket(socket.AF_UNIX); s.connect(os.environ["OFFSHOOT_SOCKET"])
f = s.makefile("rw", encoding="utf-8", newline="\n")
a = []
told = []
def ask(method, **params):
    n = len(a)
    f.write(json.dumps({{"jsonrpc": "2.0", "id": n, "method": method, "params": params}}) + "\n"); f.flush()
    for line in f:
        answer = json.loads(line)
        if answer.get("method") == "progress":
            print(json.dumps(answer["params"]["progress"]), flush=True)
            if os.path.exists("held") and not told:
                told.append(1); open("held", "w").write("go on\\n")
        elif answer.get("id") == n:
            a.append(answer.get("result", answer.get("error", {{}}).get("data")))
            if n > 0: print(json.dumps(a[n]), flush=True)
            return
ask("hello", protocol=1, ticket=os.environ["OFFSHOOT_TICKET"])
{asks}
"#
    );
    place.file("client.py", client);
    lines(&place.tree(more, "python3 client.py").expect_code(0))
}

#[test]
fn values_are_kept_read_and_handed_on() {
    let place = Place::new();
    place.file("log", "one\ntwo ERROR\nthree\nfour\nfive ERROR\n");
    let outcome = place.tree(
        &[],
        r#""$OFFSHOOT" context put "a b/../c" log
           printf '{"x":1}' | "$OFFSHOOT" context put plan --kind json
           printf '\377\376' | "$OFFSHOOT" context put raw
           "$OFFSHOOT" context get "a b/../c" --offset 4 --length 9; echo
           "$OFFSHOOT" context get "a b/../c" --grep 'ERR[O]R' --context-lines 1
           "$OFFSHOOT" context get plan; echo
           "$OFFSHOOT" context get raw | od -An -tx1
           cat "$("$OFFSHOOT" --json context info plan | sed -n 's/.*"path": "\(.*\)",*/\1/p')" | cut -d, -f4-
           "$OFFSHOOT" spawn --wait --give plan --give "a b/../c" x -- sh -c '
             "$OFFSHOOT" context get "a b/../c" | tail -1
             "$OFFSHOOT" --json context info | grep -c \"name\"
             "$OFFSHOOT" spawn --wait --give plan deeper -- sh -c "\"\$OFFSHOOT\" context get plan; echo"
             "$OFFSHOOT" -q context get raw 2>/dev/null; echo $?'
           child=$("$OFFSHOOT" spawn y -- echo answer); "$OFFSHOOT" wait $child >/dev/null
           "$OFFSHOOT" context get sub-result-$child; echo
           "$OFFSHOOT" -q context get nothing 2>/dev/null; echo $?"#,
    );
    let expected = "two ERROR\n\
                    1-one\n2:two ERROR\n3-three\n4-four\n5:five ERROR\n\
                    {\"x\":1}\n ff fe\n\"value\":{\"x\":1}}\n\
                    five ERROR\n2\n{\"x\":1}\n2\n\
                    answer\n2\n";
    assert_eq!(outcome.expect_code(0).stdout(), expected);
}

#[test]
fn a_large_value_is_read_in_parts() {
    let place = Place::new();
    place.file("large", "äöü\n".repeat(30_000));
    let outcome = place.tree(
        &[],
        r#""$OFFSHOOT" context put large large
           at=0; while [ -n "$at" ]; do
             "$OFFSHOOT" --json context get large --offset $at > part.json
             at=$(sed -n 's/.*"next": \([0-9]*\).*/\1/p' part.json)
             grep '"text": ' part.json | tr -cd 'ü' | wc -c
           done
           "$OFFSHOOT" context get large | cmp - large && echo same
           "$OFFSHOOT" context put fifo /dev/zero 2>&1 | head -1"#,
    );
    let outcome = outcome.expect_code(0);
    let mut lines: Vec<&str> = outcome.stdout().lines().collect();
    assert!(lines.pop().is_some_and(|line| line.contains("not a regular file")), "{lines:?}");
    assert_eq!(lines.pop(), Some("same"));
    let umlauts: usize = lines.iter().map(|line| line.parse::<usize>().expect("a count")).sum();
    assert_eq!((lines.len(), umlauts % 2), (4, 0), "64 KiB at once, and no half character");
}

#[test]
fn a_history_tells_what_a_session_asked_and_was_given() {
    let place = Place::new();
    let outcome = place.tree(
        &[],
        r#"child=$("$OFFSHOOT" spawn --label kid "look here" -- sh -c 'echo seen; exit 3')
           "$OFFSHOOT" -q wait $child >/dev/null
           "$OFFSHOOT" --json history $child > child.json
           "$OFFSHOOT" --json history $OFFSHOOT_SESSION_KEY > own.json
           "$OFFSHOOT" --json history $child --limit 1 > first.json
           "$OFFSHOOT" history $child --after 1 | grep -v '^ ' | cut -d' ' -f5-"#,
    );
    let outcome = outcome.expect_code(0);
    let read = |name: &str| {
        let text =
            std::fs::read_to_string(place.path().join(name)).expect("the file cannot be read");
        let entries: Vec<Value> = serde_json::from_str(&text).expect("a list");
        let entry = |entry: &Value| {
            (entry["kind"].as_str().unwrap().to_owned(), entry["text"].as_str().unwrap().to_owned())
        };
        entries.iter().map(entry).collect::<Vec<_>>()
    };
    let child = read("child.json");
    assert_eq!(child[0], ("task".to_owned(), "look here".to_owned()));
    let answer = "failed: exited with code 3\nseen".to_owned();
    assert!(child.contains(&("answer".to_owned(), answer.clone())), "{child:?}");
    assert_eq!(read("first.json"), child[..1]);
    let own = read("own.json");
    assert!(own.contains(&("result".to_owned(), answer)), "{own:?}");
    let asked = own.iter().find(|(kind, _)| kind == "request").expect("a child was asked for");
    assert!(asked.1.starts_with("asked for the child `kid` agent:main:subagent:"), "{asked:?}");
    assert!(asked.1.ends_with(": look here"), "{asked:?}");
    assert!(outcome.stdout().contains("answer"), "{}", outcome.stdout());

    // The operator reads the same from the record, also when all is over.
    let list = place.run(&["list", "--all", "--json"]).json();
    let run = list[1]["runId"].as_str().expect("the child");
    let outside = place.run(&["history", run, "--json"]).expect_code(0).json();
    assert_eq!(outside.as_array().expect("a list").len(), child.len());
}

#[test]
fn a_history_controls_no_terminal() {
    let place = Place::new();
    let outcome = place.tree(
        &[],
        r#"evil=$(printf 'a\033]0;owned\007\033[2J\r\302\233b')
           child=$("$OFFSHOOT" spawn "$evil" -- printf '%s\n\t%s' "$evil" second)
           "$OFFSHOOT" -q wait $child > /dev/null; "$OFFSHOOT" report "$evil"
           printf x | "$OFFSHOOT" context put "$evil"
           "$OFFSHOOT" history $child; "$OFFSHOOT" history $OFFSHOOT_RUN_ID; "$OFFSHOOT" list; "$OFFSHOOT" tree
           "$OFFSHOOT" context info; "$OFFSHOOT" wait $child 2>&1 > /dev/null; "$OFFSHOOT" events $OFFSHOOT_RUN_ID"#,
    );
    let inside = outcome.expect_code(0);
    let run = place.run(&["list", "--all", "--json"]).json()[1]["runId"]
        .as_str()
        .expect("a child")
        .to_owned();
    let outside = place.run(&["history", &run]).expect_code(0);
    for text in [inside.stdout(), outside.stdout()] {
        assert!(text.contains("owned") && text.contains("\n    \tsecond"), "{text:?}");
        let odd: Vec<char> =
            text.chars().filter(|char| char.is_control() && !"\n\t".contains(*char)).collect();
        assert!(odd.is_empty(), "{text:?}");
    }
}

#[test]
fn a_session_sees_what_each_run_below_it_used_itself() {
    let place = Place::new();
    let script = r#""$OFFSHOOT" spawn --wait x -- cat > /dev/null; "$OFFSHOOT" --json tree"#;
    let inside = place.tree(&[], script).expect_code(0).json();
    let outside = place.run(&["tree", "--all", "--json"]).expect_code(0).json();
    let of = |tree: &Value| {
        let child = &tree[0]["children"][0];
        [&child["ownUsage"], &child["ownCost"]].map(Clone::clone)
    };
    assert!(of(&inside).iter().all(Value::is_object), "{inside}");
    assert_eq!(of(&inside), of(&outside));
}

#[test]
fn what_is_elsewhere_does_not_exist_for_a_session() {
    let place = Place::new();
    // One child tries everything on its sibling, which lives on untouched.
    let outcome = place.tree(
        &[],
        r#"echo secret > secret
           other=$("$OFFSHOOT" spawn --context mine=secret --label other o -- sh -c '"$OFFSHOOT" context put own secret; sleep 1000')
           export other
           "$OFFSHOOT" spawn --wait --context other=secret x -- sh -c '
             other=$(sed -n "s/.*run://p" /dev/null; cat "'"$PWD"'/other")
             for ask in "history $other" "wait $other" "cancel $other" "send $other hello" "tree $other" \
                        "merge --result $other" "history '$OFFSHOOT_RUN_ID'" "cancel '$OFFSHOOT_RUN_ID'" \
                        "context get own" "context get mine" "context get sub-result-$other"; do
               "$OFFSHOOT" -q $ask >out 2>err; code=$?
               test -s out && echo "$ask was answered"
               echo "$code $(grep -c "there is no" err)"
             done
             "$OFFSHOOT" list | wc -l; "$OFFSHOOT" tree | head -1 | cut -d" " -f1,3-4' &
           echo $other > other; wait $!
           "$OFFSHOOT" --json tree $other | sed -n 's/.*"status": "\(.*\)".*/\1/p'
           "$OFFSHOOT" cancel $other"#,
    );
    let mut expected = "2 1\n".repeat(11);
    expected.push_str("2\nmain (depth 1)\nrunning\n");
    assert_eq!(outcome.expect_code(0).stdout(), expected);
}

#[test]
fn results_become_one_inside_an_agent() {
    let place = Place::new();
    let outcome = place.tree(
        &[],
        r#"for n in 1 2 3; do "$OFFSHOOT" spawn --label n$n $n -- cat >/dev/null; done
           "$OFFSHOOT" wait --merge sum
           "$OFFSHOOT" merge --strategy structured
           bad=$("$OFFSHOOT" spawn --label bad x -- sh -c 'echo 40; exit 1')
           "$OFFSHOOT" -q wait $bad >/dev/null
           "$OFFSHOOT" -q merge --strategy sum; echo $?
           "$OFFSHOOT" --json merge --strategy sum --on-failure skip > merged.json
           "$OFFSHOOT" context get $(sed -n 's/.*"name": "\(.*\)",*/\1/p' merged.json); echo
           grep -c $bad merged.json
           "$OFFSHOOT" merge --strategy sum --children $OFFSHOOT_RUN_ID --on-failure skip
           printf '%s\n' '{"key":"a","value":5}' | "$OFFSHOOT" merge --strategy sum -
           live=$("$OFFSHOOT" spawn y -- sleep 1000)
           "$OFFSHOOT" -q merge --result $live 2>/dev/null; echo $?
           "$OFFSHOOT" cancel $live"#,
    );
    let expected = "6\n{\"n1\":\"1\",\"n2\":\"2\",\"n3\":\"3\"}\n6\n1\n6\n1\n6\n5\n2\n";
    assert_eq!(outcome.expect_code(0).stdout(), expected);
}

#[test]
fn an_early_answer_ends_the_others() {
    let place = Place::new();
    let outcome = place.tree(
        &[],
        r#""$OFFSHOOT" spawn --label slow s -- sleep 1000 >/dev/null
           "$OFFSHOOT" spawn fast -- cat >/dev/null
           "$OFFSHOOT" -q wait --merge first; echo $?
           "$OFFSHOOT" --json tree | grep '"status"' "#,
    );
    let outcome = outcome.expect_code(0);
    let (answer, statuses) = outcome.stdout().split_once("\n0\n").expect("an answer and a code");
    assert_eq!(answer, "fast");
    assert!(statuses.contains("cancelled") && statuses.contains("completed"), "{statuses}");
}

#[test]
fn a_large_result_comes_as_its_ends_and_whole_by_its_name() {
    let place = Place::new();
    let outcome = place.tree(
        &[],
        r#"run=$("$OFFSHOOT" spawn x -- sh -c 'echo first; yes | head -c 100000; echo last')
           "$OFFSHOOT" --json wait $run > outcome.json
           "$OFFSHOOT" wait $run | wc -c"#,
    );
    assert_eq!(outcome.expect_code(0).stdout(), "100011\n");
    let text = std::fs::read(place.path().join("outcome.json")).expect("the file cannot be read");
    let outcome: Value = serde_json::from_slice(&text).expect("JSON");
    let Value::Object(data) = &outcome[0]["data"] else { panic!("{outcome}") };
    assert!(data["head"].as_str().expect("text").starts_with("first\ny\n"));
    assert!(data["tail"].as_str().expect("text").ends_with("y\nlast"));
    let run = outcome[0]["runId"].as_str().expect("the run has no id");
    assert_eq!(outcome[0]["name"], json!(format!("sub-result-{run}")));
}

#[test]
fn a_result_that_cannot_be_read_takes_no_other_with_it() {
    let place = Place::new();
    let outcome = place.tree(
        &[],
        r#"lost=$("$OFFSHOOT" spawn x -- sh -c 'yes | head -c 100000')
           whole=$("$OFFSHOOT" spawn y -- echo fine)
           "$OFFSHOOT" wait $lost $whole > all; rm -rf .offshoot/blobs/??
           "$OFFSHOOT" --json wait $lost $whole > outcome.json; true"#,
    );
    outcome.expect_code(0);
    let text = std::fs::read(place.path().join("outcome.json")).expect("the file cannot be read");
    let outcome: Value = serde_json::from_slice(&text).expect("JSON");
    assert_eq!(outcome[0]["error"]["code"], json!("result_unreadable"), "{outcome}");
    assert_eq!((&outcome[0]["data"], &outcome[1]["data"]), (&Value::Null, &json!("fine")));
}

#[test]
fn many_children_share_a_budget_and_a_refusal_undoes_none() {
    let place = Place::new();
    // The last child ends once it was told of another one.
    named_pipe(place.path().join("held"));
    let answers = ask(
        &place,
        &["--budget-tokens", "1000", "--max-spawns", "3"],
        r#"
sh = lambda script: {"task": "x", "command": ["sh", "-c", script]}
ask("status")
ask("spawn_many", children=[sh("echo 1"), {"task": ""}, {"task": "y", "context": [{"name": "none"}]}, sh("echo 2"),
    {**sh("echo 3"), "cwd": "/no such folder"}, sh("exec < held; read x; echo 3"), sh("echo 4")],
    wait={"merge": {"strategy": "sum"}, "progress": True})
ask("spawn_many")
ask("spawn_many", children=[sh("echo 1")], wait={"merge": {"strategy": "quorum:2"}})
ask("spawn", task="z", cwd="here")
ask("spawn", task="z", budget={"tokens": "many"})
ask("spawn", label="no task")
"#,
    );
    let (answers, wrong) = answers.split_at(answers.len() - 2);
    let fields: Vec<&Value> = wrong.iter().map(|it| &it["field"]).collect();
    assert_eq!(fields, [&json!("budget.tokens"), &json!("task")], "{wrong:?}");
    let (status, answers) = answers.split_first().expect("answers");
    assert_eq!((&status["depth"], &status["maySpawn"]), (&json!(0), &json!(true)));
    assert_eq!(status["budget"], json!({ "tokens": 1000 }));
    assert_eq!(status["agents"], json!([{ "id": "main" }]));
    let progress: Vec<&Value> = answers.iter().filter(|it| it["total"].is_number()).collect();
    // After the answer, the last progress may be left out.
    assert!(!progress.is_empty() && progress.iter().all(|it| it["total"] == 3), "{answers:?}");
    assert!(progress.iter().any(|it| it["merged"]["data"].is_number()), "{progress:?}");
    let [.., many, empty, quorum, nowhere] = answers else { panic!("{answers:?}") };
    let children = many["children"].as_array().expect("children");
    let codes: Vec<&Value> = children.iter().map(|child| &child["refusal"]["code"]).collect();
    let (none, invalid, spent) = (&Value::Null, &json!("invalid_request"), &json!("spawn_limit"));
    assert_eq!(codes, [none, invalid, invalid, none, invalid, none, spent]);
    assert_eq!(children[4]["refusal"]["field"], "cwd");
    assert_eq!(many["waited"]["merged"]["data"], 6);
    assert_eq!(empty["field"], "children");
    assert_eq!(quorum["field"], "wait.merge.strategy");
    assert_eq!(nowhere["field"], "cwd");
}

/// Python that asks for these children, each of which reads a value and answers its name.
const KIDS: &str = r#"
os.system('"$OFFSHOOT" context put plan client.py >/dev/null')
def kid(label, more="true", **wish):
    script = '"$OFFSHOOT" context get plan >/dev/null && ' + more + ' && echo ' + label
    return dict(task="x", label=label, command=["sh", "-c", script], context=[{"name": "plan"}], **wish)
"#;

/// Returns, for each of the children of an answer, if it still has its folder.
fn folders(place: &Place, many: &Value) -> Vec<bool> {
    let children = many["children"].as_array().expect("children");
    let run = |child: &Value| child["runId"].as_str().expect("the run has no id").to_owned();
    let runs = place.path().join(".offshoot/runs");
    children.iter().map(|child| runs.join(run(child)).exists()).collect()
}

#[test]
fn a_child_that_is_to_be_deleted_goes_and_it_alone() {
    let place = Place::new();
    let asks = r#"
below = '"$OFFSHOOT" -q spawn --wait --label below x -- echo below >/dev/null'
ask("spawn_many", wait={}, children=[kid("gone", cleanup="delete"), kid("sibling"), kid("above", below, cleanup="delete")])
"#;
    let answers = ask(&place, &[], &format!("{KIDS}{asks}"));
    let many = &answers[0];
    assert_eq!(folders(&place, many), [false, true, false]);
    let shown = |arguments: &[&str]| {
        let outcome = place.run(arguments).expect_code(0);
        let text = outcome.stdout().to_owned();
        ["gone", "sibling", "above", "below"].map(|label| text.contains(label))
    };
    assert_eq!(shown(&["tree"]), [false, true, true, true], "what is below it stays in sight");
    assert!(place.run(&["tree"]).stdout().contains("1 deleted"));
    assert_eq!(shown(&["tree", "--all"]), [true; 4]);
    assert_eq!(shown(&["tree", "--json"]), [false, true, true, true]);
    assert_eq!(shown(&["tree", "--json", "--all"]), [true; 4]);
    let run = many["children"][0]["runId"].as_str().expect("the run has no id");
    assert!(place.run(&["show", run]).expect_code(0).stdout().contains("gone"));
    place.run(&["audit", run]).expect_code(0);
}

#[test]
fn what_the_request_leaves_open_the_configuration_says() {
    let place = Place::new();
    place.file(".offshoot/config.toml", "[agents.defaults.subagents]\ncleanup = \"delete\"\n");
    place.run(&["trust"]);
    let asks = r#"ask("spawn_many", wait={}, children=[kid("gone"), kid("kept", cleanup="keep")])"#;
    let answers = ask(&place, &[], &format!("{KIDS}{asks}"));
    assert_eq!(folders(&place, &answers[0]), [false, true]);
}

#[test]
fn a_value_is_divided_among_children() {
    let place = Place::new();
    let answers = ask(
        &place,
        &[],
        r#"
ask("context.put", name="the log", value={"text": "a\nb\nc\nd\ne\n"})
piece = 'sed -n "s/^Read //p" | xargs cat | wc -l'
ask("spawn_many", template={"task": "count", "command": ["sh", "-c", piece]},
    split={"name": "the log", "by": "lines:2"}, wait={"merge": {"strategy": "structured"}})
ask("spawn_many", template={"task": "count"}, split={"name": "the log", "by": "lines:x"})
ask("spawn_many", template={"task": "count"}, split={"name": "no log", "by": "lines:2"})
ask("context.put", name="empty", value={"text": ""})
ask("spawn_many", template={"task": "count"}, split={"name": "empty", "by": "lines:2"},
    wait={"merge": {"strategy": "sum"}})
"#,
    );
    let [_, many, by, name, _, empty] = &answers[..] else { panic!("{answers:?}") };
    let counts = json!({ "the log:1": "2", "the log:2": "2", "the log:3": "1" });
    assert_eq!(many["waited"]["merged"]["data"], counts);
    assert_eq!((&by["field"], &name["field"]), (&json!("split.by"), &json!("split.name")));
    assert_eq!(empty["children"], json!([]));
    assert_eq!(empty["waited"]["merged"]["data"], 0);
}

#[test]
fn a_command_reads_no_messages() {
    let place = Place::new();
    let outcome = place.tree(
        &[],
        r#"run=$("$OFFSHOOT" spawn x -- sleep 1000)
           "$OFFSHOOT" send $run hello 2>err; echo $?; grep -c "^error:" err
           "$OFFSHOOT" -q send $run "" 2>/dev/null; echo $?
           "$OFFSHOOT" cancel $run"#,
    );
    assert_eq!(outcome.expect_code(0).stdout(), "2\n1\n2\n");
}

#[test]
fn the_operator_reaches_into_a_tree_that_runs() {
    let place = Place::new();
    let mut command = place.command(&["-v", "run", "--json", "x", "--", "sleep", "1000"]);
    let mut child = command.spawn().expect("the program cannot be started");
    let stderr = child.stderr.take().expect("the stream is not a pipe");
    let up = BufReader::new(stderr)
        .lines()
        .find(|line| line.as_ref().is_ok_and(|it| it.contains("started")));
    assert!(up.is_some(), "it says that it has started");
    let list = place.run(&["list", "--json"]).json();
    let run = list[0]["runId"].as_str().expect("a root").to_owned();
    place.run(&["send", &run, "hello"]).expect_code(2);
    place.run(&["cancel", &run]).expect_code(0);
    let outcome = place.finish(child, &command, &[]).expect_code(1);
    assert_eq!(outcome.json()["error"]["code"], "cancelled");
    let over = place.run(&["cancel", &run]).expect_code(0);
    assert!(
        over.stderr.contains("nothing changed: the run and all below it are over"),
        "{}",
        over.stderr
    );
}

#[test]
fn agents_are_listed_and_shown() {
    let place = Place::new();
    place.file(
        ".claude/agents/scout.md",
        "---\nname: scout\ndescription: looks\nmax_depth: 2\ncolor: red\n---\nLook.\n",
    );
    place.file(
        ".offshoot/config.toml",
        "[[agents.list]]\nid = \"shell\"\nruntime = \"exec\"\ncommand = [\"cat\"]\n",
    );
    place.run(&["trust"]).expect_code(0);
    check("agents_list", &place.run(&["agents", "list"]));
    let shown = place.run(&["agents", "show", "scout", "--json"]).expect_code(0).json();
    assert_eq!(shown["values"]["description"]["value"], "looks");
    assert_eq!(shown["values"]["systemPrompt"]["value"], "Look.");
    assert_eq!(shown["values"]["other"]["value"]["color"], "red");
    assert_eq!(shown["limits"]["maxDepth"]["value"], 2);
    check("agents_show", &place.run(&["agents", "show", "shell"]));
    check("agents_show_none", &place.run(&["agents", "show", "nobody"]));
    // A definition is used by name.
    let answer = place.run(&["-q", "run", "--agent", "shell", "hello"]);
    assert_eq!(answer.expect_code(0).stdout(), "hello\n");
}
