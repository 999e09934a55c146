//! The use of a run, as its runtime tells it or says nothing of it.

use std::sync::Arc;

use offshoot_model::{Cost, CostKnowledge, Ending, EventKind, MicroUsd, Reason, Usage};
use offshoot_policy::RuntimeFacts;
use offshoot_runtime::RunEvent;

use super::super::{Input, Outcome};
use super::limits::Limits;
use super::world::{World, tokens};

type Use = (Usage, Cost);

const NOT_KNOWN: Use = (Usage::UNKNOWN, Cost { unknown_runs: 1, ..Cost::NONE });
const COMPLETED: Reason = Reason::Completed { exit_code: None };
const KILLED: Reason = Reason::Signal { signal: 15 };

fn nothing() -> Use {
    (Usage::default(), Cost::NONE)
}

fn dollars(count: u64) -> Cost {
    Cost { known_usd: MicroUsd::from_micros(count * 1_000_000), ..Cost::NONE }
}

/// Returns what is on record of a run whose runtime has such a cost, has told this while it ran, and says this at its end.
fn used(cost: CostKnowledge, told: Option<Use>, reason: Reason, said: Option<Use>) -> Use {
    let mut world = World::quiet(Limits::default());
    let unasked_cost = CostKnowledge::Unknown;
    world.facts = Arc::new(RuntimeFacts { cost, unasked_cost, ..(*world.facts).clone() });
    let run = world.spawn_piece();
    if let Some((usage, cost)) = told {
        world.tells(run, RunEvent::Used { usage, cost });
    }
    world.actors.remove(&run).expect("it runs");
    let (usage, cost) = said.unzip();
    let outcome = Outcome { usage, cost, ..Outcome::from(Ending::of(reason)) };
    world.step(Input::Finished { run, outcome: Box::new(outcome) });
    let ended = world.record.iter().rev().find_map(|event| match &event.kind {
        EventKind::Ended(ending) => Some((ending.usage, ending.cost)),
        _ => None,
    });
    ended.expect("it has ended")
}

#[test]
fn what_a_run_has_told_counts_where_its_end_says_nothing() {
    let told = (tokens(10), dollars(1));
    let least = (tokens(10).cut_off(), dollars(1).cut_off());
    assert_eq!(used(CostKnowledge::Reported, Some(told), COMPLETED, None), told);
    assert_eq!(used(CostKnowledge::Reported, Some(told), KILLED, None), least);
    // A command that costs nothing may have used tokens since.
    let free = (tokens(10), Cost::NONE);
    let least = (tokens(10).cut_off(), Cost::NONE);
    assert_eq!(used(CostKnowledge::None, Some(free), COMPLETED, None), free);
    assert_eq!(used(CostKnowledge::None, Some(free), KILLED, None), least);
    assert_eq!(used(CostKnowledge::None, Some(nothing()), KILLED, None), nothing());
}

#[test]
fn nothing_is_known_of_a_run_that_told_nothing_unless_it_never_started() {
    let gone = Reason::CannotStart { message: "no such file".into() };
    for reason in [COMPLETED, KILLED] {
        assert_eq!(used(CostKnowledge::Reported, None, reason.clone(), None), NOT_KNOWN);
        assert_eq!(used(CostKnowledge::Metered, None, reason.clone(), None), NOT_KNOWN);
        assert_eq!(used(CostKnowledge::None, None, reason, None), nothing());
    }
    assert_eq!(used(CostKnowledge::Reported, None, gone.clone(), None), nothing());
    assert_eq!(used(CostKnowledge::Metered, None, gone, None), nothing());
}

#[test]
fn the_end_says_what_a_run_has_used_and_zeros_after_a_report_say_nothing() {
    let (told, more) = ((tokens(10), dollars(1)), (tokens(30), dollars(2)));
    let check = |told, said, expected| {
        assert_eq!(used(CostKnowledge::Reported, told, COMPLETED, Some(said)), expected);
    };
    check(None, more, more);
    check(Some(told), more, more);
    check(Some(told), nothing(), told);
    check(None, nothing(), nothing());
}
