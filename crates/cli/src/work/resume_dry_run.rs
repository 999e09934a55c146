//! `resume --dry-run`: what would run.

use std::collections::HashMap;

use offshoot_display::neutral;
use offshoot_display::number::{self, count, many};
use offshoot_host::Abandoned;
use offshoot_model::{BudgetGrant, MicroUsd, RootId, TokenCount};
use offshoot_policy::budget::{Balance, Unit};
use offshoot_spawner::Piece;
use serde::Serialize;
use serde_json::json;

use super::plan::Plan;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::wording;

/// The budget of a tree before it goes on, in the units that it bounds.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct BudgetLeft {
    /// The whole.
    granted: BudgetGrant,
    used: BudgetGrant,
    /// Held for runs that are not over. What their last attempts have used of it is not known, and is charged when the tree goes on.
    reserved: BudgetGrant,
    left: BudgetGrant,
}

impl BudgetLeft {
    /// Returns what a tree has; none where no budget bounds it.
    fn of(tree: &Abandoned) -> Option<Self> {
        let mut all = Self::default();
        let units = tree.budget();
        for (unit, balance) in &units {
            let Balance { granted, used, overrun, reserved, free, deficit: _ } = *balance;
            let set = |of: &mut BudgetGrant, amount: u128| {
                let amount = u64::try_from(amount).unwrap_or(u64::MAX);
                match unit {
                    Unit::Tokens => of.tokens = Some(amount),
                    Unit::Usd => of.usd = Some(MicroUsd::from_micros(amount)),
                }
            };
            set(&mut all.granted, granted.unwrap_or(0).into());
            set(&mut all.used, used + overrun);
            set(&mut all.reserved, reserved);
            set(&mut all.left, free.unwrap_or(0));
        }
        (!units.is_empty()).then_some(all)
    }

    /// Returns a line for each unit.
    fn lines(&self) -> Vec<String> {
        let show = |unit: Unit, of: BudgetGrant| match unit {
            Unit::Tokens => of.tokens.map(|tokens| number::tokens(TokenCount::Known(tokens))),
            Unit::Usd => of.usd.map(number::exact_dollars),
        };
        let all = [self.granted, self.used, self.reserved, self.left];
        let of = |unit: Unit| all.map(|of| show(unit, of).unwrap_or_default());
        let lines = Unit::ALL.map(of).into_iter().filter(|[granted, ..]| !granted.is_empty());
        lines.map(|left| format!("  budget: {}", wording::budget_left(left))).collect()
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
    let goes_on = tree.root_goes_on();
    let planned = json!({
        "root": root, "agent": agent, "runtime": runtime, "goesOn": goes_on, "budget": budget,
    });
    cx.output.result(&planned, || {
        cx.output.line(match goes_on {
            true => format!("would go on: tree {root}, the agent {agent} on {runtime}"),
            false => format!(
                "would end: tree {root}, because the agent {agent} was cut off and {runtime} cannot go on where it was"
            ),
        })?;
        budget.iter().flat_map(BudgetLeft::lines).try_for_each(|line| cx.output.line(line))
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
            "would go on: tree {root}\n  run: {} of {} pieces\n  kept: {}\n  stay without an answer: {}",
            number(again.len()),
            number(pieces.len()),
            many(kept as u64, "answer"),
            number(without),
        ))?;
        budget.iter().flat_map(BudgetLeft::lines).try_for_each(|line| cx.output.line(line))?;
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
