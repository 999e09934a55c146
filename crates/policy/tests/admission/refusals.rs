//! Every refusal, letter by letter: the answers stand in one snapshot beside this file.

use std::time::Duration;

use offshoot_model::{CostKnowledge, Origin, Reason, SpawnRequest};
use offshoot_policy::breaker::BreakerLimits;
use serde_json::{Map, Value};

use crate::tree::{Tree, agent, ask, at, paid, rights, run, tokens, usd};

const OPEN: &str =
    "[agents.defaults.subagents]\nallowRecursiveSpawn = true\nallowAgents = [\"*\"]\n";
const AGENTS: &str = "[[agents.list]]\nid = \"a\"\n[[agents.list]]\nid = \"b\"\n";

/// A tree in which every agent may spawn every other, apart from these limits.
fn open_with(limits: &str) -> Tree {
    Tree::new(&format!("{OPEN}{limits}{AGENTS}"))
}

/// The same, with further lines about `b`.
fn with_b(lines: &str) -> Tree {
    Tree::new(&format!("{OPEN}{AGENTS}{lines}"))
}

#[derive(Default)]
struct Answers(Map<String, Value>);

impl Answers {
    fn refused(&mut self, case: &str, tree: &Tree, caller: usize, request: &SpawnRequest) {
        let refusal = tree.ask(caller, request, Origin::Agent).expect_err(case);
        let json = serde_json::to_value(&refusal).expect("refusals are plain");
        assert!(self.0.insert(case.to_owned(), json).is_none(), "{case} twice");
    }

    /// Asked of the last of a chain of sub-agents.
    fn refused_below(&mut self, case: &str, mut tree: Tree, chain: &[&str], target: &str) {
        let caller = tree.chain(chain);
        self.refused(case, &tree, caller, &ask(target));
    }
}

#[test]
fn every_refusal_letter_by_letter() {
    let mut answers = Answers::default();
    answers.refused("an empty task", &Tree::new(""), 0, &SpawnRequest::default());
    session(&mut answers);
    target(&mut answers);
    chain(&mut answers);
    counts(&mut answers);
    tools(&mut answers);
    budget(&mut answers);
    moment(&mut answers);
    answers.0.values().for_each(is_on_the_page);
    insta::assert_json_snapshot!("refusals", answers.0);
}

/// The page about refusals names the code and the setting that decided.
fn is_on_the_page(refusal: &Value) {
    let page = include_str!("../../../../docs/refusals.md");
    let code = refusal["code"].as_str().expect("a code");
    let row = page.lines().find(|line| line.starts_with(&format!("| `{code}` |")));
    let setting = row.and_then(|row| row.split('|').nth(3));
    let setting = setting.unwrap_or_else(|| panic!("docs/refusals.md has no row for `{code}`"));
    if let Some(key) = refusal["governedBy"]["key"].as_str() {
        // A level is one of many.
        let key = key
            .trim_start_matches("subagents.")
            .trim_end_matches(|c: char| !c.is_ascii_alphabetic());
        assert!(
            setting.contains(&format!("`{key}`")),
            "{key} does not stand in the row of `{code}`"
        );
    }
}

fn session(answers: &mut Answers) {
    let mut tree = Tree::new("");
    tree.sessions[0].over = true;
    answers.refused("a session that is over", &tree, 0, &ask("main"));
    let mut tree =
        with_b("[agents.list.subagents]\nallowRecursiveSpawn = true\ndeadlineSeconds = 60\n");
    let b = tree.chain(&["b"]);
    tree.sessions[b].out_of_time = true;
    answers.refused("a session below which the time is over", &tree, b, &ask("b"));
    answers.refused_below("recursion that no setting allows", Tree::new(""), &["main"], "main");
    let tree = with_b("[agents.list.subagents]\nallowRecursiveSpawn = false\n");
    answers.refused_below("recursion against an agent's word", tree, &["b"], "a");
    answers.refused_below("the deepest level", open_with(""), &["main", "main", "main"], "main");
    answers.refused_below("no delegation", with_b("canDelegate = false\n"), &["b"], "a");
    let tree = with_b("tools = { allow = [\"read\"] }\n");
    answers.refused_below("no right to spawn", tree, &["b"], "a");
}

