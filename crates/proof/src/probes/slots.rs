//! Probes of limits on what runs at the same time.

use std::sync::Arc;

use futures_util::FutureExt;
use offshoot_runtime::{Finished, Launch, RunContext};
use tokio::sync::watch;

use super::{Tried, agent, not_too_much, task};
use crate::error::NoProbe;
use crate::probe::{Probe, Verdict};
use crate::trial::{Finding, Trial};

/// Runs of the whole tree that hold a slot.
pub(crate) fn in_all<'a>(trial: &'a Trial, limit: &'static str) -> Tried<'a> {
    let most = u64::from(trial.settings.max_concurrent());
    crowd(trial, limit, most).boxed()
}

/// Runs of one level that hold a slot.
pub(crate) fn per_level<'a>(trial: &'a Trial, limit: &'static str) -> Tried<'a> {
    async move {
        let most = trial.settings.max_concurrent_per_level().ok_or(Verdict::NotSet)?;
        crowd(trial, limit, u64::from(most)).await
    }
    .boxed()
}

/// Two pieces more than may run, all of which stay until the last was asked for.
async fn crowd(trial: &Trial, limit: &'static str, most: u64) -> Result<Probe, NoProbe> {
    not_too_much(most)?;
    let (release, _) = watch::channel(false);
    let release = Arc::new(release);
    let released = Arc::clone(&release);
    let body = agent(move |_launch: Launch, _cx: RunContext| {
        let mut released = released.subscribe();
        async move {
            // The sender outlives the tree.
            let _ = released.wait_for(|&released| released).await;
            Finished::text("done")
        }
    });
    let tree = trial.open(&[], body).await?;
    let asked = most + 2;
    let mut refused = None;
    for number in 0..asked {
        if let Err(refusal) = tree.session.spawn(task(format!("piece {number}"))).await {
            refused = Some(refusal.code.to_string());
            break;
        }
    }
    let counts = tree.session.counts().await;
    release.send_replace(true);
    let got = counts.active as u64;
    let verdict = match refused.as_ref() {
        _ if got > most => Verdict::Broken { why: format!("{got} ran at once") },
        Some(code) => Verdict::Before { by: code.clone() },
        None if got == most => Verdict::Holds,
        None => Verdict::Before { by: "another limit on what runs at once".to_owned() },
    };
    let answer = refused.or_else(|| (counts.queued > 0).then(|| "queued".to_owned()));
    let (asked, got) = (format!("{asked} at once"), format!("{got} at once"));
    trial.close(limit, tree, Finding { asked, got, answer, verdict }).await
}
