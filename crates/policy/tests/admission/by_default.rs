//! Dollars of paid runs in a tree that has no budget in dollars.

use offshoot_model::{
    Cost, CostKnowledge, Ending, MicroUsd, Origin, Payload, RefusalCode, SpawnRequest, Usage,
};
use offshoot_policy::RuntimeFacts;

use crate::tree::{Tree, agent, ask, config, paid, run, tokens, usd};

const OPEN: &str = "[agents.defaults.subagents]\nallowRecursiveSpawn = true\nmaxDepth = 10\nmaxIdenticalDelegations = 99\n";

const DOLLAR: u64 = 1_000_000;

/// A tree whose root is a program that costs nothing, and which runs paid agents for five dollars by default.
fn tree(limits: &str) -> Tree {
    let free = RuntimeFacts::of_a_command("exec");
    let mut tree = Tree::open(config(&format!("{OPEN}{limits}")), "main", free)
        .expect("a command may stand at the top");
    tree.runtime = costly();
    tree
}

fn costly() -> RuntimeFacts {
    let default_usd = Some(MicroUsd::from_micros(5 * DOLLAR));
    RuntimeFacts { default_usd, ..paid(CostKnowledge::Reported) }
}

/// The dollars that a run was granted, in millionths, and true if they are a part of what the tree may cost by default.
fn granted(tree: &Tree, session: usize) -> (Option<u64>, bool) {
    let grant = &tree.sessions[session].admission.grant;
    (grant.budget.usd.map(MicroUsd::as_micros), grant.default_usd.is_some())
}

fn spawn(tree: &mut Tree, caller: usize) -> usize {
    let task = format!("part {}", tree.sessions.len());
    let request = SpawnRequest { task: task.into(), ..ask("main") };
    tree.spawn(caller, &request).expect("it is within what is left")
}

fn ends(tree: &mut Tree, session: usize, micros: u64) {
    let cost = Cost::known(MicroUsd::from_micros(micros));
    let usage = Usage::default();
    let ending = Ending { usage, cost, ..Ending::completed(Payload::text("done")) };
    tree.books.ledger.settle(run(session), &ending);
}

#[test]
fn paid_runs_share_what_a_tree_may_cost_without_a_budget() {
    let mut tree = tree("");
    let first = spawn(&mut tree, 0);
    let second = spawn(&mut tree, 0);
    assert_eq!(granted(&tree, first), (Some(2_500_000), true));
    assert_eq!(granted(&tree, second), (Some(1_250_000), true));
    // What is below one of them is a part of its own.
    let below = spawn(&mut tree, first);
    assert_eq!(granted(&tree, below), (Some(1_250_000), false));
    // A program that costs nothing takes nothing of it, and what it starts takes as much as the others.
    tree.runtime = RuntimeFacts::of_a_command("exec");
    let program = spawn(&mut tree, 0);
    assert_eq!(granted(&tree, program), (None, false));
    tree.runtime = costly();
    let third = spawn(&mut tree, program);
    assert_eq!(granted(&tree, third), (Some(625_000), true));
    // What one has not used is there again for the others.
    ends(&mut tree, second, DOLLAR / 4);
    let fourth = spawn(&mut tree, 0);
    assert_eq!(granted(&tree, fourth), (Some(812_500), true));
}

#[test]
fn no_more_is_spent_without_a_budget_than_is_allowed() {
    let mut tree = tree("");
    let mut spent = 0;
    for round in 0..100 {
        let request = SpawnRequest { task: format!("round {round}").into(), ..ask("main") };
        match tree.spawn(0, &request) {
            Ok(session) => {
                let all = granted(&tree, session).0.expect("it is bounded");
                ends(&mut tree, session, all);
                spent += all;
            }
            Err(refusal) => {
                assert_eq!(refusal.code, RefusalCode::BudgetExhausted);
                // Half of the last millionth is nothing.
                assert_eq!(spent, 5 * DOLLAR - 1, "round {round}");
                insta::assert_snapshot!(
                    refusal.to_string() + "\n" + &refusal.hint.expect("a hint")
                );
                return;
            }
        }
    }
    panic!("{spent} of {} are spent, and more is admitted", 5 * DOLLAR);
}

#[test]
fn an_agent_asks_for_no_more_than_is_left_without_a_budget() {
    let mut tree = tree("");
    let asks = |micros| SpawnRequest { budget: usd(micros), ..ask("main") };
    let code = |tree: &Tree, micros| {
        tree.ask(0, &asks(micros), Origin::Agent).err().map(|refusal| refusal.code)
    };
    assert_eq!(code(&tree, 5 * DOLLAR + 1), Some(RefusalCode::BudgetExhausted));
    // One that has used more than its part leaves less to the others.
    let over = tree.spawn(0, &asks(DOLLAR)).expect("so much is left");
    ends(&mut tree, over, 2 * DOLLAR);
    assert_eq!(code(&tree, 3 * DOLLAR + 1), Some(RefusalCode::BudgetExhausted));
    assert_eq!(code(&tree, 3 * DOLLAR), None);
    let mut tree = self::tree("");
    let all = tree.spawn(0, &asks(5 * DOLLAR)).expect("so much is left");
    assert_eq!(granted(&tree, all), (Some(5 * DOLLAR), true));
    assert_eq!(code(&tree, 1), Some(RefusalCode::BudgetExhausted));
    // What the operator adds to one of them is not taken from the others.
    let more =
        offshoot_model::BudgetGrant { usd: Some(MicroUsd::from_micros(DOLLAR)), tokens: None };
    tree.books.ledger.raise(run(all), more);
    assert_eq!(code(&tree, 1), Some(RefusalCode::BudgetExhausted));
    ends(&mut tree, all, 5 * DOLLAR);
    assert_eq!(code(&tree, DOLLAR), None);
    assert_eq!(code(&tree, DOLLAR + 1), Some(RefusalCode::BudgetExhausted));
}