fn target(answers: &mut Answers) {
    answers.refused("an agent that is not defined", &open_with(""), 0, &ask("nobody"));
    answers.refused("an agent whose name has a slip", &open_with(""), 0, &ask("bb"));
    answers.refused("an agent that no setting allows", &Tree::new(AGENTS), 0, &ask("a"));
    let main = "[[agents.list]]\nid = \"main\"\nsubagents = { allowAgents = [\"b\"] }\n";
    let tree = Tree::new(&format!("{AGENTS}{main}"));
    answers.refused("an agent that is not on the list", &tree, 0, &ask("a"));
    let tree = Tree::new("[agents.defaults.subagents]\nallowAgents = []\n");
    answers.refused("an agent under an empty list", &tree, 0, &ask("main"));
}

fn chain(answers: &mut Answers) {
    answers.refused_below("a cycle", open_with(""), &["a", "b"], "a");
    let tree = open_with("maxDepth = 10\nallowCycles = true\nmaxIdenticalDelegations = 1\n");
    answers.refused_below("a second cycle", tree, &["a", "b", "a", "b"], "a");
    let mut tree = open_with("maxDepth = 10\n");
    let last = (0..3).fold(0, |caller, _| tree.spawn(caller, &ask("main")).expect("not yet"));
    answers.refused("the same words a fourth time", &tree, last, &ask("main"));
}

fn counts(answers: &mut Answers) {
    let mut tree = open_with("maxChildrenPerAgent = 1\n");
    tree.chain(&["a"]);
    answers.refused("too many children", &tree, 0, &ask("a"));
    answers.refused_below("too many spawns", open_with("maxSpawns = 1\n"), &["a"], "b");
    let mut tree = open_with("maxSpawnsPerMinute = 1\n");
    tree.chain(&["a"]);
    tree.now = at(59);
    answers.refused("too many spawns in a minute", &tree, 0, &ask("a"));
    tree.now = at(60);
    assert!(tree.ask(0, &ask("a"), Origin::Agent).is_ok());
}

fn tools(answers: &mut Answers) {
    let tree = open_with("tools = { deny = [\"exec\", \"write\"] }\n");
    let tools = Some(rights(Some(&["exec", "read", "write"]), &[]));
    let request = SpawnRequest { tools, ..ask("a") };
    answers.refused("rights that the caller lacks", &tree, 0, &request);
    let command = Some(vec!["make".to_owned()].into());
    let request = SpawnRequest { command, ..ask("a") };
    answers.refused("a command without the right", &tree, 0, &request);
    let mut tree = open_with("toolsByDepth = { 1 = { deny = [\"write\"] } }\n");
    tree.runtime.enforces = Some(Default::default());
    answers.refused("rights that cannot be withheld", &tree, 0, &ask("a"));
}

fn budget(answers: &mut Answers) {
    let tree = open_with("budget = { tokens = 100, usd = 0.5 }\n");
    for (case, budget) in [
        ("more tokens than are left", tokens(101)),
        ("more dollars than are left", usd(500_001)),
        ("no tokens at all", tokens(0)),
    ] {
        answers.refused(case, &tree, 0, &SpawnRequest { budget, ..ask("a") });
    }
    let mut tree = open_with("budget = { usd = 5 }\n");
    tree.runtime = paid(CostKnowledge::Unknown);
    answers.refused("a cost without a bound", &tree, 0, &ask("a"));
}

fn moment(answers: &mut Answers) {
    let mut tree = open_with("");
    let limits = BreakerLimits { failures: 1, cooldown: Duration::from_secs(60) };
    let fault = Reason::CannotStart { message: "not found".into() };
    tree.books.breakers.ended(&agent("a"), run(9), &fault, limits, at(0));
    answers.refused("a breaker that is open", &tree, 0, &ask("a"));
    tree.now = at(60);
    tree.books.breakers.start(&agent("a"), run(10), at(60));
    answers.refused("a breaker that probes", &tree, 0, &ask("a"));
    let mut tree = open_with("");
    tree.slot_free = false;
    assert!(tree.ask(0, &ask("a"), Origin::Agent).is_ok(), "waits");
    let request = SpawnRequest { no_queue: true, ..ask("a") };
    answers.refused("no slot and no wish to wait", &tree, 0, &request);
    let mut tree = open_with("");
    tree.paused = true;
    answers.refused("a pause", &tree, 0, &ask("a"));
    assert!(tree.ask(0, &ask("a"), Origin::Piece).is_ok(), "waits in line");
}
