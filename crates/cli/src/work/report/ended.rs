//! Pieces of a tree that is over, as its record tells of them.

use std::collections::{BTreeMap, HashMap, HashSet};

use offshoot_audit::{Audit, Unit};
use offshoot_model::{EventKind, Reason, RootId, RunId};

use super::{exit_of, is_stopped};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::work::engine::Engine;
use crate::work::larger_budget::larger;

/// The pieces of a tree that have no answer.
#[derive(Debug, Default)]
pub(crate) struct Unanswered {
    /// The exit code that their ends call for; none where all have an answer.
    pub(crate) exit: Option<Exit>,
    /// The option that gives the tree a larger budget, where one has ended some of them.
    pub(crate) larger: Option<String>,
}

/// Reads how the pieces of a tree ended; of pieces with a label alone, where one is given.
pub(crate) fn unanswered(
    engine: &Engine,
    root: RootId,
    only: Option<&str>,
) -> Result<Unanswered, Failure> {
    let mut audit = Audit::new();
    // The last run of each place.
    let mut runs = BTreeMap::<u32, RunId>::new();
    let mut ends = HashMap::<RunId, Reason>::new();
    for event in engine.store.events(root, 0) {
        let event = event?;
        match &event.kind {
            EventKind::Admitted(admitted) if admitted.parent == Some(root.run()) => {
                let is_chosen = only.is_none() || admitted.label.as_deref() == only;
                if let Some(place) = admitted.place.filter(|_| is_chosen) {
                    runs.insert(place, event.run);
                }
            }
            EventKind::Ended(ending) => {
                ends.insert(event.run, ending.reason.clone());
            }
            _ => {}
        }
        audit.apply(&event);
    }
    let is_answer = |reason: &&Reason| reason.status().is_success();
    let last = runs.values().filter_map(|run| ends.get(run));
    let (answered, failed): (Vec<&Reason>, Vec<&Reason>) = last.partition(is_answer);
    let codes: HashSet<Exit> = failed.iter().map(|reason| exit_of(reason.code())).collect();
    let exit = match codes.contains(&Exit::Stopped) {
        true => Some(Exit::Stopped),
        false if codes.len() > 1 => Some(Exit::AgentFailed),
        false => codes.into_iter().next(),
    };
    // What was stopped may not have begun.
    let have_run = failed.iter().filter(|reason| !is_stopped(reason.code())).count();
    let larger = [Unit::MicroUsd, Unit::Tokens].into_iter().find_map(|unit| {
        let word = if unit == Unit::MicroUsd { "usd" } else { "tokens" };
        let asked = failed.iter().filter_map(|reason| match reason {
            Reason::Budget { unit, request } if unit == word => {
                Some(request.map_or(0, |it| it.bound))
            }
            Reason::BudgetPool { unit, asked, .. } if unit == word => Some(*asked),
            _ => None,
        });
        let asked = asked.max()?;
        let accounts = audit.balance(root.run());
        let account = accounts.iter().find(|account| account.unit == unit)?;
        Some(larger(account, (answered.len() + have_run) as u64, (asked, 0), failed.len()))
    });
    Ok(Unanswered { exit, larger })
}