/// No program leaves the limit by asking for a budget of its own, below which it starts paid agents.
#[test]
fn dollars_that_a_free_run_asks_for_are_a_part_of_the_same() {
    let mut tree = tree("");
    // One that costs nothing by itself, and one of which the operator says so.
    let command = RuntimeFacts::of_a_command("exec");
    let free = RuntimeFacts { default_usd: costly().default_usd, ..command };
    let said = RuntimeFacts { is_free: true, ..costly() };
    for runtime in [&said, &free] {
        tree.runtime = runtime.clone();
        let plain = spawn(&mut tree, 0);
        assert_eq!(granted(&tree, plain), (None, false));
        ends(&mut tree, plain, 0);
    }
    let asks = |micros| SpawnRequest { budget: usd(micros), ..ask("main") };
    let refused = tree.ask(0, &asks(100 * DOLLAR), Origin::Agent).expect_err("there are five");
    assert_eq!(refused.code, RefusalCode::BudgetExhausted);
    assert!(refused.message.starts_with("100.00 usd cannot be reserved"), "{}", refused.message);
    let program = tree.spawn(0, &asks(4 * DOLLAR)).expect("so much is left");
    assert_eq!(granted(&tree, program), (Some(4 * DOLLAR), true));
    tree.runtime = costly();
    let beside = spawn(&mut tree, 0);
    assert_eq!(granted(&tree, beside), (Some(DOLLAR / 2), true));
    let below = spawn(&mut tree, program);
    assert_eq!(granted(&tree, below), (Some(2 * DOLLAR), false));
    // The operator's own pieces have what the operator gives them.
    tree.runtime = free;
    let piece = tree.spawn_as(0, &asks(100 * DOLLAR), Origin::Piece).expect("it is asked for");
    assert_eq!(granted(&tree, piece), (Some(100 * DOLLAR), false));
    // A budget that is asked for is a promise, which cannot be kept for what is unknown.
    tree.runtime = RuntimeFacts { cost: CostKnowledge::Unknown, ..costly() };
    let refused = tree.ask(0, &asks(DOLLAR / 4), Origin::Agent).expect_err("it is unknown");
    assert_eq!(refused.code, RefusalCode::CostUnbounded);
}

#[test]
fn a_budget_takes_the_place_of_what_is_allowed_without_one() {
    // Of the tree.
    let mut bounded = tree("budget = { usd = 20 }\n");
    let child = spawn(&mut bounded, 0);
    assert_eq!(granted(&bounded, child), (Some(10 * DOLLAR), false));
    // Of the agent, by its definition.
    let mut bounded = tree(
        "allowAgents = [\"*\"]\n[[agents.list]]\nid = \"big\"\n[agents.list.subagents.budget]\nusd = 7\n",
    );
    let child = bounded.spawn(0, &ask("big")).expect("its budget is its own");
    assert_eq!(granted(&bounded, child), (Some(7 * DOLLAR), false));
    let other = spawn(&mut bounded, 0);
    assert_eq!(granted(&bounded, other), (Some(2_500_000), true));
    // A budget of tokens bounds no dollars.
    let mut bounded = tree("budget = { tokens = 1000 }\n");
    let child = bounded.spawn(0, &SpawnRequest { budget: tokens(100), ..ask("main") });
    assert_eq!(granted(&bounded, child.expect("it is left")), (Some(2_500_000), true));
    let next = spawn(&mut bounded, 0);
    assert_eq!(granted(&bounded, next), (Some(1_250_000), true));
    let asks = SpawnRequest { budget: tokens(1_000), ..ask("main") };
    let refused = bounded.ask(0, &asks, Origin::Agent).expect_err("so many are not left");
    assert!(refused.message.contains("tokens"), "{}", refused.message);
    // Of what is unknown nothing is said, and a piece draws from no pool.
    let mut unknown = tree("");
    unknown.runtime = RuntimeFacts { cost: CostKnowledge::Unknown, ..costly() };
    let child = spawn(&mut unknown, 0);
    assert_eq!(granted(&unknown, child), (None, false));
    unknown.runtime = costly();
    let piece = SpawnRequest { agent: Some(agent("main")), ..ask("main") };
    let piece = unknown.spawn_as(0, &piece, Origin::Piece).expect("it is left");
    assert_eq!(granted(&unknown, piece), (Some(2_500_000), true));
    assert!(unknown.sessions[piece].admission.grant.pooled.is_none());
}

/// A limit that was not asked for refuses no program whose cost is unknown.
#[test]
fn what_is_unknown_runs_below_an_agent_that_has_dollars_by_default() {
    let mut tree = tree("");
    let child = spawn(&mut tree, 0);
    tree.runtime = RuntimeFacts { cost: CostKnowledge::Unknown, ..costly() };
    let below = spawn(&mut tree, child);
    assert_eq!(granted(&tree, below), (Some(1_250_000), false));
    // Of children that are asked for together each is given a part by name.
    let part = SpawnRequest { budget: usd(DOLLAR / 4), ..ask("main") };
    let below = tree.spawn(child, &part).expect("nothing was asked for by an agent");
    assert_eq!(granted(&tree, below), (Some(DOLLAR / 4), false));
    let budget = "budget = { usd = 20 }\n";
    let bounded = self::tree(budget);
    let bounded = Tree { runtime: tree.runtime, ..bounded };
    let refused = bounded.ask(0, &ask("main"), Origin::Agent).expect_err("it was asked for");
    assert_eq!(refused.code, RefusalCode::CostUnbounded);
}
