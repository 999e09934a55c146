//! `offshoot delegate`: which agent gets a task, and what happens where none does.

use crate::command::Place;

/// A lead with three agents that it prefers, one that it does not, and one that may have no children.
const TEAM: &str = r#"
[[agents.list]]
id = "lead"
preferredSubagents = [
    { git-coordinator = "For commit formatting" },
    { security-scanner = "For validation" },
    { template-sync-agent = "For drift detection" },
]

[[agents.list]]
id = "git-coordinator"
canDelegate = false
command = ["sh", "-c", "cat >/dev/null; echo committed"]

[[agents.list]]
id = "security-scanner"
description = "Looks for secrets and unsafe code."
command = ["sh", "-c", "cat >/dev/null; echo safe"]

[[agents.list]]
id = "template-sync-agent"
command = ["sh", "-c", "exec sh sync.sh"]

[[agents.list]]
id = "stranger"
description = "Formats the commit. Formats the commit."
command = ["echo", "a stranger"]
"#;

fn place() -> Place {
    let place = Place::new();
    place.file("team.toml", TEAM);
    place
}

/// Runs a script as the lead.
fn as_lead(place: &Place, more: &[&str], script: &str) -> String {
    let run = ["-q", "run", "--config", "team.toml", "--agent", "lead"];
    let command = ["x", "--", "sh", "-c", script];
    place.run(&[&run, more, &command].concat()).expect_code(0).stdout().to_owned()
}

#[test]
fn a_command_stands_behind_the_task() {
    let script = r#""$OFFSHOOT" -q delegate --wait --agent git-coordinator "write" -- sh -c 'echo "wrote $(cat)"'"#;
    let place = place();
    assert_eq!(as_lead(&place, &[], script), "wrote write\n");
    let script = r#""$OFFSHOOT" delegate 2>&1 | grep Usage"#;
    assert_eq!(
        as_lead(&place, &[], script).trim_end(),
        "Usage: offshoot delegate <TASK> [-- <COMMAND>...]"
    );
}

/// A command after `--` is for this one time, in place of that which the agent has in the configuration.
#[test]
fn a_command_of_the_operator_runs_in_place_of_the_configured_one() {
    let place = place();
    let agent = ["--config", "team.toml", "--agent", "stranger"];
    let with = |first: &[&str], last: &[&str]| {
        let outcome = place.run(&[first, &agent, last].concat()).expect_code(0);
        assert!(!outcome.text().contains("is not known"), "it costs nothing: {}", outcome.text());
        outcome.stdout().to_owned()
    };
    let mine = ["--", "echo", "mine"];
    assert_eq!(with(&["run", "x"], &mine), "mine\n");
    assert_eq!(with(&["fanout", "--task", "x"], &mine), "mine\n");
    let configured = ["-q", "run", "x", "--config", "team.toml", "--agent", "stranger"];
    assert_eq!(place.run(&configured).expect_code(0).stdout(), "a stranger\n");
    // One that a task names runs what it has.
    place.file("tasks.jsonl", "{\"task\":\"x\",\"agent\":\"stranger\"}\n");
    let tasks = ["-q", "fanout", "--config", "team.toml", "--tasks", "tasks.jsonl"];
    let outcome = place.run(&[&tasks[..], &mine].concat()).expect_code(0);
    assert_eq!(outcome.stdout(), "a stranger\n");
}

#[test]
fn a_task_goes_to_the_agent_that_fits_and_else_stays() {
    let place = place();
    let answers = as_lead(
        &place,
        &[],
        r#"for task in "format the commit" "is it safe? scan for secrets" "translate it" ""; do
            "$OFFSHOOT" -q delegate --wait "$task" 2>&1; echo $?
        done
        run=$("$OFFSHOOT" -q delegate "format this commit")
        "$OFFSHOOT" -q delegate --agent security-scanner --wait "format the commit"
        "$OFFSHOOT" wait "$run""#,
    );
    let expected = "committed\n0\nsafe\n0\nexecute_directly\n0\nerror: the task is empty\nhint: say in words what is to be done: offshoot delegate TASK\n2\nsafe\ncommitted";
    assert_eq!(answers.trim_end(), expected);
    let tree = place.run(&["tree"]).expect_code(0).stdout().to_owned();
    assert_eq!(tree.matches("git-coordinator").count(), 2, "{tree}");
    assert_eq!(tree.matches("security-scanner").count(), 2, "{tree}");
    assert!(!tree.contains("stranger"), "{tree}");
    // The record says by which words the agent was chosen, and nothing of an agent that was named.
    let events = place.run(&["events", "last"]).expect_code(0).stdout().to_owned();
    let chosen: Vec<&str> = events.lines().filter(|line| line.contains("chosen by")).collect();
    assert_eq!(chosen.len(), 3, "{events}");
    assert!(chosen[0].contains(", its agent chosen by the words: commit, format; "), "{events}");
    let runs = ["list", "--tree", "last", "--agent", "git-coordinator", "--json"];
    let runs = place.run(&runs).expect_code(0).json();
    let run = runs[0]["runId"].as_str().expect("a run");
    let shown = place.run(&["show", run]).expect_code(0).stdout().to_owned();
    assert!(shown.contains("; its agent was chosen by the words: commit, format\n"), "{shown}");
    place.run(&["audit", "last"]).expect_code(0);
}

