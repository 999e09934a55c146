//! The record of an admission, and runs that are not admitted because no other runtime could take them over.

use std::sync::Arc;

use offshoot_config::{Loader, built_in};
use offshoot_model::{CostKnowledge, EventKind, Origin, RefusalCode, SpawnRequest};
use offshoot_policy::RuntimeFacts;

use super::super::RunIndex;
use super::agents::Behaviour;
use super::limits::{Limits, Own};
use super::world::World;

#[test]
fn a_root_is_archived_after_the_minutes_that_are_configured_and_never_after_none() {
    let archived_after = |minutes: Option<u64>| {
        let set = |loader: Loader, minutes: u64| {
            let key = "agents.defaults.subagents.archiveAfterMinutes";
            loader.flag(key.to_owned(), minutes.to_string(), "test")
        };
        let config = minutes.into_iter().fold(Loader::new(), set).load().expect("it is a number");
        let world = World::configured(0, Limits::default(), config, Behaviour::Quiet);
        match &world.record[0].kind {
            EventKind::Admitted(admitted) => admitted.archive_after_minutes,
            other => panic!("a record begins with the admission of its root, not {other:?}"),
        }
    };
    let found = [None, Some(0), Some(1), Some(90)].map(archived_after);
    assert_eq!(found, [Some(built_in::ARCHIVE_AFTER_MINUTES), None, Some(1), Some(90)]);
}

#[test]
fn the_rules_of_a_run_are_on_record_where_they_differ_from_those_above() {
    let own = Own { max_concurrent: Some(2), ..Own::default() };
    let agents = [own, Own::default(), Own::default()];
    let mut world = World::quiet(Limits { agents, ..Limits::default() });
    let [piece, other] = ["a", "b"].map(|agent| world.spawn_agent(RunIndex::ROOT, agent));
    let child = world.spawn_agent(piece, "b");
    let found = [piece, other, child].map(|run| {
        let rules = world.ledger.admitted(world.id(run)).rules.as_deref();
        rules.map(|rules| rules.max_concurrent)
    });
    assert_eq!(found, [Some(2), None, None]);
}

#[test]
fn a_run_is_refused_where_another_runtime_that_is_named_for_it_could_not_keep_its_budget() {
    let mut world =
        World::quiet(Limits { budget_usd: Some(1), falls_back: true, ..Limits::default() });
    let piece = |world: &mut World| {
        world.spawn(RunIndex::ROOT, Origin::Piece, SpawnRequest::default()).err()
    };
    assert_eq!(piece(&mut world), None);
    let unknown = RuntimeFacts { cost: CostKnowledge::Unknown, ..(*world.other_facts).clone() };
    world.other_facts = Arc::new(unknown);
    assert_eq!(piece(&mut world), Some(RefusalCode::CostUnbounded));
}
