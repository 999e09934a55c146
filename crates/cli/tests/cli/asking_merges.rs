//! Merges that ask an agent or a program, whose runs are runs of the same tree.

use std::fs;

use offshoot_fake_model_api::{Reply, Rule, Usage};

use crate::command::{Outcome, Place};
use crate::doomed::Doomed;
use crate::openai;

/// Puts brackets around what it reads, so that the answer shows its own making: not associative on purpose.
const BRACKETS: &str = "paste -sd- | sed 's/.*/(&)/'";

/// Merges `1` to `many`, one to a piece.
fn merged(place: &Place, many: u32, merge: &str) -> Outcome {
    let lines: String = (1..=many).map(|line| format!("{line}\n")).collect();
    place.feed(&["map", "--split", "lines:1", "--merge", merge, "-", "--", "cat"], lines)
}

/// The labels of the runs below the newest root that a merge has asked for, with their statuses.
fn asked(place: &Place) -> Vec<(String, String)> {
    let tree = place.run(&["tree", "--json", "--all", "last"]).expect_code(0).json();
    let root = if tree.is_array() { &tree[0] } else { &tree };
    let children = root["children"].as_array().expect("a list of runs");
    let text = |run: &serde_json::Value, key: &str| run[key].as_str().unwrap_or("").to_owned();
    let children = children.iter().map(|run| (text(run, "label"), text(run, "status")));
    let words = ["merge", "reduce ", "summary ", "judge "];
    children.filter(|(label, _)| words.iter().any(|word| label.starts_with(word))).collect()
}

fn completed(labels: &[&str]) -> Vec<(String, String)> {
    labels.iter().map(|label| ((*label).to_owned(), "completed".to_owned())).collect()
}

#[test]
fn a_command_reads_all_answers_in_the_order_of_the_request() {
    let place = Place::new();
    let once = merged(&place, 12, "command:paste -sd+").expect_code(0);
    assert_eq!(once.stdout(), "1+2+3+4+5+6+7+8+9+10+11+12\n");
    assert_eq!(asked(&place), completed(&["merge"]));
    place.run(&["audit", "last"]).expect_code(0);
    assert_eq!(merged(&place, 12, "command:paste -sd+").expect_code(0).stdout(), once.stdout());
    let one = merged(&place, 1, "command:wc -l").expect_code(0);
    assert_eq!(one.stdout(), "1\n", "each answer ends with a newline");
    let none = merged(&place, 0, "command:echo never > ran").expect_code(0);
    assert_eq!(none.stdout().trim(), "");
    assert!(!place.path().join("ran").exists(), "there was nothing to merge");
}

#[test]
fn a_reduction_has_the_same_shape_each_time_associative_or_not() {
    let place = Place::new();
    let two = format!("reduce-with:2 -- {BRACKETS}");
    for _ in 0..2 {
        let five = merged(&place, 5, &two).expect_code(0);
        assert_eq!(five.stdout(), "(((1-2)-(3-4))-5)\n");
        let runs = ["reduce 1.1", "reduce 1.2", "reduce 2.1", "reduce 3.1"];
        assert_eq!(asked(&place), completed(&runs));
        place.run(&["audit", "last"]).expect_code(0);
    }
    let alone = merged(&place, 1, &two).expect_code(0);
    assert_eq!((alone.stdout(), asked(&place)), ("1\n", vec![]), "one answer needs no merge");
    let usual = merged(&place, 9, &format!("reduce-with -- {BRACKETS}")).expect_code(0);
    assert_eq!(usual.stdout(), "((1-2-3-4-5-6-7-8)-9)\n");
    let slots = ["map", "--split", "lines:1", "--max-concurrent", "1", "--merge", &two];
    let slots = [&slots[..], &["-", "--", "cat"]].concat();
    assert_eq!(place.feed(&slots, "1\n2\n3\n4\n").expect_code(0).stdout(), "((1-2)-(3-4))\n");
}

