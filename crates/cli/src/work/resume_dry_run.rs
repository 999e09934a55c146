//! `resume --dry-run`: what would run.

use std::collections::HashMap;

use offshoot_display::neutral;
use offshoot_display::number::{count, dollars};
use offshoot_host::Abandoned;
use offshoot_model::{MicroUsd, RootId};
use offshoot_policy::budget::{Balance, Unit};
use offshoot_spawner::Piece;
use serde::Serialize;
use serde_json::json;

use super::plan::Plan;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// The budget of a tree in one unit, before it goes on.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct BudgetLeft {
    /// `tokens` or `usd`; amounts of dollars are in millionths.
    unit: &'static str,
    granted: u64,
    used: u64,
    /// Reserved for runs that had begun. What their last attempts have used of it is not known, and is charged when the tree goes on.
    reserved: u64,
    free: u64,
}

impl BudgetLeft {
    /// Returns what a tree has in each unit that a budget bounds.
    fn of(tree: &Abandoned) -> Vec<Self> {
        let amount = |amount: u128| u64::try_from(amount).unwrap_or(u64::MAX);
        let left = |(unit, balance): (Unit, Balance)| {
            let Balance { granted, used, overrun, reserved, free, deficit: _ } = balance;
            Some(Self {
                unit: unit.as_str(),
                granted: granted?,
                used: amount(used + overrun),
                reserved: amount(reserved),
                free: amount(free?),
            })
        };
        tree.budget().into_iter().filter_map(left).collect()
    }

    fn line(&self) -> String {
        let show = |amount: u64| match self.unit {
            "usd" => dollars(MicroUsd::from_micros(amount)),
            _ => format!("{} tokens", count(amount)),
        };
        let [granted, used, reserved, free] =
            [self.granted, self.used, self.reserved, self.free].map(show);
        let held = match self.reserved {
            0 => String::new(),
            _ => format!(", {reserved} are reserved for runs that had begun"),
        };
        format!("  budget: {used} of {granted} are used{held}, {free} are left")
    }
}

/// Says in JSON that nothing of a tree would run, of which so many runs did not complete. People are told it beside the result.
pub(super) fn nothing_would_run(
    root: RootId,
    without: usize,
    cx: &Invocation,
) -> Result<Exit, Failure> {
    let nothing: [&str; 0] = [];
    let planned = json!({ "root": root, "run": nothing, "without": without });
    cx.output.result(&planned, || Ok(()))?;
    Ok(Exit::Done)
}

/// `--dry-run` of a tree whose root is an agent.
pub(super) fn would_go_on(plan: &Plan, tree: &Abandoned, cx: &Invocation) -> Result<Exit, Failure> {
    let (agent, runtime, root) = (&plan.agent, &plan.runtime, tree.root());
    let budget = BudgetLeft::of(tree);
    let planned = json!({ "root": root, "agent": agent, "runtime": runtime, "budget": budget });
    cx.output.result(&planned, || {
        cx.output.line(format_args!("would go on: tree {root}, the agent {agent} on {runtime}"))?;
        budget.iter().try_for_each(|left| cx.output.line(left.line()))
    })?;
    Ok(Exit::Done)
}

/// `--dry-run` of a tree of pieces: those that would run.
pub(super) fn would_run(
    tree: &Abandoned,
    root: RootId,
    pieces: &[Piece],
    cx: &Invocation,
) -> Result<Exit, Failure> {
    /// As many pieces are named to people.
    const NAMED: usize = 20;
    let staying: HashMap<u32, bool> = tree.staying().into_iter().collect();
    let only = tree.only().map(|only| &**only);
    let label = |(place, piece): (usize, &Piece)| match &piece.request.label {
        Some(label) => label.to_string(),
        None => format!("piece {}", place + 1),
    };
    let runs = |(place, piece): &(usize, &Piece)| {
        let is_wanted = only.is_none() || piece.request.label.as_deref() == only;
        is_wanted && u32::try_from(*place).is_ok_and(|place| !staying.contains_key(&place))
    };
    let again: Vec<String> = pieces.iter().enumerate().filter(runs).map(label).collect();
    let has_answer = |place: usize| {
        u32::try_from(place).is_ok_and(|place| staying.get(&place).copied().unwrap_or(false))
    };
    let left = pieces.iter().enumerate().filter(|it| !runs(it) && !has_answer(it.0));
    let left: Vec<String> = left.map(label).collect();
    let kept = staying.values().filter(|has_answer| **has_answer).count();
    let without = pieces.len().saturating_sub(again.len() + kept);
    let budget = BudgetLeft::of(tree);
    let planned = json!({
        "root": root, "pieces": pieces.len(), "run": again, "kept": kept, "without": without, "budget": budget,
    });
    cx.output.result(&planned, || {
        let number = |many: usize| count(many as u64);
        cx.output.line(format_args!(
            "would go on: tree {root}\n  run: {} of {} pieces\n  kept: {} answers\n  stay without an answer: {}",
            number(again.len()),
            number(pieces.len()),
            number(kept),
            number(without),
        ))?;
        budget.iter().try_for_each(|left| cx.output.line(left.line()))?;
        for label in again.iter().take(NAMED) {
            cx.output.line(format_args!("  {}", neutral::line(label)))?;
        }
        match again.len().saturating_sub(NAMED) {
            0 => {}
            more => cx.output.line(format_args!("  {} more", number(more)))?,
        }
        match left.as_slice() {
            [] => Ok(()),
            left => {
                let named: Vec<_> = left.iter().take(NAMED).map(|label| neutral::line(label)).collect();
                let more = if left.len() > NAMED { ", …" } else { "" };
                cx.output.line(format_args!(
                    "without an answer stay: {}{more}\n  --failed takes those that failed, --cancelled those that were cancelled or never started",
                    named.join(", ")
                ))
            }
        }
    })?;
    Ok(Exit::Done)
}
