//! The way on with a map or a fanout whose answer is not whole: what is kept, what to type, and the budget that is used up.

use std::collections::BTreeMap;

use offshoot_audit::{Account, Audit, Unit};
use offshoot_merge::MergeError;
use offshoot_model::{CancelledBy, EventKind, Reason, RefusalCode, RootId, RunId};
use offshoot_spawner::FanAnswer;

use super::super::engine::Engine;
use super::super::larger_budget::larger;
use super::super::pieces::AnswerRules;
use super::is_stopped;
use crate::code::NoteCode;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::wording;

/// Names the tree, and what can be done with it where its answer is not whole.
pub(super) fn tell_how_to_go_on(
    answer: &FanAnswer,
    terms: &AnswerRules,
    interrupted: bool,
    (id, reason, spent): (RunId, &Reason, &Spent),
    cx: &Invocation,
) {
    let (completed, total) = (answer.completed, answer.total);
    let word = if interrupted { "interrupted: " } else { "" };
    let done = match total {
        // A merge of earlier results.
        0 => format!("{word}tree {id}"),
        _ => format!("{word}{completed} of {total} pieces completed, tree {id}"),
    };
    cx.output.note(NoteCode::PiecesCompleted, done);
    if interrupted {
        let strategy = &terms.merging;
        let merge = match completed {
            0 => String::new(),
            _ => format!(", `offshoot merge --strategy {strategy} --children {id}` merges it"),
        };
        let failed = match answer.failed.keys().any(|code| !is_stopped(code)) {
            true => ", with `--failed --cancelled` also with what had failed",
            false => "",
        };
        cx.output.hint(NoteCode::HowToGoOn, format_args!(
            "what is done is kept: `offshoot resume {id}` goes on with the rest{failed}, `offshoot tree {id}` shows it{merge}"
        ));
    } else if let (Err(MergeError::NotAnswered { .. }), 0) = (&answer.verdict, total) {
        let again = format_args!("`offshoot resume {id} --failed` asks again");
        cx.output.hint(NoteCode::HowToGoOn, again);
    } else if let Err(MergeError::NotAnswered { .. }) = &answer.verdict {
        cx.output.hint(NoteCode::HowToGoOn, format_args!(
            "the results are kept: `offshoot resume {id} --failed` asks again, `offshoot merge --children {id} --strategy STRATEGY` merges them in another way"
        ));
    } else if answer.is_success()
        && !answer.failed.is_empty()
        && not_paid(answer).is_none()
        && spent.unit.is_none()
    {
        let failed = answer.failed.keys().any(|code| !is_stopped(code));
        let stopped = answer.failed.keys().any(|code| is_stopped(code));
        let options = match (failed, stopped) {
            (_, false) => "--failed",
            (false, true) => "--cancelled",
            (true, true) => "--failed --cancelled",
        };
        cx.output.hint(NoteCode::HowToGoOn, format_args!(
            "`offshoot stats {id}` sums up why pieces have no answer, `offshoot resume {id} {options}` runs them again"
        ));
    } else if let Some(options) = options_to_go_on(answer, reason, spent) {
        cx.output.hint(
            NoteCode::HowToGoOn,
            format_args!(
                "what is done is kept: `offshoot resume {id}{options}` goes on with the rest"
            ),
        );
    }
    if answer.verdict.as_ref().is_err_and(MergeError::is_of_results) && total > 0 {
        cx.output.hint(NoteCode::HowToGoOn, format_args!(
            "the results are kept: `offshoot merge --children {id} --strategy STRATEGY` merges them in another way, and nothing runs again"
        ));
    }
}

/// Returns the options with which a tree that ended for this reason goes on; none where its answer stands.
fn options_to_go_on(answer: &FanAnswer, reason: &Reason, spent: &Spent) -> Option<String> {
    let is_for_money = not_paid(answer).is_some() || spent.unit.is_some();
    let refused_unit = refused_unit(answer);
    // All pieces were refused, and would be again.
    let has_begun = answer.completed > 0 || !answer.failed.is_empty() || refused_unit.is_some();
    if answer.missing() == 0 || !has_begun || answer.is_success() && !is_for_money {
        return None;
    }
    let mut options = String::new();
    // Pieces that were cancelled with their tree go on without an option.
    let has_failed =
        answer.failed.keys().any(|code| !is_stopped(code) && **code != *"not_recorded");
    let too_many_failed = *reason == (Reason::Cancelled { by: CancelledBy::MaxFail });
    if has_failed || too_many_failed {
        options.push_str(" --failed");
    }
    let was_stopped = !too_many_failed
        && answer.failed.keys().any(|code| matches!(&**code, "deadline" | "cancelled"));
    if has_failed && (was_stopped || matches!(reason, Reason::Deadline | Reason::Budget { .. })) {
        options.push_str(" --cancelled");
    }
    match (reason, &spent.larger) {
        (Reason::Deadline, _) => options.push_str(" --deadline 2h"),
        (_, Some(larger)) => options.extend([" ", larger]),
        (_, None) => {}
    }
    Some(options)
}

/// Returns what a piece says that was not started because too little was left of the budget that the pieces share.
fn not_paid(answer: &FanAnswer) -> Option<&str> {
    let mut errors = answer.failures.iter().filter_map(|(_, piece)| piece.error.as_ref());
    errors.find(|error| error.code == "budget_pool").map(|error| &*error.message)
}

