//! Budgets and breakers, asked where runs are admitted.

use std::time::Duration;

use offshoot_model::{
    BudgetGrant, Cost, CostKnowledge, Ending, MicroUsd, Origin, Payload, Reason, RefusalCode,
    SpawnRequest, TokenCount, Usage,
};
use offshoot_policy::RuntimeFacts;
use offshoot_policy::breaker::{BreakerLimits, Gate};
use offshoot_policy::budget::Unit;

use crate::tree::{Tree, agent, ask, at, paid, run, tokens};

const OPEN: &str = "[agents.defaults.subagents]\nallowRecursiveSpawn = true\nmaxDepth = 10\n";

fn tree(limits: &str) -> Tree {
    Tree::new(&format!("{OPEN}{limits}"))
}

fn used(tokens: u64) -> Usage {
    Usage { input: TokenCount::Known(tokens), ..Usage::default() }
}

fn completed(tokens: u64) -> Ending {
    Ending { usage: used(tokens), ..Ending::completed(Payload::text("done")) }
}

/// A task that no other run has.
fn part(number: usize) -> SpawnRequest {
    SpawnRequest { task: format!("part {number}").into(), ..ask("main") }
}

#[test]
fn breaker_and_budget_at_admission() {
    let mut tree = tree("budget = { tokens = 1000 }\n");
    // Asking reserves nothing; what is reserved is there before the next question.
    for _ in 0..3 {
        let admission = tree.ask(0, &ask("main"), Origin::Agent).expect("the request was refused");
        assert_eq!(admission.grant.budget.tokens, Some(500));
    }
    let first = tree.spawn(0, &ask("main")).expect("the spawn was refused");
    let second = tree.spawn(0, &ask("main")).expect("the spawn was refused");
    let granted = |session: usize| tree.sessions[session].admission.grant.budget.tokens;
    assert_eq!((granted(first), granted(second)), (Some(500), Some(250)));

    let limits = BreakerLimits { failures: 3, cooldown: Duration::from_secs(60) };
    let fault = Reason::CannotStart { message: "not found".into() };
    for number in 0..3 {
        assert!(tree.ask(0, &ask("main"), Origin::Agent).is_ok(), "{number} faults");
        tree.books.breakers.ended(&agent("main"), run(number), &fault, limits, at(0));
    }
    for (second, answer) in [(0, Some(RefusalCode::BreakerOpen)), (60, None)] {
        tree.now = at(second);
        let code = tree.ask(0, &ask("main"), Origin::Agent).err().map(|refusal| refusal.code);
        assert_eq!(code, answer, "after {second} s");
    }
    // Pieces of the operator's own are held to both as well.
    tree.books.breakers.start(&agent("main"), run(9), at(60));
    let refusal = tree.ask(0, &ask("main"), Origin::Piece).expect_err("one probe at a time");
    assert_eq!(refusal.code, RefusalCode::BreakerOpen);
    assert_eq!(tree.books.breakers.gate(&agent("main"), at(60)), Gate::Probing { probe: run(9) });
    let request = SpawnRequest { budget: tokens(251), ..ask("main") };
    let refusal = tree.ask(0, &request, Origin::Piece).expect_err("too much");
    assert_eq!(refusal.code, RefusalCode::BudgetExhausted);
}

#[test]
fn a_budget_of_zero_is_zero() {
    let check = |limits: &str,
                 budget,
                 runtime: RuntimeFacts,
                 expected: Result<Option<u64>, RefusalCode>| {
        let mut tree = Tree::open(
            crate::tree::config(&format!("{OPEN}{limits}")),
            "main",
            RuntimeFacts::of_a_command("exec"),
        )
        .expect("a command may stand at the top");
        tree.runtime = runtime;
        let request = SpawnRequest { budget, ..ask("main") };
        let found = tree.ask(0, &request, Origin::Agent);
        let found = found.map(|admission| admission.grant.budget.tokens);
        assert_eq!(found.map_err(|refusal| refusal.code), expected, "{limits} {budget:?}");
    };
    let exec = || RuntimeFacts::of_a_command("exec");
    let claude = || paid(CostKnowledge::Reported);
    let refused = Err(RefusalCode::BudgetExhausted);
    check("", None, claude(), Ok(None));
    check("budget = { tokens = 0 }\n", None, claude(), refused);
    check("budget = { tokens = 0 }\n", tokens(0), claude(), refused);
    check("budget = { tokens = 0 }\n", tokens(1), claude(), refused);
    check("budget = { tokens = 1 }\n", None, claude(), refused);
    check("budget = { tokens = 2 }\n", None, claude(), Ok(Some(1)));
    check("", tokens(0), claude(), refused);
    check("budget = { tokens = 9, share = 0 }\n", None, claude(), refused);
    // What costs nothing runs under a budget of zero, and may not spend it either.
    check("budget = { tokens = 0 }\n", None, exec(), Ok(Some(0)));
    check("", tokens(0), exec(), Ok(Some(0)));
}

