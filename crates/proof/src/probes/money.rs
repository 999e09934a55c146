//! Probes of budgets: an agent that reports a tenth of the budget at a time, and goes on until it is stopped.

use std::time::Duration;

use futures_util::FutureExt;
use offshoot_config::built_in;
use offshoot_model::{Cost, MicroUsd, TokenCount, Usage};
use offshoot_runtime::{Finished, Launch, RunContext, WaitFor};
use serde_json::{Value, json};

use super::{Tried, agent, code_of, one_piece, stopped, task};
use crate::error::NoProbe;
use crate::probe::{Probe, Verdict};
use crate::trial::{Finding, Trial};

/// The budget of a probe where none is set, in tokens or millionths of a dollar.
const SMALL: u64 = 1_000;

/// Parts in which an agent uses up the budget.
const PARTS: u64 = 10;

/// The budget in tokens.
pub(crate) fn tokens<'a>(trial: &'a Trial, limit: &'static str) -> Tried<'a> {
    let set = trial.settings.budget.tokens();
    let most = set.unwrap_or(SMALL).min(SMALL);
    let use_up =
        |amount| (Usage { input: TokenCount::Known(amount), ..Usage::default() }, Cost::NONE);
    spending(trial, limit, (most, json!(most)), |amount| format!("{amount} tokens"), use_up).boxed()
}

/// The budget in dollars.
pub(crate) fn usd<'a>(trial: &'a Trial, limit: &'static str) -> Tried<'a> {
    let set = trial.settings.budget.usd().map(MicroUsd::as_micros);
    let most = set.unwrap_or(SMALL).min(SMALL);
    let use_up = |amount| (Usage::default(), Cost::known(MicroUsd::from_micros(amount)));
    let value = json!(MicroUsd::from_micros(most).to_string());
    let words = |amount| format!("{} usd", MicroUsd::from_micros(amount));
    spending(trial, limit, (most, value), words, use_up).boxed()
}

async fn spending(
    trial: &Trial,
    limit: &'static str,
    (most, value): (u64, Value),
    words: fn(u64) -> String,
    use_up: fn(u64) -> (Usage, Cost),
) -> Result<Probe, NoProbe> {
    let (part, asked) = (most.div_ceil(PARTS), most * 2);
    let body = agent(move |_launch: Launch, cx: RunContext| async move {
        let (mut used, mut is_stopped) = (0, false);
        while used < asked && !is_stopped {
            used += part;
            let (usage, cost) = use_up(used);
            cx.host.used(usage, cost);
            // The supervisor has taken the report when it answers this.
            let look = WaitFor { timeout: Some(Duration::ZERO), ..WaitFor::default() };
            let _ = cx.host.wait(look).await;
            is_stopped = cx.stop.requested().is_some();
        }
        let (usage, cost) = use_up(used);
        let end = if is_stopped { stopped() } else { Finished::text("spent") };
        Finished { usage: Some(usage), cost: Some(cost), ..end }
    });
    let tree = trial.open(&[(limit, value)], body).await?;
    let (got, answer) = match one_piece(&tree, task("spend")).await? {
        Ok(envelope) => {
            let used = match limit {
                "budget.tokens" => envelope.usage.total().charged(),
                _ => envelope.cost.dollars().as_micros(),
            };
            (used, code_of(&envelope))
        }
        Err(refusal) => (0, refusal.code.to_string()),
    };
    let verdict = match &*answer {
        _ if got > most => Verdict::Broken { why: format!("{} were used", words(got)) },
        "budget" if got == most => Verdict::Holds,
        // A budget of nothing lets nothing begin.
        "budget_exhausted" | "budget_pool" if most == 0 => Verdict::Holds,
        other => Verdict::Before { by: other.to_owned() },
    };
    let finding = Finding { asked: words(asked), got: words(got), answer: Some(answer), verdict };
    trial.close(limit, tree, finding).await
}

/// Dollars that a runtime gets where no budget is set; a probe must never be larger.
const _: () = assert!(built_in::RUNTIME_DEFAULT_USD.as_micros() > SMALL);
