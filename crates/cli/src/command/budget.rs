//! `offshoot budget`.

use clap::Args;
use offshoot_audit::{Account, Audit, Unit};
use offshoot_display::number;
use offshoot_door::{Client, RaiseBudget, RunName};
use offshoot_model::{BudgetRequest, MicroUsd};

use crate::arguments::value::{usd, whole};
use crate::code::NoteCode;
use crate::door::reach;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::Record;
use crate::wording;
use crate::work::engine::block_on;

/// Show the budget of a run, and add to that of one that is alive
///
/// Prints the budget as it is now, with all that was added to it, and the amounts that are used, reserved and left. A charge for a use that is not known counts as used.
///
/// With an amount, every budget above the run is raised by the same amount, so that no other run has less. Pieces
/// of a map or a fanout draw from the budget of their tree as they start, so they use what is added to that. Other runs that
/// were admitted before keep the part that they were given: name such a run to raise it. Only the user who opened the tree may do this, from a second terminal; it is recorded. A run that was started under a cap of its own, as
/// Claude Code is, keeps that cap until its next start.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot budget last
  offshoot budget 0198c7 --add 2.50
  offshoot budget 0198c7 --add-tokens 200000")]
pub(crate) struct BudgetArguments {
    /// The id of the run; the id of the root for the tree as a whole
    #[arg(value_name = "RUN")]
    pub(crate) run: String,

    /// So many US dollars more
    #[arg(long, value_name = "USD", value_parser = usd)]
    pub(crate) add: Option<MicroUsd>,

    /// So many tokens more
    #[arg(long, value_name = "TOKENS", value_parser = whole(0_u64.., "20000"))]
    pub(crate) add_tokens: Option<u64>,
}

/// Adds to the budget of a run, and to every budget above it, where an amount is named; shows the budget.
pub(crate) fn run(arguments: &BudgetArguments, cx: &Invocation) -> Result<(), Failure> {
    let BudgetArguments { run, add, add_tokens } = arguments;
    if add.is_none() && add_tokens.is_none() {
        return show(run, cx);
    }
    let add = BudgetRequest { tokens: *add_tokens, usd: *add };
    let run = block_on(async {
        let (supervisor, run) = reach(run, cx).await?;
        cx.output.note(NoteCode::BudgetRaised, raise(&supervisor, run.clone(), add).await?);
        Ok::<_, Failure>(run)
    })?;
    // The supervisor answers once the raise is on record.
    show(&run, cx)
}

/// Shows the budget of a run as it holds now: what was added is in it, and what is charged although it is not known.
fn show(run: &str, cx: &Invocation) -> Result<(), Failure> {
    let (record, found) = Record::open_with(cx, run)?;
    let mut audit = Audit::new();
    for event in record.store().events(found.root, 0) {
        audit.apply(&event?);
    }
    let balance = audit.balance(found.run);
    let by_default =
        audit.by_default().filter(|_| balance.iter().all(|it| it.unit == Unit::Tokens));
    cx.output.result(&balance, || {
        if balance.is_empty() && by_default.is_none() {
            return cx.output.line(format_args!("no budget bounds {}", found.run));
        }
        balance.iter().try_for_each(|account| cx.output.line(line(account)))?;
        by_default.iter().try_for_each(|account| {
            cx.output.line(format_args!(
                "no budget in dollars bounds {}; of what all paid agents of its tree may cost by default (runtimes.NAME.defaultUsd), {}",
                found.run,
                line(account)
            ))
        })
    })
}

/// `$0.13 of $0.20 are used, $0.05 are reserved, $0.02 are left`.
fn line(account: &Account) -> String {
    let Account { unit, granted, used, overrun, reserved, free, deficit } = account;
    let show = |amount: u128| wording::amount(*unit, amount);
    let left = [(*granted).into(), used + overrun, *reserved, *free].map(show);
    let above = match deficit {
        0 => String::new(),
        above => format!(", {} more than there was", show(*above)),
    };
    format!("{}{above}", wording::budget_left(left))
}

/// Has a supervisor add to the budget of a run, and says what that changed.
pub(super) async fn raise(
    supervisor: &Client,
    run: String,
    add: BudgetRequest,
) -> Result<String, Failure> {
    supervisor.call(RaiseBudget { run: RunName(run.clone()), add }).await?;
    let tokens = add.tokens.map(|tokens| format!("{} tokens", number::count(tokens)));
    let dollars = add.usd.map(number::dollars);
    let more = [dollars, tokens].into_iter().flatten().collect::<Vec<_>>().join(" and ");
    Ok(format!("the budget of {run}, and each above it, is {more} larger"))
}