#[test]
fn a_budget_that_was_raised_pays_for_more() {
    let check = |limits: &str, added: u64, expected: Result<Option<u64>, RefusalCode>| {
        let agents =
            "[[agents.list]]\nid = \"small\"\n[agents.list.subagents.budget]\ntokens = 5\n";
        let allowed = "allowAgents = [\"*\"]\n";
        let config = crate::tree::config(&format!("{agents}{OPEN}{allowed}{limits}"));
        let exec = RuntimeFacts::of_a_command("exec");
        let mut tree = Tree::open(config, "main", exec).expect("a command may stand at the top");
        tree.runtime = paid(CostKnowledge::Reported);
        tree.books.ledger.raise(run(0), BudgetGrant { tokens: Some(added), usd: None });
        let found = tree.ask(0, &ask("main"), Origin::Agent);
        let found = found.map(|admission| admission.grant.budget.tokens);
        assert_eq!(found.map_err(|refusal| refusal.code), expected, "{limits} {added}");
        // What a child brings of its own stays as it is written.
        let small = tree.ask(0, &ask("small"), Origin::Agent).map(|it| it.grant.budget.tokens);
        let expected = expected.map(|tokens| tokens.map(|tokens| tokens.min(5)));
        assert_eq!(small.map_err(|refusal| refusal.code), expected, "{limits} {added}");
    };
    check("budget = { tokens = 0 }\n", 0, Err(RefusalCode::BudgetExhausted));
    check("budget = { tokens = 0 }\n", 1000, Ok(Some(500)));
    check("budget = { tokens = 8, share = 1 }\n", 0, Ok(Some(8)));
    check("budget = { tokens = 8, share = 1 }\n", 92, Ok(Some(100)));
    let unbounded = tree("").ask(0, &ask("main"), Origin::Agent).expect("it is unbounded");
    assert_eq!(unbounded.grant.budget.tokens, None);
}

#[test]
fn an_empty_budget_is_not_an_endless_one() {
    let mut tree = tree("budget = { tokens = 100, share = 1 }\n");
    tree.spawn(0, &part(1)).expect("everything");
    assert_eq!(tree.books.ledger.left(run(0)).tokens, Some(0));
    let refusal = tree.spawn(0, &part(2)).expect_err("nothing is left");
    assert_eq!(refusal.code, RefusalCode::BudgetExhausted);
}

#[test]
fn three_children_cannot_spend_one_grant_thrice() {
    let mut tree = tree("budget = { tokens = 100000, share = 0.9 }\n");
    let children: Vec<usize> =
        (0..3).map(|number| tree.spawn(0, &part(number)).expect("the spawn was refused")).collect();
    let granted = |child: &usize| tree.sessions[*child].admission.grant.budget.tokens;
    let sum: u64 = children.iter().filter_map(granted).sum();
    assert_eq!(sum, 99_900);
    let runs: Vec<_> = children.iter().map(|&child| tree.sessions[child].run).collect();
    for run in runs {
        tree.books.ledger.settle(run, &completed(30_000));
    }
    let balance = tree.books.ledger.balance(run(0), Unit::Tokens).expect("an account");
    assert_eq!(balance.used + balance.overrun, 90_000);
}

#[test]
fn what_was_not_used_can_be_promised_again() {
    let mut tree = tree("budget = { tokens = 100, share = 1 }\n");
    let child = tree.spawn(0, &part(1)).expect("everything");
    tree.books.ledger.settle(tree.sessions[child].run, &completed(10));
    let next = tree.spawn(0, &part(2)).expect("the rest");
    assert_eq!(tree.sessions[next].admission.grant.budget.tokens, Some(90));
}

