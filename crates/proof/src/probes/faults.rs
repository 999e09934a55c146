//! Probes of limits on faults: when an agent is left alone, and how often a run is tried again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::FutureExt;
use offshoot_model::Reason;
use offshoot_runtime::{Finished, Launch, RunContext};
use serde_json::json;

use super::{Tried, agent, code_of, not_too_much, one_piece, task};
use crate::probe::Verdict;
use crate::trial::{Finding, Trial};

/// Faults in a row after which an agent is not started.
pub(crate) fn breaker<'a>(trial: &'a Trial, limit: &'static str) -> Tried<'a> {
    async move {
        let most = u64::from(trial.settings.breaker.failures());
        if most == 0 {
            return Err(Verdict::NotSet.into());
        }
        not_too_much(most)?;
        let (body, started) = broken(false);
        let tree = trial.open(&[("retries.count", json!(0))], body).await?;
        let mut code = None;
        for number in 0..=most {
            if let Err(refusal) = one_piece(&tree, task(format!("try {number}"))).await? {
                code = Some(refusal.code.to_string());
                break;
            }
        }
        let got = started.load(Ordering::SeqCst);
        let finding = Finding::counted("fault", most, most + 1, got, code, "breaker_open");
        trial.close(limit, tree, finding).await
    }
    .boxed()
}

/// Attempts after the first. One is tried, and not more, because each later one waits twice as long.
pub(crate) fn retries<'a>(trial: &'a Trial, limit: &'static str) -> Tried<'a> {
    async move {
        let most = u64::from(trial.settings.retries.count().min(1));
        let with = [("retries.count", json!(most)), ("breaker.failures", json!(0))];
        let (body, started) = broken(true);
        let tree = trial.open(&with, body).await?;
        let answer = match one_piece(&tree, task("fail")).await? {
            Ok(envelope) => code_of(&envelope),
            Err(refusal) => refusal.code.to_string(),
        };
        let got = started.load(Ordering::SeqCst).saturating_sub(1);
        let verdict = match &*answer {
            "runtime_error" if got == most => Verdict::Holds,
            "runtime_error" => Verdict::Broken { why: format!("{got} further attempts") },
            other => Verdict::Before { by: other.to_owned() },
        };
        let (asked, got) = (format!("{} more attempts", most + 1), format!("{got}"));
        trial.close(limit, tree, Finding { asked, got, answer: Some(answer), verdict }).await
    }
    .boxed()
}

/// An agent whose runtime always fails, and the number of its starts.
fn broken(retryable: bool) -> (crate::agent::Body, Arc<AtomicU64>) {
    let started = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&started);
    let body = agent(move |_launch: Launch, _cx: RunContext| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move { Finished::of(Reason::RuntimeError { message: "made to fail".into(), retryable }) }
    });
    (body, started)
}
