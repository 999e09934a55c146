//! Two rules that both forbid: the earlier one answers.

use std::time::Duration;

use offshoot_model::{CostKnowledge, Origin, Reason, RefusalCode, SpawnRequest};
use offshoot_policy::breaker::BreakerLimits;

use crate::tree::{Tree, agent, at, paid, rights, run, tokens};

/// A tree and a request for which every rule from `first` on forbids, and none before it.
fn everything_wrong_from(first: usize) -> (Tree, usize, SpawnRequest) {
    let on = |row: usize| row >= first;
    let set = |row: usize, text: &'static str, otherwise: &'static str| {
        if on(row) { text } else { otherwise }
    };
    // The caller is `b` below `a` below `main`; the target is `a`.
    let text = [
        "[agents.defaults.subagents]\n",
        "tools = { deny = [\"exec\"] }\n",
        "budget = { tokens = 1000, usd = 1 }\n",
        "[[agents.list]]\nid = \"main\"\nsubagents = { allowAgents = [\"a\"] }\n",
        "[[agents.list]]\nid = \"a\"\n",
        "subagents = { allowAgents = [\"b\"], allowRecursiveSpawn = true }\n",
        "[[agents.list]]\nid = \"b\"\n",
        set(5, "canDelegate = false\n", ""),
        "[agents.list.subagents]\n",
        set(7, "allowAgents = [\"b\"]\n", "allowAgents = [\"*\"]\n"),
        set(3, "allowRecursiveSpawn = false\n", ""),
        set(4, "maxDepth = 2\n", "maxDepth = 3\n"),
        set(8, "allowCycles = false\n", "allowCycles = true\n"),
        set(9, "maxIdenticalDelegations = 1\n", ""),
        set(10, "maxChildrenPerAgent = 1\n", ""),
        set(11, "maxSpawns = 2\n", ""),
        set(12, "maxSpawnsPerMinute = 2\n", ""),
    ];
    let mut tree = Tree::new(&text.concat());
    let target = if on(6) && first == 6 { "nobody" } else { "a" };
    let mut request = SpawnRequest {
        task: "the same".into(),
        agent: Some(agent(target)),
        tools: on(13).then(|| rights(Some(&["exec"]), &[])),
        budget: if on(14) { tokens(5000) } else { tokens(1) },
        no_queue: true,
        ..SpawnRequest::default()
    };
    let first_request = SpawnRequest { tools: None, budget: None, ..request.clone() };
    let first_child = SpawnRequest { agent: Some(agent("a")), ..first_request.clone() };
    let a = tree.spawn(0, &first_child).expect("main may spawn a");
    let b = tree.spawn(a, &SpawnRequest { agent: Some(agent("b")), ..first_request });
    let b = b.expect("a may spawn b");
    tree.sessions[b].live_children = 1;
    tree.sessions[b].over = on(2);
    if on(1) {
        request.label = Some("".into());
    }
    if on(15) {
        tree.runtime = paid(CostKnowledge::Unknown);
    }
    if on(16) {
        let limits = BreakerLimits { failures: 1, cooldown: Duration::from_secs(60) };
        let fault = Reason::CannotStart { message: "not found".into() };
        tree.books.breakers.ended(&agent("a"), run(9), &fault, limits, at(0));
    }
    tree.slot_free = !on(17);
    tree.paused = on(18);
    (tree, b, request)
}

#[test]
fn the_first_rule_that_forbids_answers() {
    let rows = [
        (1, RefusalCode::InvalidRequest),
        (2, RefusalCode::CallerEnded),
        (3, RefusalCode::RecursionDisabled),
        (4, RefusalCode::DepthLimit),
        (5, RefusalCode::CannotDelegate),
        (6, RefusalCode::UnknownAgent),
        (7, RefusalCode::AgentNotAllowed),
        (8, RefusalCode::Cycle),
        (9, RefusalCode::RepeatLimit),
        (10, RefusalCode::ChildrenLimit),
        (11, RefusalCode::SpawnLimit),
        (12, RefusalCode::SpawnRate),
        (13, RefusalCode::ToolsNotGrantable),
        (14, RefusalCode::BudgetExhausted),
        (15, RefusalCode::CostUnbounded),
        (16, RefusalCode::BreakerOpen),
        (17, RefusalCode::Busy),
        (18, RefusalCode::Paused),
    ];
    for (row, code) in rows {
        let (tree, caller, request) = everything_wrong_from(row);
        let refusal = tree.ask(caller, &request, Origin::Agent).expect_err("a refusal");
        assert_eq!(refusal.code, code, "row {row}: {refusal}");
    }
    let (tree, caller, request) = everything_wrong_from(19);
    assert_eq!(tree.ask(caller, &request, Origin::Agent).err(), None);
}

#[test]
fn the_codes_stand_in_the_order_of_the_rules() {
    let mut codes: Vec<RefusalCode> = (1..=18)
        .filter_map(|row| {
            let (tree, caller, request) = everything_wrong_from(row);
            tree.ask(caller, &request, Origin::Agent).err().map(|refusal| refusal.code)
        })
        .collect();
    let asked = codes.clone();
    codes.sort();
    assert_eq!(asked, codes);
    assert_eq!(codes.len(), 18);
}
