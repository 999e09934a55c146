//! The losses that users of programs of this kind have reported, each as a test of what holds here: limits over mixed agents,
//! budgets, slots, endings and the configuration.

use offshoot_fake_model_api::{Condition, Reply, Rule, Usage};
use serde_json::{Value, json};

use crate::command::Place;
use crate::openai;

/// `ask PARAMS` asks for a child at the door, and prints `runId` or the code of the refusal.
const ASK: &str = r#"ask() { "$FAKE" ask spawn "$1" | grep -oE '"runId"|"code":"[a-z_]*"' | head -1 | sed 's/"code"://; s/"//g'; }
"#;

/// Programs use nothing, which is said, so that a budget can be shared out among them.
const FREE: &str = "[runtimes.exec]\ncost = \"none\"\n";

/// Runs a script as the root of a tree, and audits its record.
#[track_caller]
fn tree(place: &Place, options: &[&str], script: &str) -> String {
    let outcome = place.tree(options, &format!("{ASK}{script}"));
    let printed = outcome.expect_code(0).stdout().to_owned();
    place.run(&["audit", "last"]).expect_code(0);
    printed
}

/// The runs of the newest tree, the root first.
fn runs(place: &Place) -> Vec<Value> {
    let listed = place.run(&["list", "--tree", "last", "--json"]).expect_code(0).json();
    listed.as_array().expect("a list").clone()
}

/// The statuses of the runs below the root.
fn statuses(place: &Place) -> Vec<String> {
    let status = |run: &Value| run["status"].as_str().expect("a status").to_owned();
    runs(place).iter().skip(1).map(status).collect()
}

