//! Pieces of a tree that is over, as its record tells of them.

use std::collections::{HashMap, HashSet};

use offshoot_audit::{Audit, Unit};
use offshoot_model::{EventKind, Reason, RootId, RunId};

use super::{exit_of, is_stopped};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::work::engine::Engine;
use crate::work::larger_budget::{enough, option};

/// The pieces of a tree that have no answer.
#[derive(Debug, Default)]
pub(crate) struct Unanswered {
    /// The exit code that their ends call for; none where all have an answer.
    pub(crate) exit: Option<Exit>,
    /// The option that gives the tree a larger budget, where one has ended some of them.
    pub(crate) larger: Option<String>,
}

/// Reads how the pieces of a tree ended.
pub(crate) fn unanswered(engine: &Engine, root: RootId) -> Result<Unanswered, Failure> {
    let mut audit = Audit::new();
    let mut ends = HashMap::<RunId, Option<Reason>>::new();
    for event in engine.store.events(root, 0) {
        let event = event?;
        match &event.kind {
            EventKind::Admitted(admitted) if admitted.parent == Some(root.run()) => {
                ends.insert(event.run, None);
            }
            EventKind::Ended(ending) => {
                if let Some(end) = ends.get_mut(&event.run) {
                    *end = Some(ending.reason.clone());
                }
            }
            _ => {}
        }
        audit.apply(&event);
    }
    let is_answer = |reason: &Reason| reason.status().is_success();
    let all = ends.values().flatten();
    let (answered, failed): (Vec<&Reason>, Vec<&Reason>) = all.partition(|it| is_answer(it));
    let codes: HashSet<Exit> = failed.iter().map(|reason| exit_of(reason.code())).collect();
    let exit = match codes.contains(&Exit::Stopped) {
        true => Some(Exit::Stopped),
        false if codes.len() > 1 => Some(Exit::AgentFailed),
        false => codes.into_iter().next(),
    };
    let asked = failed.iter().filter_map(|reason| match reason {
        Reason::Budget { unit, request } => Some((unit, request.map_or(0, |it| it.bound))),
        Reason::BudgetPool { unit, asked, .. } => Some((unit, *asked)),
        _ => None,
    });
    let asked = asked.max_by_key(|(_, amount)| *amount);
    let larger = asked.and_then(|(unit, asked)| {
        let unit = if unit == "usd" { Unit::MicroUsd } else { Unit::Tokens };
        let accounts = audit.balance(root.run());
        let account = accounts.iter().find(|account| account.unit == unit)?;
        let used = u64::try_from(account.used + account.overrun).unwrap_or(u64::MAX);
        // What was stopped may not have begun.
        let have_run = failed.iter().filter(|reason| !is_stopped(reason.code())).count();
        let each = used.checked_div((answered.len() + have_run) as u64).unwrap_or(0).max(asked);
        Some(option(unit, enough(account.granted, used, each, failed.len())))
    });
    Ok(Unanswered { exit, larger })
}