/// An agent that stands above would be refused as a cycle: the next one is chosen, and without one the session does it itself.
#[test]
fn an_agent_that_stands_above_is_not_chosen() {
    let place = Place::new();
    let hand_on =
        |task: &str| format!("['sh', '-c', '\"$OFFSHOOT\" -q delegate --wait \"{task}\"']");
    let team = |others: &str| {
        format!(
            "[[agents.list]]\nid = \"a\"\npreferredSubagents = [{{ b = \"review the plan\" }}]\ncommand = {}\n\
             [[agents.list]]\nid = \"b\"\ncanDelegate = true\ncommand = {}\n\
             preferredSubagents = [{{ a = \"write the code\" }}{others}]\n\
             [[agents.list]]\nid = \"c\"\ncommand = [\"echo\", \"formatted\"]\n",
            hand_on("review it"),
            hand_on("write code"),
        )
    };
    let run = ["-q", "run", "--config", "team.toml", "--agent", "a", "x"];
    place.file("team.toml", team(", { c = \"code formatting\" }"));
    assert_eq!(place.run(&run).expect_code(0).stdout(), "formatted\n");
    place.file("team.toml", team(""));
    assert_eq!(place.run(&run).expect_code(0).stdout(), "execute_directly\n");
}

/// The dry run for an agent that may have no child says so, as the session itself is told.
#[test]
fn a_dry_run_for_an_agent_without_children_chooses_none() {
    let place = place();
    let dry = [
        "delegate",
        "--config",
        "team.toml",
        "--dry-run",
        "--json",
        "--from",
        "git-coordinator",
        "x",
    ];
    let answer = place.run(&dry).expect_code(0).json();
    assert_eq!(answer["reason"], "cannot_delegate", "{answer}");
}

#[test]
fn the_choice_is_explained_and_as_json_whole() {
    let place = place();
    let said = as_lead(
        &place,
        &[],
        r#"exec 2>&1
        "$OFFSHOOT" delegate --explain --dry-run "validate the format of the commit"
        "$OFFSHOOT" delegate "translate it"
        "$OFFSHOOT" -q delegate --json "format the commit" | tr -d ' \n' | sed 's/01[-0-9a-f]*/ID/g; s/"score":[0-9.]*/"score":S/g'; echo
        "$OFFSHOOT" -q delegate --json "translate it" | tr -d '\n' | tr -s ' '; echo"#,
    );
    let mut lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("git-coordinator  ") && lines[0].ends_with("  commit, format"));
    assert!(lines[1].starts_with("security-scanner  ") && lines[1].ends_with("  valid"), "{said}");
    lines.drain(..2);
    assert_eq!(
        lines,
        [
            "git-coordinator",
            "do it yourself: no preferred agent has a word in common with the task",
            "execute_directly",
            r#"{"status":"accepted","runId":"ID","sessionKey":"agent:git-coordinator:subagent:ID","agent":"git-coordinator","scores":[{"agent":"git-coordinator","score":S,"words":["commit","format"]}]}"#,
            r#"{ "status": "execute_directly", "reason": "no_match", "message": "no preferred agent has a word in common with the task"}"#,
        ]
    );
}