/// A program, then a model, then a program again: each may go as deep as the strictest of all permits.
#[test]
fn mixed_agent_chain_strictest_holds() {
    let spawn = json!({"task": "x", "agentId": "worker", "wait": true});
    let rules = [
        Rule::when(Condition::Step(1), Reply::call("sessions_spawn", spawn)),
        Rule::always(Reply::text("{{result:/outcome/data}}")),
    ];
    let more = r#"
[agents.defaults.subagents]
allowRecursiveSpawn = true
maxDepth = 6
allowAgents = ["planner", "worker"]
[[agents.list]]
id = "planner"
runtime = "openai"
subagents.maxDepth = 2
[[agents.list]]
id = "worker"
runtime = "exec"
command = ["sh", "worker.sh"]
subagents.maxDepth = 9
"#;
    let (place, _api) = openai::stage(rules, more);
    let below = r#""$OFFSHOOT" -q spawn --wait --agent main below -- echo deeper 2> said
        grep -o depth_limit said || grep -o 'depth [0-9]' said"#;
    place.file("worker.sh", format!("echo depth $OFFSHOOT_DEPTH; {below}\ntrue\n"));
    let script = r#""$OFFSHOOT" -q spawn --wait --agent planner plan"#;
    let run = ["-q", "run", "--config", "c.toml", "--runtime", "exec", "go", "--", "sh", "-c"];
    let outcome = place.run(&[&run[..], &[script]].concat()).expect_code(0);
    let printed = outcome.stdout();
    assert!(printed.starts_with("depth 2\n"), "{printed}");
    assert!(!printed.contains("deeper"), "{printed}");
    let deepest = runs(&place).iter().filter_map(|run| run["depth"].as_u64()).max();
    assert_eq!(deepest, Some(2));
    place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn aliases_do_not_reset_depth() {
    let place = Place::new();
    let options = ["--max-depth", "2"];
    // A child names itself as the root in each way that there is, and asks for one more level.
    place.file(
        "deep.sh",
        format!(
            r#"{ASK}
            echo depth $OFFSHOOT_DEPTH
            ask '{{"task":"x","command":["true"],"agent":"main","sessionKey":"agent:main:main","depth":0,"parent":null}}'
            OFFSHOOT_SESSION_KEY=agent:main:main OFFSHOOT_DEPTH=0 OFFSHOOT_TRACE= ask '{{"task":"x","command":["true"],"label":"main"}}'"#
        ),
    );
    let script = r#""$OFFSHOOT" -q spawn --wait --agent main x -- env FAKE="$FAKE" sh -c '
        "$OFFSHOOT" -q spawn --wait --agent main --label top x -- env FAKE="$FAKE" sh deep.sh'"#;
    assert_eq!(tree(&place, &options, script), "depth 2\ndepth_limit\ninvalid_request\n");
    assert_eq!(runs(&place).len(), 3);
}

#[test]
fn depth_one_means_one() {
    let place = Place::new();
    let child = r#"echo $OFFSHOOT_DEPTH; "$OFFSHOOT" -q spawn --wait x -- echo two 2>&1; true"#;
    place.file("child.sh", child);
    let script = r#""$OFFSHOOT" -q spawn --wait x -- sh child.sh"#;
    let printed = tree(&place, &["--max-depth", "1"], script);
    assert_eq!(printed.lines().next(), Some("1"));
    assert!(!printed.contains("two"), "{printed}");
    let depths: Vec<_> = runs(&place).iter().map(|run| run["depth"].clone()).collect();
    assert_eq!(depths, [json!(0), json!(1)]);
}

#[test]
fn ceiling_holds() {
    let place = Place::new();
    let user = "home/.config/offshoot/config.toml";
    place.file(user, "[ceiling]\nmaxDepth = 2\nmaxSpawns = 3\n");
    // A flag, the environment and a file are refused by name; what is built in yields.
    let over = place.run(&["run", "--max-depth", "5", "x", "--", "true"]).expect_code(2);
    assert!(over.stderr.contains("maxDepth") && over.stderr.contains("ceiling"), "{}", over.stderr);
    let key = "OFFSHOOT__AGENTS__DEFAULTS__SUBAGENTS__MAXSPAWNS";
    place.run_with(key, "4", &["run", "x", "--", "true"]).expect_code(2);
    place.file("c.toml", "[agents.defaults.subagents]\nmaxDepth = 3\n");
    place.run(&["run", "--config", "c.toml", "x", "--", "true"]).expect_code(2);
    let asked = r#"for n in 1 2 3 4 5; do ask '{"task":"x","command":["true"]}'; done"#;
    assert_eq!(tree(&place, &[], asked), "runId\nrunId\nrunId\nspawn_limit\nspawn_limit\n");
}

#[test]
fn untrusted_project_changes_nothing() {
    let place = Place::new();
    let script = r#"ask '{"task":"x","command":["true"]}'; ask '{"task":"x","agent":"helper"}'"#;
    let options = ["--max-spawns", "9"];
    let before = tree(&place, &options, script);
    let resolved = |place: &Place| {
        let shown = place.run(&["config", "resolve", "--json"]).expect_code(0);
        shown.stdout().to_owned()
    };
    let was = resolved(&place);
    place.file(
        ".offshoot/config.toml",
        "[agents.defaults.subagents]\nmaxDepth = 9\nmaxSpawns = 1\n[runtimes.exec]\nwrap = [\"false\"]\n\
         [notify]\ncommand = [\"touch\", \"notified\"]\non = [\"ended\"]\n",
    );
    place.file(".offshoot/agents/helper.md", "---\nname: helper\n---\nHelps.\n");
    assert_eq!(tree(&place, &options, script), before);
    assert_eq!(resolved(&place), was);
    assert!(!place.path().join("notified").exists());
}

/// Fifty that ask at once for a hundred each, where three hundred are left.
#[test]
fn fifty_parallel_spawns_of_100_on_a_budget_of_300_run_three() {
    let place = Place::new();
    place.file("c.toml", FREE);
    let script = r#"for n in $(seq 50); do
            "$FAKE" ask spawn '{"task":"x","command":["sleep","1000"],"budget":{"tokens":100}}' > asked.$n &
        done; wait
        cat asked.* | grep -c '"runId"'; cat asked.* | grep -c budget_exhausted
        for run in $(cat asked.* | grep -o '[0-9a-f-]\{36\}' | sort -u); do "$OFFSHOOT" -q cancel $run; done
        "$OFFSHOOT" -q wait > /dev/null 2>&1; true"#;
    let options = ["--config", "c.toml", "--budget-tokens", "300", "--max-concurrent", "60"];
    assert_eq!(tree(&place, &options, script), "3\n47\n");
}

#[test]
fn zero_budget_is_zero() {
    let usage = Usage { input: 10, output: 10, ..Usage::default() };
    let rules = || [Rule::always(Reply::text("answered")).usage(usage)];
    for (option, unit) in [("--budget-tokens", "tokens"), ("--budget-usd", "usd")] {
        let (place, api) = openai::stage(rules(), "");
        let run = ["-q", "--json", "run", "--config", "c.toml", "--runtime", "openai"];
        let outcome = place.run(&[&run[..], &[option, "0", "go"]].concat());
        assert_ne!(outcome.code, 0, "{unit}: {}", outcome.text());
        assert_eq!(api.requests().len(), 0, "{unit}: nothing was asked of a model");
    }
    let place = Place::new();
    let script = r#"ask '{"task":"x","command":["true"]}'; ask '{"task":"x","command":["true"],"budget":{"tokens":1}}'"#;
    let printed = tree(&place, &["--budget-tokens", "0"], script);
    assert_eq!(printed, "budget_exhausted\nbudget_exhausted\n");
}

/// Three that have each seen that ninety of a hundred are left.
#[test]
fn stale_grant_cannot_overspend() {
    let place = Place::new();
    place.file("c.toml", FREE);
    let script = r#"for n in 1 2 3; do
            "$FAKE" ask spawn '{"task":"x","command":["true"],"budget":{"tokens":90}}' > asked.$n &
        done; wait
        cat asked.* | grep -c '"runId"'; cat asked.* | grep -c budget_exhausted; "$OFFSHOOT" -q wait > /dev/null"#;
    // The first may be over before the second asks; what is lent at one moment is never more than there is.
    let options = ["--config", "c.toml", "--budget-tokens", "100"];
    let printed = place.tree(&options, script).expect_code(0).stdout().to_owned();
    let numbers: Vec<u32> = printed.lines().filter_map(|line| line.parse().ok()).collect();
    assert_eq!(numbers.iter().sum::<u32>(), 3, "{printed}");
    assert!(numbers[0] >= 1, "{printed}");
    place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn refund_never_exceeds_grant() {
    let place = Place::new();
    place.file("c.toml", FREE);
    let script = r#"
        for n in 1 2 3; do
            run=$("$OFFSHOOT" -q spawn --budget-tokens 60 x -- sleep 1000)
            "$OFFSHOOT" -q cancel $run; "$OFFSHOOT" -q cancel $run; "$OFFSHOOT" -q wait $run 2> /dev/null
            "$OFFSHOOT" -q spawn --wait --budget-tokens 60 x -- true
        done
        ask '{"task":"x","command":["true"],"budget":{"tokens":101}}'
        ask '{"task":"x","command":["true"],"budget":{"tokens":100}}'; "$OFFSHOOT" -q wait"#;
    let options = ["--config", "c.toml", "--budget-tokens", "100"];
    let printed = tree(&place, &options, script);
    let printed: Vec<&str> = printed.split_whitespace().collect();
    assert_eq!(printed, ["budget_exhausted", "runId"]);
}

#[test]
fn child_cannot_lift_its_parents_cap() {
    let place = Place::new();
    let config = r#"
[runtimes.exec]
cost = "none"
[agents.defaults.subagents]
allowAgents = ["*"]
[[agents.list]]
id = "rich"
subagents.budget.tokens = 1000000
subagents.maxConcurrent = 100
subagents.maxChildrenPerAgent = 100
subagents.runTimeoutSeconds = 0
subagents.allowRecursiveSpawn = true
"#;
    place.file("c.toml", config);
    place.file(
        "rich.sh",
        format!(
            r#"{ASK}
            ask '{{"task":"x","command":["true"],"budget":{{"tokens":61}}}}'
            ask '{{"task":"x","command":["true"],"budget":{{"tokens":60}},"runTimeoutSeconds":9000,"label":"grandchild"}}'
            "$OFFSHOOT" -q wait > /dev/null"#
        ),
    );
    let script = r#""$OFFSHOOT" -q spawn --wait --agent rich --budget-tokens 60 --label child x -- env FAKE="$FAKE" sh rich.sh"#;
    let options = ["--config", "c.toml", "--budget-tokens", "100", "--timeout", "50"];
    assert_eq!(tree(&place, &options, script), "budget_exhausted\nrunId\n");
    let found = runs(&place);
    let grandchild =
        found.iter().find(|run| run["label"] == "grandchild").expect("it was admitted");
    let id = grandchild["runId"].as_str().expect("the run has no id");
    let shown = place.run(&["show", id, "--json"]).expect_code(0).json();
    assert_eq!(shown["grant"]["budget"]["tokens"], 60);
    assert_eq!(shown["grant"]["runTimeoutSeconds"], 50);
}

#[test]
fn unknown_cost_is_not_free() {
    let place = Place::new();
    // A program of the operator's own may run; one that an agent names may call a model.
    let asked = r#"ask '{"task":"x","command":["true"]}'"#;
    assert_eq!(tree(&place, &["--budget-usd", "1"], asked), "cost_unbounded\n");
    // A model without a price uses something: its dollars are not zero, but unknown.
    let usage = Usage { input: 10, output: 10, ..Usage::default() };
    let (place, _api) = openai::stage([Rule::always(Reply::text("done")).usage(usage)], "");
    let run = ["-q", "run", "--config", "c.toml", "--runtime", "openai"];
    place.run(&[&run[..], &["go"]].concat()).expect_code(0);
    let cost = &runs(&place)[0]["cost"];
    assert_eq!(cost["unknownRuns"], 1, "{cost}");
}

#[test]
fn finished_agents_hold_nothing() {
    let place = Place::new();
    place.file("c.toml", "[agents.defaults.subagents]\nmaxChildrenPerAgent = 1\n");
    // Each is over before the next is asked for, and none of the answers is ever taken.
    let script = r#"mkfifo over
        for n in $(seq 10); do
            "$FAKE" ask spawn '{"task":"x","command":["true"],"label":"'$n'"}' > /dev/null
            "$OFFSHOOT" -q wait > /dev/null
            ask '{"task":"x","command":["true"]}'; "$OFFSHOOT" -q wait
        done"#;
    let options = ["--config", "c.toml", "--max-concurrent", "2"];
    let printed = tree(&place, &options, script);
    assert_eq!(printed.split_whitespace().collect::<Vec<_>>(), ["runId"; 10]);
    assert_eq!(statuses(&place), vec!["completed"; 20]);
}

/// Two hundred that ask at once, where twelve may run.
#[test]
fn cap_does_not_race() {
    let place = Place::new();
    // Four of them, because one run has 64 connections at most.
    place.file(
        "many.sh",
        r#"for n in $(seq 50); do
            "$FAKE" ask spawn '{"task":"x","command":["true"]}' > asked.$1.$n &
        done; wait; "$OFFSHOOT" -q wait > /dev/null"#,
    );
    let script = r#"for n in 1 2 3 4; do "$OFFSHOOT" -q spawn x -- env FAKE="$FAKE" sh many.sh $n > /dev/null; done
        "$OFFSHOOT" -q wait > /dev/null; cat asked.* | grep -c '"runId"'"#;
    let options = ["--max-concurrent", "12", "--max-spawns", "204"];
    let outcome = place.tree(&options, script).expect_code(0);
    assert_eq!(outcome.stdout(), "200\n");
    let audit = place.run(&["audit", "last", "--json"]).expect_code(0).json();
    let peak = audit["findings"]["peakConcurrency"].as_u64().expect("a number");
    assert!((2..=12).contains(&peak), "{audit}");
}

#[test]
fn polling_parents_do_not_lock_the_tree() {
    let place = Place::new();
    // It asks again and again how its child does, a few times in a second, and never waits.
    let script = r#""$OFFSHOOT" -q spawn x -- true > /dev/null
        until "$OFFSHOOT" list --json | grep -q completed; do sleep 0.2; done; echo seen"#;
    assert_eq!(tree(&place, &["--max-concurrent", "1"], script), "seen\n");
}

#[test]
fn out_of_turns_is_not_success() {
    let rules = [Rule::always(Reply::call("sessions_status", json!({})))];
    let own = "[[agents.list]]\nid = \"main\"\nmaxTurns = 2\n";
    let (place, _api) = openai::stage(rules, own);
    let run = ["-q", "--json", "run", "--config", "c.toml", "--runtime", "openai", "go"];
    let ended = place.run(&run).expect_code(1).json();
    assert_eq!(
        (&ended["status"], &ended["error"]["code"]),
        (&json!("failed"), &json!("turn_limit"))
    );
}

#[test]
fn one_failure_spares_siblings() {
    let place = Place::new();
    place.file("in", "1\n2\n3\n4\n5\n");
    let map =
        ["-q", "map", "--split", "lines:1", "--on-failure", "skip", "--merge", "sum", "in", "--"];
    let one_fails = ["sh", "-c", "read n; [ $n = 1 ] && exit 9; echo $n"];
    let outcome = place.run(&[&map[..], &one_fails].concat()).expect_code(0);
    assert_eq!(outcome.stdout(), "14\n");
    assert_eq!(statuses(&place).iter().filter(|status| *status == "completed").count(), 4);
    let script = r#"first=$("$OFFSHOOT" -q spawn x -- false); second=$("$OFFSHOOT" -q spawn x -- echo fine)
        "$OFFSHOOT" -q wait $first; "$OFFSHOOT" -q wait $second"#;
    assert_eq!(tree(&place, &[], script).trim(), "fine");
}

/// A child that is not waited for, or that leaves its session, counts as every other.
#[test]
fn detached_counts_too() {
    let place = Place::new();
    let script = r#"
        setsid -w "$OFFSHOOT" -q spawn x -- true > /dev/null
        nohup "$OFFSHOOT" -q spawn x -- setsid true > /dev/null 2>&1
        ("$OFFSHOOT" -q spawn x -- true > /dev/null &) ; "$OFFSHOOT" -q wait > /dev/null
        until [ "$("$FAKE" ask list '{}' | grep -o '"label"' | wc -l)" -ge 0 ] && [ "$(ls asked 2> /dev/null | wc -l)" -ge 0 ]; do :; done
        for n in 1 2 3; do ask '{"task":"x","command":["true"]}'; done | sort | uniq -c | tr -s ' '
        "$OFFSHOOT" -q wait > /dev/null"#;
    let printed = tree(&place, &["--max-spawns", "3"], script);
    assert!(printed.contains("spawn_limit"), "{printed}");
    assert_eq!(runs(&place).len(), 4, "{printed}");
}

#[test]
fn breaker_opens_and_probes() {
    let place = Place::new();
    let breaker = "[agents.defaults.subagents.breaker]\nfailures = 2\ncooldownSeconds = 1\n";
    place.file("c.toml", breaker);
    // The time itself is the subject: nothing but the clock lets the next one through.
    let script = r#"
        for n in 1 2; do "$OFFSHOOT" -q spawn --wait x -- ./missing > /dev/null 2>&1; done
        ask '{"task":"x","command":["true"]}'
        sleep 1.1; "$OFFSHOOT" -q spawn --wait x -- ./missing > /dev/null 2>&1
        ask '{"task":"x","command":["true"]}'
        sleep 1.1; "$OFFSHOOT" -q spawn --wait x -- echo probe
        ask '{"task":"x","command":["true"]}'; "$OFFSHOOT" -q wait > /dev/null"#;
    let printed = tree(&place, &["--config", "c.toml"], script);
    assert_eq!(printed, "breaker_open\nbreaker_open\nprobe\nrunId\n");
}

#[test]
fn cycle_is_named() {
    let place = Place::new();
    let config = "[agents.defaults.subagents]\nallowAgents = [\"*\"]\n\
        [[agents.list]]\nid = \"writer\"\n[[agents.list]]\nid = \"editor\"\n";
    place.file("c.toml", config);
    place
        .file("editor.sh", r#""$OFFSHOOT" spawn --wait --agent writer x -- echo again 2>&1; true"#);
    let script = r#""$OFFSHOOT" -q spawn --wait --agent writer x -- sh -c '
        "$OFFSHOOT" -q spawn --wait --agent editor x -- sh editor.sh'"#;
    let printed = tree(&place, &["--config", "c.toml"], script);
    assert!(printed.contains("writer → editor → writer"), "{printed}");
    assert!(!printed.contains("again"), "{printed}");
}

#[test]
fn repeat_is_refused() {
    let place = Place::new();
    place
        .file("c.toml", "[agents.defaults.subagents]\nmaxIdenticalDelegations = 2\nmaxDepth = 9\n");
    // It hands on what it was asked to do, word for word.
    place.file("same.sh", r#""$OFFSHOOT" -q spawn --wait "do it" -- sh same.sh 2>> said; true"#);
    let printed = tree(&place, &["--config", "c.toml"], "sh same.sh");
    assert_eq!(runs(&place).len(), 3, "the root and two: {printed}");
    let said = std::fs::read_to_string(place.path().join("said")).expect("it was refused");
    assert!(said.contains("maxIdenticalDelegations = 2"), "{said}");
    let script = r#"for n in 1 2 3; do "$OFFSHOOT" -q spawn --wait "do it" -- echo $n; done"#;
    assert_eq!(tree(&place, &[], script), "1\n2\n3\n", "one after the other is no loop");
}