/// Returns the unit of the budget of which a piece was refused its part.
fn refused_unit(answer: &FanAnswer) -> Option<Unit> {
    let refusals = answer.refused.iter().map(|piece| &piece.refusal);
    let mut refusals = refusals.filter(|refusal| refusal.code == RefusalCode::BudgetExhausted);
    let message = &refusals.next()?.message;
    Some(if message.contains(" usd") { Unit::MicroUsd } else { Unit::Tokens })
}

/// The budgets of a tree that have ended it, or pieces of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Spent {
    /// The one that is used up.
    pub(super) used_up: Option<Account>,
    /// The unit of the budget that has ended the tree, or pieces of it.
    unit: Option<Unit>,
    /// The option that gives the tree a larger budget where it goes on.
    larger: Option<String>,
}

/// Returns the unit of the budget that a piece had no more of, where one has ended for that.
fn unit_of_ends(answer: &FanAnswer) -> Option<Unit> {
    let mut errors = answer.failures.iter().filter_map(|(_, piece)| piece.error.as_ref());
    let message = &errors.find(|error| error.code == "budget")?.message;
    Some(if message.contains("(usd)") { Unit::MicroUsd } else { Unit::Tokens })
}

/// Returns the unit of the budget of which a piece was not given its part, and was not started.
fn unit_of_unpaid(answer: &FanAnswer) -> Option<Unit> {
    // Amounts of money are written so, and tokens are not.
    let of = |message: &str| if message.contains('$') { Unit::MicroUsd } else { Unit::Tokens };
    not_paid(answer).map(of).or_else(|| refused_unit(answer))
}

/// Returns the budgets that have ended a tree for this reason, or pieces of it.
pub(super) fn spent_budget(
    engine: &Engine,
    root: RootId,
    answer: &FanAnswer,
    reason: &Reason,
) -> Result<Spent, Failure> {
    let of_piece = unit_of_ends(answer);
    // Pieces that a budget above them stopped were cancelled.
    let stands = answer.is_success() && answer.failed.contains_key("cancelled");
    let (unit, ends_tree) = match reason {
        Reason::Budget { unit, .. } if unit == "usd" => (Some(Unit::MicroUsd), true),
        Reason::Budget { .. } => (Some(Unit::Tokens), true),
        _ => (of_piece.filter(|_| !stands), false),
    };
    let unpaid = unit_of_unpaid(answer);
    if unit.is_none() && unpaid.is_none() && !stands {
        return Ok(Spent::default());
    }
    let mut audit = Audit::new();
    // By unit, of the ends since the tree was last opened.
    let mut asked = BTreeMap::<String, u64>::new();
    let mut bounds = [0; 2];
    for event in engine.store.events(root, 0) {
        let event = event?;
        match &event.kind {
            EventKind::RootReopened(_) => asked.clear(),
            EventKind::RequestReserved { tokens, micro_usd, .. } => {
                bounds = [bounds[0].max(*tokens), bounds[1].max(micro_usd.unwrap_or(0))];
            }
            EventKind::Ended(ending) => {
                let amount = match &ending.reason {
                    Reason::Budget { unit, request: Some(request) } => Some((unit, request.bound)),
                    Reason::BudgetPool { unit, asked, .. } => Some((unit, *asked)),
                    _ => None,
                };
                if let Some((unit, amount)) = amount {
                    let most = asked.entry(unit.clone()).or_default();
                    *most = (*most).max(amount);
                }
            }
            _ => {}
        }
        audit.apply(&event);
    }
    let accounts = audit.balance(root.run());
    let is_used_up = |account: &&Account| match unit {
        Some(unit) if ends_tree => account.unit == unit,
        Some(unit) => account.unit == unit && account.free == 0,
        None => stands && account.free == 0,
    };
    let used_up = accounts.iter().find(is_used_up).copied();
    // A piece may have a budget of its own where the tree has none.
    let is_of_tree = |unit: &Unit| accounts.iter().any(|account| account.unit == *unit);
    let unit = used_up.map(|account| account.unit).or(of_piece.filter(is_of_tree));
    let short = unit.or(unpaid);
    let account = accounts.iter().find(|account| Some(account.unit) == short);
    let larger = account.and_then(|account| {
        let (unit, bound) = match account.unit {
            Unit::Tokens => ("tokens", bounds[0]),
            Unit::MicroUsd => ("usd", bounds[1]),
        };
        let asked = asked.get(unit).copied().unwrap_or(0);
        // The tree has enough: it is the budget of the task itself that is too small.
        let is_of_task = asked > 0 && u128::from(asked) <= account.free;
        (!is_of_task).then(|| larger_budget(account, answer, (asked, bound)))
    });
    Ok(Spent { used_up, unit, larger })
}

/// Returns the option with which a tree has enough for its pieces that have no answer. One of them has asked for so much, and a request has
/// reserved so much.
fn larger_budget(account: &Account, answer: &FanAnswer, asked: (u64, u64)) -> String {
    // Those that failed are counted with those that completed, since the others may fail as well. What was stopped may not have begun.
    let failed = answer.failed.iter().filter(|(code, _)| !is_stopped(code));
    let have_run = answer.completed + failed.map(|(_, count)| count).sum::<u32>();
    larger(account, have_run.into(), asked, answer.missing() as usize)
}

/// Says what was granted and used of a budget that is used up.
pub(super) fn budget_used_up(account: &Account) -> String {
    let Account { unit, granted, used, overrun, .. } = *account;
    let [granted, used] = [granted.into(), used + overrun].map(|it| wording::amount(unit, it));
    format!("the budget is used up: {used} of {granted} are used")
}