#[test]
fn an_agent_reduces_answers_that_bear_their_names() {
    let place = Place::new();
    place.file(
        "pair.toml",
        "[[agents.list]]\nid = \"pair\"\n\
         command = [\"sh\", \"-c\", \"cat > seen; grep -v '^.Result' seen | grep . | paste -sd+\"]\n",
    );
    let map = ["--config", "pair.toml", "map", "--split", "lines:1", "--merge", "reduce-with=pair"];
    let map = [&map[..], &["-", "--", "cat"]].concat();
    let answer = place.feed(&map, "1\n2\n").expect_code(0);
    assert_eq!(answer.stdout(), "1+2\n");
    let seen = fs::read_to_string(place.path().join("seen")).expect("the agent has written it");
    assert_eq!(seen, "[Result 1 from stdin:1]:\n1\n\n[Result 2 from stdin:2]:\n2");
    let trees = || place.run(&["list", "--all"]).expect_code(0).stdout().lines().count();
    let before = trees();
    let unknown = merged(&place, 2, "reduce-with=nothing").expect_code(2);
    assert!(unknown.stderr.contains("there is no agent `nothing`"), "{}", unknown.stderr);
    assert_eq!(trees(), before, "nothing ran");
}

#[test]
fn a_run_of_the_merge_that_fails_is_named_and_asked_again() {
    let place = Place::new();
    let merge = "reduce-with:2 -- [ -e go ] || exit 3; paste -sd+";
    let failed = merged(&place, 4, merge).expect_code(1);
    assert_eq!(failed.stdout(), "");
    assert!(failed.stderr.contains("`reduce 1.1` did not complete"), "{}", failed.stderr);
    assert!(failed.stderr.contains("--failed` asks again"), "{}", failed.stderr);
    let kept = place.run(&["merge", "--children", "last", "--strategy", "sum"]).expect_code(0);
    assert_eq!(kept.stdout(), "10\n", "runs of the merge are no results");
    place.file("go", "");
    let resumed = place.run(&["resume", "last", "--failed"]).expect_code(0);
    assert_eq!(resumed.stdout(), "1+2+3+4\n");
    place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn nothing_is_asked_while_a_piece_is_missing() {
    let place = Place::new();
    place.file("in", "1\nx\n3\n");
    let map = |on_failure: &str| {
        let merge = "command:paste -sd+; echo ran >> ran";
        let words = ["map", "--split", "lines:1", "--on-failure", on_failure, "--merge", merge];
        place.run(&[&words[..], &["in", "--", "grep", "[0-9]"]].concat())
    };
    let failed = map("fail").expect_code(1);
    assert_eq!(failed.stdout(), "");
    assert!(failed.stderr.contains("1 of 3 pieces did not complete"), "{}", failed.stderr);
    assert!(!place.path().join("ran").exists());
    assert_eq!(map("skip").expect_code(0).stdout(), "1+3\n");
}

#[test]
fn a_killed_merge_goes_on_in_the_middle() {
    let place = Place::new();
    place.file("in", "1\n2\n3\n4\n");
    // The second level hangs until the file `go` is there, after it has said so.
    place.file(
        "pair",
        "read -r a; read -r b; echo ran >> \"ran-$a-$b\"\n\
         case $a in *+*) [ -e go ] || { echo up > fifo; exec sleep 600; };; esac\n\
         echo \"$a+$b\"\n",
    );
    let map =
        ["map", "--split", "lines:1", "--merge", "reduce-with:2 -- sh pair", "in", "--", "cat"];
    let place = Doomed::start(place, &map).kill();
    let ran = |name: &str| {
        fs::read_to_string(place.path().join(name)).unwrap_or_default().lines().count()
    };
    assert_eq!(["ran-1-2", "ran-3-4", "ran-1+2-3+4"].map(ran), [1, 1, 1]);
    place.file("go", "");
    let resumed = place.run(&["resume"]).expect_code(0);
    assert_eq!(resumed.stdout(), "1+2+3+4\n");
    assert_eq!(["ran-1-2", "ran-3-4", "ran-1+2-3+4"].map(ran), [1, 1, 2]);
    assert_eq!(asked(&place).len(), 3, "it was run again as the same run");
    place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn an_agent_asks_for_children_that_merge() {
    let place = Place::new();
    let script = "\"$OFFSHOOT\" fanout --merge 'reduce-with:2 -- paste -sd+' \
        --task a --task b --task c -- cat\n\
        \"$OFFSHOOT\" wait --merge 'command:paste -sd-'\n\
        \"$OFFSHOOT\" merge --strategy 'command:paste -sd/'\n";
    let outcome = place.tree(&[], script).expect_code(0);
    assert_eq!(outcome.stdout(), "a+b+c\na-b-c\na/b/c\n", "{}", outcome.stderr);
    let labels = ["reduce 1.1", "reduce 2.1", "merge", "merge"];
    assert_eq!(asked(&place), completed(&labels));
    place.run(&["audit", "last"]).expect_code(0);
    let script = "\"$OFFSHOOT\" fanout --merge 'command:cat' --task a --task b -- cat";
    let refused = place.tree(&["--max-spawns", "2"], script).expect_code(1);
    assert!(refused.stderr.contains("`merge` was refused"), "{}", refused.stderr);
}

/// A judge that answers this, whatever it is asked; `$n` is how often it was asked before.
fn judge(place: &Place, says: &str) -> String {
    place.file(
        "judge",
        format!("n=$(cat asked 2>/dev/null | wc -l); echo x >> asked; cat >> seen; {says}\n"),
    );
    "best-of -- sh judge".to_owned()
}

#[test]
fn a_judge_chooses_and_says_why() {
    let place = Place::new();
    let best = judge(&place, "echo '{\"winner\": 2, \"reason\": \"it is even\"}'");
    let best = merged(&place, 3, &best).expect_code(0);
    assert_eq!(best.stdout(), "2\n");
    assert!(
        best.stderr.contains("the judge chose stdin:2, because: it is even"),
        "{}",
        best.stderr
    );
    let seen = fs::read_to_string(place.path().join("seen")).expect("the judge has written it");
    assert!(seen.starts_with("[Result 1 from stdin:1]:\n1\n\n[Result 2 from stdin:2]:"), "{seen}");
    assert_eq!(asked(&place), completed(&["judge 1.1"]));
    let one = merged(&place, 1, "best-of -- sh judge").expect_code(0);
    assert!(!one.stderr.contains("judge"), "of one none is chosen: {}", one.stderr);
    let json = ["--json", "fanout", "--merge", "best-of -- sh judge", "--task", "a", "--task", "b"];
    let json = place.run(&[&json[..], &["--", "cat"]].concat()).expect_code(0).json();
    assert_eq!(json["data"], "b");
    assert_eq!(json["chosen"], serde_json::json!({ "winner": "b", "reason": "it is even" }));
    let events = place.run(&["events", "--json", "last"]).expect_code(0);
    assert!(events.stdout().contains("\"reason\":\"it is even\""), "{}", events.stdout());
    place.run(&["audit", "last"]).expect_code(0);
    // The winners of groups meet again.
    place.file("judge", "grep -c '^.Result' | sed 's/.*/{\"winner\": &}/'");
    let rounds = merged(&place, 5, "best-of:1 -- sh judge").expect_code(0);
    assert_eq!(rounds.stdout(), "5\n");
    let runs = ["judge 1.1", "judge 1.2", "judge 2.1", "judge 3.1"];
    assert_eq!(asked(&place), completed(&runs));
}

#[test]
fn a_judge_that_answers_nonsense_is_asked_once_more() {
    let place = Place::new();
    let says = "[ $n = 0 ] && echo 'I like all of them' || echo '{\"winner\": \"stdin:1\"}'";
    let best = judge(&place, says);
    assert_eq!(merged(&place, 2, &best).expect_code(0).stdout(), "1\n");
    assert_eq!(asked(&place), completed(&["judge 1.1", "judge 1.1 again"]));
    let best = judge(&place, "echo '{\"winner\": 7}'");
    let nonsense = merged(&place, 2, &best).expect_code(1);
    assert_eq!(nonsense.stdout(), "");
    let why = "best-of: `judge 1.1 again` chose none: it answered \"{\\\"winner\\\": 7}\"";
    assert!(nonsense.stderr.contains(why), "{}", nonsense.stderr);
    assert_eq!(asked(&place), completed(&["judge 1.1", "judge 1.1 again"]));
    place.run(&["audit", "last"]).expect_code(0);
    let kept = place.run(&["merge", "--children", "last", "--strategy", "sum"]).expect_code(0);
    assert_eq!(kept.stdout(), "3\n");
}

#[test]
fn a_judge_that_fails_or_never_ends_is_named() {
    let place = Place::new();
    let best = judge(&place, "echo no >&2; exit 4");
    let failed = merged(&place, 2, &best).expect_code(1);
    assert!(failed.stderr.contains("best-of: `judge 1.1` did not complete"), "{}", failed.stderr);
    assert_eq!(asked(&place), [("judge 1.1".to_owned(), "failed".to_owned())]);
    judge(&place, "sleep 600");
    let map = ["map", "--timeout", "1", "--split", "lines:1", "--merge", &best, "-", "--", "cat"];
    let hangs = place.feed(&map, "1\n2\n").expect_code(1);
    assert!(hangs.stderr.contains("best-of: `judge 1.1` did not complete"), "{}", hangs.stderr);
    assert_eq!(asked(&place), [("judge 1.1".to_owned(), "timed_out".to_owned())]);
    let kept = place.run(&["merge", "--children", "last", "--strategy", "sum"]).expect_code(0);
    assert_eq!(kept.stdout(), "3\n");
}

#[test]
fn a_judge_that_has_itself_judged_comes_to_an_end() {
    let place = Place::new();
    place.file(
        "loop.toml",
        "[[agents.list]]\nid = \"judge\"\ncommand = [\"sh\", \"-c\", \"exec \\\"$OFFSHOOT\\\" \
         fanout --merge best-of=judge --task a --task b -- cat\"]\n\
         [agents.defaults.subagents]\nallowRecursiveSpawn = true\nallowAgents = [\"*\"]\n",
    );
    let fanout = ["--config", "loop.toml", "fanout", "--merge", "best-of=judge"];
    let fanout = [&fanout[..], &["--task", "a", "--task", "b", "--", "cat"]].concat();
    let looped = place.run(&fanout).expect_code(1);
    assert!(looped.stderr.contains("best-of: `judge 1.1` did not complete"), "{}", looped.stderr);
    place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn summaries_of_groups_are_summarized_again() {
    let place = Place::new();
    let long = "word ".repeat(100);
    place.file("long", &long);
    let fanout = |tasks: usize, merge: &str| {
        let tasks: Vec<String> = (0..tasks).map(|number| number.to_string()).collect();
        let tasks = tasks.iter().flat_map(|task| ["--task", task]);
        let words: Vec<&str> = ["fanout", "--merge", merge].into_iter().chain(tasks).collect();
        place.run(&[&words[..], &["--", "cat", "long"]].concat())
    };
    // Of each result a letter: five times 100 tokens do not fit into 250.
    let short = "summarize-with:250 -- sed -n 's/^.Result .*/x/p' | paste -sd ''";
    let five = fanout(5, short).expect_code(0);
    assert_eq!(asked(&place), completed(&["summary 1.1", "summary 1.2", "summary 2.1"]));
    assert_eq!(five.stdout(), "xxx\n", "two summaries, and the one that was left");
    let one = fanout(1, "summarize-with -- wc -c").expect_code(0);
    assert_eq!((one.stdout().trim(), asked(&place)), ("519", completed(&["summary 1.1"])));
    place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn a_summary_that_is_longer_than_what_it_summarizes_is_refused() {
    let place = Place::new();
    let longer = merged(&place, 2, "summarize-with -- cat; seq 1000").expect_code(1);
    assert_eq!(longer.stdout(), "");
    let why = "summarize-with: `summary 1.1` is longer than what it summarizes: about ";
    assert!(longer.stderr.contains(why), "{}", longer.stderr);
    let kept = place.run(&["merge", "--children", "last", "--strategy", "sum"]).expect_code(0);
    assert_eq!(kept.stdout(), "3\n");
    let sentence = merged(&place, 2, "summarize-with -- echo two numbers, which are short");
    assert_eq!(sentence.expect_code(0).stdout(), "two numbers, which are short\n");
}

#[test]
fn a_merge_for_which_nothing_is_left_is_refused_by_name() {
    let place = Place::new();
    place.file(
        "poor.toml",
        "[[agents.list]]\nid = \"writer\"\ncommand = [\"cat\"]\n\
         [agents.defaults.subagents.budget]\nusd = 0.0\n",
    );
    let map = ["--config", "poor.toml", "map", "--split", "lines:1"];
    let map = [&map[..], &["--merge", "summarize-with=writer", "-", "--", "cat"]].concat();
    let refused = place.feed(&map, "1\n2\n");
    let code = refused.code;
    let refused = refused.expect_code(code);
    assert_ne!(code, 0);
    assert!(refused.stderr.contains("summarize-with: `summary 1.1` "), "{}", refused.stderr);
    assert!(refused.stderr.contains("merge --children"), "{}", refused.stderr);
    let kept = place.run(&["merge", "--children", "last", "--strategy", "sum"]).expect_code(0);
    assert_eq!(kept.stdout(), "3\n");
}

/// A tree whose merge of three results was refused its runs for want of money, goes on with each of these and is merged.
#[track_caller]
fn check_paid_later(budget: &[&str], later: &[&[&str]]) {
    let used = Usage { input: 300, output: 0, ..Usage::default() };
    let price = "[prices.small]\ninputPerMillion = 1000\noutputPerMillion = 1000\n";
    let agent = "[[agents.list]]\nid = \"writer\"\nruntime = \"openai\"\n";
    for options in later {
        let (place, _api) = openai::stage(
            [Rule::always(Reply::text("12")).usage(used)],
            &format!("{price}{agent}"),
        );
        place.file("in", "1\n2\n3\n4\n");
        let map = ["--config", "c.toml", "map", "--split", "lines:1", "--max-concurrent", "1"];
        let words = ["--merge", "reduce-with:2=writer", "in", "--", "sh", "-c", "tee -a ran"];
        let refused = place.run(&[&map[..], budget, &words].concat()).expect_code(4);
        assert_eq!(refused.stdout(), "");
        assert!(refused.stderr.contains("--failed` asks again"), "{}", refused.stderr);
        let resume = [&["resume", "last"], *options].concat();
        let resumed = place.run(&resume).expect_code(0);
        assert_eq!(resumed.stdout(), "12\n", "{budget:?} {options:?}: {}", resumed.stderr);
        let ran = fs::read_to_string(place.path().join("ran")).expect("the pieces wrote it");
        assert_eq!(ran, "1\n2\n3\n4\n", "no piece ran twice");
        place.run(&["audit", "last"]).expect_code(0);
    }
}

#[test]
fn a_merge_without_any_money_is_paid_for_later() {
    let tokens = ["--budget-tokens", "2000"];
    let usd = ["--budget-usd", "2"];
    check_paid_later(&["--budget-tokens", "0"], &[&tokens, &[&tokens[..], &["--failed"]].concat()]);
    check_paid_later(&["--budget-usd", "0"], &[&usd, &[&usd[..], &["--failed"]].concat()]);
}

#[test]
fn a_merge_whose_money_is_spent_in_the_middle_is_paid_for_later() {
    let tokens = ["--budget-tokens", "2000"];
    let failed = [&tokens[..], &["--failed"]].concat();
    // Before the second run, and in it.
    check_paid_later(&["--budget-tokens", "300"], &[&tokens, &failed]);
    check_paid_later(&["--budget-tokens", "400"], &[&tokens, &failed]);
    let usd = ["--budget-usd", "2"];
    check_paid_later(&["--budget-usd", "0.3"], &[&usd, &[&usd[..], &["--failed"]].concat()]);
}

/// A tree with three answers, whose merge was never made.
fn three(place: &Place) -> String {
    let refused = merged(place, 3, "command:exit 9").expect_code(1);
    assert_eq!(refused.stdout(), "");
    let trees = place.run(&["tree", "--all", "--json"]).expect_code(0).json();
    trees[0]["runId"].as_str().expect("a tree").to_owned()
}

#[test]
fn a_merge_of_earlier_answers_asks_in_a_tree_of_its_own() {
    let place = Place::new();
    let root = three(&place);
    place.file(
        "c.toml",
        "[[agents.list]]\nid = \"writer\"\n\
         command = [\"sh\", \"-c\", \"grep -v '^.Result' | grep . | paste -sd+\"]\n",
    );
    let merge = |strategy: &str, more: &[&str]| {
        let words = ["--config", "c.toml", "merge", "--strategy", strategy];
        place.run(&[&words[..], more].concat())
    };
    let children = ["--children", &root];
    let check = |strategy: &str, expected: &str, labels: &[&str]| {
        let answer = merge(strategy, &children).expect_code(0);
        assert_eq!(answer.stdout(), expected, "{strategy}: {}", answer.stderr);
        assert_eq!(asked(&place), completed(labels), "{strategy}");
        place.run(&["audit", "last"]).expect_code(0);
    };
    check("command:paste -sd+", "1+2+3\n", &["merge"]);
    check("summarize-with=writer", "1+2+3\n", &["summary 1.1"]);
    check("reduce-with:2=writer", "1+2+3\n", &["reduce 1.1", "reduce 2.1"]);
    check("best-of -- echo '{\"winner\": 2}'", "2\n", &["judge 1.1"]);
    // The results bear the names that they had.
    let named = merge("summarize-with -- grep -o 'from .*:'", &children).expect_code(0);
    assert_eq!(named.stdout(), "from stdin:1]:\nfrom stdin:2]:\nfrom stdin:3]:\n");
    let list = place.run(&["list", "--tree", &root, "--json"]).expect_code(0).json();
    let ids = list.as_array().expect("runs").iter().filter(|run| run["status"] == "completed");
    let ids: Vec<&str> = ids.filter_map(|run| run["runId"].as_str()).collect();
    let two = merge("command:wc -l", &["--result", ids[0], "--result", ids[1]]).expect_code(0);
    assert_eq!(two.stdout().trim(), "2");
    let json = place.run(&["--json", "merge", "--strategy", "command:cat", "--children", &root]);
    assert_eq!(json.expect_code(0).json()["data"], "1\n2\n3");
    let unknown = merge("summarize-with=nothing", &children).expect_code(2);
    assert!(unknown.stderr.contains("nothing"), "{}", unknown.stderr);
    let file = merge("command:cat", &["c.toml"]).expect_code(2);
    assert!(file.stderr.contains("--children or --result"), "{}", file.stderr);
    let idle = merge("sum", &[&children[..], &["--budget-usd", "1"]].concat()).expect_code(2);
    assert!(idle.stderr.contains("limits are for a merge that asks"), "{}", idle.stderr);
}

#[test]
fn a_merge_of_earlier_answers_keeps_to_its_limits_and_goes_on() {
    let used = Usage { input: 300, output: 0, ..Usage::default() };
    let agent = "[[agents.list]]\nid = \"writer\"\nruntime = \"openai\"\n";
    let (place, _api) = openai::stage([Rule::always(Reply::text("12")).usage(used)], agent);
    let root = three(&place);
    let merge = ["--config", "c.toml", "merge", "--strategy", "reduce-with:2=writer"];
    let merge = [&merge[..], &["--children", &root, "--budget-tokens", "0"]].concat();
    let refused = place.run(&merge).expect_code(4);
    assert!(refused.stderr.contains("`reduce 1.1` was refused"), "{}", refused.stderr);
    place.run(&["audit", "last"]).expect_code(0);
    let resumed = place.run(&["resume", "last", "--budget-tokens", "2000"]).expect_code(0);
    assert_eq!(resumed.stdout(), "12\n", "{}", resumed.stderr);
    place.run(&["audit", "last"]).expect_code(0);
}

#[test]
fn a_killed_merge_of_earlier_answers_goes_on_in_the_middle() {
    let place = Place::new();
    let root = three(&place);
    place.file(
        "pair",
        "read -r a; read -r b; echo ran >> \"ran-$a-$b\"\n\
         case $a in *+*) [ -e go ] || { echo up > fifo; exec sleep 600; };; esac\n\
         echo \"$a+$b\"\n",
    );
    let merge = ["merge", "--strategy", "reduce-with:2 -- sh pair", "--children", &root];
    let place = Doomed::start(place, &merge).kill();
    place.file("go", "");
    let resumed = place.run(&["resume"]).expect_code(0);
    assert_eq!(resumed.stdout(), "1+2+3\n");
    let ran = fs::read_to_string(place.path().join("ran-1-2")).expect("it ran");
    assert_eq!(ran, "ran\n", "what was merged is not merged again");
    place.run(&["audit", "last"]).expect_code(0);
}