#[test]
fn commands_that_cannot_spawn_take_nothing_from_the_budget() {
    let mut tree = Tree::new("[agents.defaults.subagents]\nbudget = { tokens = 100 }\n");
    tree.runtime = RuntimeFacts::of_a_command("exec");
    for number in 0..10 {
        let child = tree.spawn(0, &part(number)).expect("the spawn was refused");
        assert_eq!(tree.sessions[child].admission.grant.budget.tokens, Some(0));
    }
    assert_eq!(tree.books.ledger.left(run(0)).tokens, Some(100));
}

#[test]
fn an_agents_own_budget_bounds_it_and_everything_below() {
    let text = "[agents.defaults.subagents]\nallowAgents = [\"*\"]\nallowRecursiveSpawn = true\n\
                [[agents.list]]\nid = \"a\"\nsubagents = { budget = { tokens = 100 } }\n";
    let mut tree = Tree::new(text);
    let granted =
        |tree: &Tree, session: usize| tree.sessions[session].admission.grant.budget.tokens;
    let a = tree.spawn(0, &ask("a")).expect("the spawn was refused");
    let below = tree.spawn(a, &ask("a")).expect("the spawn was refused");
    assert_eq!((granted(&tree, a), granted(&tree, below)), (Some(100), Some(50)));
    assert_eq!(tree.books.ledger.left(tree.sessions[a].run).tokens, Some(50));
    let request = SpawnRequest { budget: tokens(1000), ..part(1) };
    let request = SpawnRequest { agent: Some(agent("a")), ..request };
    let lowered = tree.ask(0, &request, Origin::Agent).expect("main has no budget");
    assert_eq!(lowered.grant.budget.tokens, Some(100));
}

#[test]
fn all_that_is_left_can_be_asked_for() {
    let tree = tree("budget = { tokens = 100 }\n");
    let asked = |amount| {
        let request = SpawnRequest { budget: tokens(amount), ..ask("main") };
        tree.ask(0, &request, Origin::Agent).map(|child| child.grant.budget.tokens)
    };
    assert_eq!(asked(100), Ok(Some(100)));
    assert_eq!(asked(101).map_err(|refusal| refusal.code), Err(RefusalCode::BudgetExhausted));
}

#[test]
fn a_budget_that_was_raised_lifts_no_value_of_the_defaults() {
    let text = "[agents.defaults.subagents]\nallowAgents = [\"*\"]\nbudget = { tokens = 10, share = 1 }\n\
                [[agents.list]]\nid = \"main\"\nsubagents = { budget = { tokens = 1000 } }\n\
                [[agents.list]]\nid = \"a\"\n";
    let mut tree = Tree::new(text);
    tree.books.ledger.raise(run(0), BudgetGrant { tokens: Some(100), usd: None });
    let granted = |target| {
        let child = tree.ask(0, &ask(target), Origin::Agent).expect("the request was refused");
        child.grant.budget.tokens
    };
    assert_eq!((granted("a"), granted("main")), (Some(10), Some(1100)));
}

#[test]
fn a_budget_that_was_raised_is_not_lowered_by_a_value_that_a_flag_has_replaced() {
    let check = |unit: Unit, flag: &str, [before, after]: [u64; 2]| {
        let key = unit.as_str();
        let text = format!(
            "{OPEN}allowAgents = [\"*\"]\nallowCycles = true\nbudget.share = 1\n[[agents.list]]\nid = \"a\"\n\
             [[agents.list]]\nid = \"main\"\nsubagents.budget.{key} = 0.00001\n"
        );
        let text = if unit == Unit::Tokens { text.replace("0.00001", "10") } else { text };
        let budget = format!("agents.defaults.subagents.budget.{key}");
        let config = crate::tree::loader(&text).flag(budget, flag, "test").load();
        let config = config.expect("the configuration of a test is right");
        let paid = paid(CostKnowledge::Reported);
        let mut tree = Tree::open(config, "main", paid).expect("it may open");
        let a = tree.spawn(0, &ask("a")).expect("the spawn was refused");
        let granted = |tree: &Tree| {
            let child = tree.ask(a, &ask("main"), Origin::Agent).expect("the request was refused");
            unit.of(child.grant.budget)
        };
        assert_eq!(granted(&tree), Some(before), "{unit:?} {flag}");
        tree.books.ledger.raise(tree.sessions[a].run, unit.amount(100));
        assert_eq!(granted(&tree), Some(after), "{unit:?} {flag}");
    };
    check(Unit::Tokens, "1000", [1000, 1100]);
    check(Unit::Tokens, "5", [5, 105]);
    check(Unit::Usd, "0.001", [1000, 1100]);
    check(Unit::Usd, "0.000005", [5, 105]);
}