#[test]
fn where_there_can_be_no_child_the_answer_is_to_do_it() {
    let place = place();
    // Two equal ones; an agent that prefers none; the deepest level; an agent that may have no children; recursion that is off.
    let equal = "[[agents.list]]\nid = \"lead\"\n\
                 preferredSubagents = [ { a = \"For reviews\" }, { b = \"For reviews\" } ]\n\
                 [[agents.list]]\nid = \"a\"\n[[agents.list]]\nid = \"b\"\n\
                 [[agents.list]]\nid = \"alone\"\n\
                 [[agents.list]]\nid = \"closed\"\ncanDelegate = false\n";
    place.file("team.toml", equal);
    let reason = |agent: &str, more: &[&str], script: &str| {
        let run = ["-q", "run", "--config", "team.toml", "--agent", agent];
        let command = ["x", "--", "sh", "-c", script];
        let said = place.run(&[&run, more, &command].concat()).expect_code(0);
        let answer: serde_json::Value = said.json();
        assert_eq!(answer["status"], "execute_directly", "{answer}");
        format!("{}: {}", answer["reason"], answer["message"].as_str().expect("a sentence"))
    };
    let review = r#""$OFFSHOOT" -q --json delegate "review it""#;
    assert_eq!(reason("lead", &[], review), r#""tie": `a`, `b` fit the task equally well"#);
    let none = r#""no_preferred": this agent prefers no agent that it may start"#;
    assert_eq!(reason("alone", &[], review), none);
    let closed = r#""cannot_delegate": the agent `closed` may have no children"#;
    assert_eq!(reason("closed", &[], review), closed);
    // By name, admission says it.
    let named = r#""$OFFSHOOT" -q --json delegate --agent a "review it""#;
    assert_eq!(
        reason("closed", &[], named),
        r#""cannot_delegate": the agent `closed` may not delegate"#
    );
    let below = format!(r#""$OFFSHOOT" -q spawn --wait y -- sh -c '{review}'"#);
    let deep = r#""depth_limit": depth 1 is the deepest level that this session may reach"#;
    assert_eq!(reason("lead", &["--max-depth", "1", "--allow-recursive-spawn"], &below), deep);
    let off =
        r#""recursion_disabled": sub-agents may have no children here: allowRecursiveSpawn is off"#;
    assert_eq!(reason("lead", &[], &below), off);
    // What is refused for another reason is a refusal.
    let spent = as_lead(
        &place,
        &["--max-spawns", "1"],
        r#"exec 2>&1; "$OFFSHOOT" -q spawn --wait x -- true; "$OFFSHOOT" -q delegate --agent a x | head -1; "$OFFSHOOT" -q delegate --agent a x 2>/dev/null; echo $?"#,
    );
    assert!(spent.contains("error: ") && spent.ends_with("3\n"), "{spent}");
}

#[test]
fn outside_of_an_agent_the_choice_alone_is_made() {
    let place = place();
    let ask = |words: &[&str]| place.run(&[&["delegate", "--config", "team.toml"], words].concat());
    let chosen = ask(&["--dry-run", "--from", "lead", "look for secrets"]).expect_code(0);
    assert_eq!(chosen.stdout(), "security-scanner\n");
    let none = ask(&["--dry-run", "look for secrets"]).expect_code(0);
    assert_eq!(none.stdout(), "execute_directly\n");
    assert!(none.stderr.contains("prefers no agent"), "{}", none.stderr);
    let empty = ask(&["--dry-run", "--from", "lead", ""]).expect_code(2);
    assert!(empty.stderr.contains("the task is empty"), "{}", empty.stderr);
    let unknown = ask(&["--dry-run", "--from", "leed", "x"]).expect_code(2);
    assert!(unknown.stderr.contains("`lead`"), "{}", unknown.stderr);
    let outside = ask(&["look for secrets"]).expect_code(2);
    assert!(outside.stderr.contains("for programs that run as an agent"), "{}", outside.stderr);
    assert!(!place.path().join(".offshoot").exists(), "nothing was made");
}

#[test]
fn a_program_finds_in_a_file_whom_it_may_start() {
    let place = place();
    let text = as_lead(&place, &["--max-depth", "2"], r#"cat "$OFFSHOOT_GUIDANCE_FILE""#);
    assert_eq!(
        text,
        r#"You are at depth 0 of at most 2.
You may start sub-agents: `"$OFFSHOOT" spawn --agent ID TASK`; `"$OFFSHOOT" wait` brings their results.
`"$OFFSHOOT" delegate --wait TASK` chooses the agent by the words of the task, or prints `execute_directly`.
Agents you may start:
- git-coordinator: For commit formatting
- security-scanner: Looks for secrets and unsafe code. — For validation
- template-sync-agent: For drift detection
- lead
Start one where a part of the task is what that agent is for, and where parts can be done at the same time. Do small and closely connected work yourself: a sub-agent knows nothing but its task.
"#
    );
    // One that may start none has no such file.
    let none = as_lead(
        &place,
        &[],
        r#""$OFFSHOOT" spawn --wait x -- sh -c 'echo "${OFFSHOOT_GUIDANCE_FILE-none}"'"#,
    );
    assert_eq!(none, "none\n");
}
