//! Probes of limits of time. Each is lowered to one second for its probe: who is ended, and by which rule, is the same for longer ones.

use futures_util::FutureExt;
use offshoot_model::SpawnRequest;
use offshoot_runtime::{Launch, RunContext};
use serde_json::{Value, json};

use super::{Tried, agent, code_of, one_piece, stopped, task};
use crate::error::NoProbe;
use crate::probe::{Probe, Verdict};
use crate::trial::{Finding, Trial};

/// The time of one run.
pub(crate) fn of_a_run<'a>(trial: &'a Trial, limit: &'static str) -> Tried<'a> {
    hanging(trial, limit, vec![(limit, json!(1)), ("retries.count", json!(0))], "timeout").boxed()
}

/// The time without a sign of life.
pub(crate) fn of_silence<'a>(trial: &'a Trial, limit: &'static str) -> Tried<'a> {
    hanging(trial, limit, vec![(limit, json!(1)), ("retries.count", json!(0))], "idle").boxed()
}

/// The time of the whole tree.
pub(crate) fn of_a_tree<'a>(trial: &'a Trial, limit: &'static str) -> Tried<'a> {
    hanging(trial, limit, vec![(limit, json!(1))], "deadline").boxed()
}

/// One piece that never ends by itself.
async fn hanging(
    trial: &Trial,
    limit: &'static str,
    with: Vec<(&'static str, Value)>,
    own_code: &'static str,
) -> Result<Probe, NoProbe> {
    let body = agent(|_launch: Launch, cx: RunContext| async move {
        let mut stop = cx.stop.clone();
        stop.heard().await;
        stopped()
    });
    let tree = trial.open(&with, body).await?;
    // More than it may have, which is cut.
    let request = SpawnRequest { run_timeout_seconds: Some(3600), ..task("hang") };
    let asked = "3600 s".to_owned();
    let finding = match one_piece(&tree, request).await? {
        Err(refusal) => {
            let by = refusal.code.to_string();
            Finding {
                asked,
                got: "nothing".to_owned(),
                answer: Some(by.clone()),
                verdict: Verdict::Before { by },
            }
        }
        Ok(envelope) => {
            let (code, millis) = (code_of(&envelope), envelope.execution_time_ms);
            let verdict = match &*code {
                code if code == own_code && (900..2_500).contains(&millis) => Verdict::Holds,
                code if code == own_code => {
                    Verdict::Broken { why: format!("ended after {millis} ms") }
                }
                "completed" => Verdict::Broken { why: "the run was not ended".to_owned() },
                other => Verdict::Before { by: other.to_owned() },
            };
            let got = format!("{}.{} s", millis / 1000, millis % 1000 / 100);
            Finding { asked, got, answer: Some(code), verdict }
        }
    };
    trial.close(limit, tree, finding).await
}