#[test]
fn a_piece_that_asks_for_nothing_draws_from_a_pool() {
    // Tokens and dollars that are granted, and whether each is drawn from the pool.
    type Granted = ([Option<u64>; 2], [bool; 2]);
    let check = |limits: &str, budget, runtime, origin, expected: Result<Granted, RefusalCode>| {
        let exec = RuntimeFacts::of_a_command("exec");
        let text = format!("[agents.defaults.subagents]\n{limits}");
        let mut tree = Tree::open(crate::tree::config(&text), "main", exec).expect("it may open");
        tree.runtime = runtime;
        let found = tree.ask(0, &SpawnRequest { budget, ..ask("main") }, origin).map(|child| {
            let grant = &child.grant;
            let budget = [grant.budget.tokens, grant.budget.usd.map(MicroUsd::as_micros)];
            (budget, [grant.pooled.tokens, grant.pooled.usd])
        });
        let found = found.map_err(|refusal| refusal.code);
        assert_eq!(found, expected, "{limits} {budget:?} {origin:?}");
    };
    let (exec, claude) = (|| RuntimeFacts::of_a_command("exec"), || paid(CostKnowledge::Reported));
    let hundred = "budget = { tokens = 100 }\n";
    check(hundred, None, claude(), Origin::Piece, Ok(([Some(0), None], [true, false])));
    check(hundred, None, claude(), Origin::Agent, Ok(([Some(50), None], [false, false])));
    check(hundred, tokens(30), claude(), Origin::Piece, Ok(([Some(30), None], [false, false])));
    let both = "budget = { tokens = 100, usd = 1 }\n";
    check(both, None, claude(), Origin::Piece, Ok(([Some(0), Some(0)], [true, true])));
    let granted = [Some(30), Some(0)];
    check(both, tokens(30), claude(), Origin::Piece, Ok((granted, [false, true])));
    let half = "budget = { tokens = 100, share = 0.5 }\n";
    check(half, None, claude(), Origin::Piece, Ok(([Some(50), None], [false, false])));
    check("", None, claude(), Origin::Piece, Ok(([None, None], [false, false])));
    // A pool of nothing pays for nothing, and what costs nothing needs none.
    let zero = "budget = { tokens = 0 }\n";
    check(zero, None, claude(), Origin::Piece, Err(RefusalCode::BudgetExhausted));
    check(hundred, None, exec(), Origin::Piece, Ok(([Some(0), None], [false, false])));
}

#[test]
fn both_units_are_reserved_or_none() {
    let mut tree = tree("budget = { tokens = 100, usd = 1 }\n");
    let child = tree.spawn(0, &part(1)).expect("the spawn was refused");
    let grant = tree.sessions[child].admission.grant.budget;
    assert_eq!(grant.tokens, Some(50));
    assert_eq!(grant.usd, Some(MicroUsd::from_micros(500_000)));
    let cost = Cost::known(MicroUsd::from_micros(600_000));
    tree.books.ledger.charge(run(0), &Usage::default(), &cost);
    let refusal = tree.spawn(0, &part(2)).expect_err("no dollars");
    assert_eq!(refusal.code, RefusalCode::BudgetExhausted);
    assert_eq!(tree.books.ledger.left(run(0)).tokens, Some(50), "no tokens were taken");
}

#[test]
fn an_unknown_cost_can_be_allowed() {
    let mut tree = tree("budget = { usd = 1, allowUnknownCost = true }\n");
    tree.runtime = paid(CostKnowledge::Unknown);
    let child = tree.spawn(0, &part(1)).expect("allowed");
    // It stays unknown, so all that was set aside for it is gone.
    let ending = Ending { cost: Cost::unknown(), ..completed(5) };
    tree.books.ledger.settle(tree.sessions[child].run, &ending);
    let balance = tree.books.ledger.balance(run(0), Unit::Usd).expect("an account");
    assert_eq!(balance.used, 500_000);
}
