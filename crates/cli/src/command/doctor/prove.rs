//! `offshoot doctor --prove`.

use offshoot_config::Config;
use offshoot_host::{HostProof, HostResult, LimitProof, prove_host, prove_meter};
use offshoot_model::error_chain;
use offshoot_proof::{Probe, Verdict, prove};
use serde::Serialize;

use crate::arguments::LimitArguments;
use crate::code::FailureCode;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::load;
use crate::work::engine::block_on;

/// The proof, as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Proved {
    /// True if no limit was seen to be broken.
    holds: bool,
    probes: Vec<Probe>,
}

/// Tries the limits of the configuration.
pub(super) fn run(cx: &Invocation) -> Result<Exit, Failure> {
    let loader = load::layers(cx, &LimitArguments::default())?;
    // What is wrong in a file is said as for every other command.
    let config: Config = load::finish(loader.clone())?;
    let cannot = |error: &dyn std::error::Error| {
        Failure::new(
            FailureCode::NotProved,
            Exit::AgentFailed,
            format_args!("the limits cannot be tried: {}", error_chain(error)),
        )
    };
    let probes = block_on(async {
        let mut probes = prove(&loader).await.map_err(|error| cannot(&error))?;
        probes.extend(prove_host(config.host()).await.into_iter().map(of_host));
        probes.push(of_meter(prove_meter().await.map_err(|error| cannot(&error))?));
        Ok::<_, Failure>(probes)
    })?;
    let holds = probes.iter().all(|probe| probe.verdict.is_fine());
    let proved = Proved { holds, probes };
    cx.output.result(&proved, || print(&proved, cx))?;
    Ok(if holds { Exit::Done } else { Exit::AgentFailed })
}

/// The proof of a limit over all trees.
fn of_host(proof: HostProof) -> Probe {
    let HostProof { limit, value, origin, with, result } = proof;
    let untried = |verdict| ("–".to_owned(), "–".to_owned(), None, verdict);
    let (asked, got, answer, verdict) = match result {
        HostResult::NotSet => untried(Verdict::NotSet),
        HostResult::NotTried { why } => untried(Verdict::NotTried { why }),
        HostResult::Tried(proof) => tried(proof),
    };
    Probe { limit, value, origin, with, asked, got, answer, verdict }
}

/// The proof of the meter, which is no key of the limits: what stands before the provider of a metered runtime.
fn of_meter(proof: LimitProof) -> Probe {
    let (asked, got, answer, verdict) = tried(proof);
    let with = vec!["budget.usd=0.1, a provider on this machine".to_owned()];
    Probe { limit: "meter", value: None, origin: None, with, asked, got, answer, verdict }
}

/// Returns the amounts that were asked for and given, the answer and the verdict.
fn tried(proof: LimitProof) -> (String, String, Option<String>, Verdict) {
    let LimitProof { asked, got, answer, broken } = proof;
    let verdict = broken.map_or(Verdict::Holds, |why| Verdict::Broken { why });
    (asked, got, answer, verdict)
}

fn print(proved: &Proved, cx: &Invocation) -> Result<(), Failure> {
    let heading = ["LIMIT", "VALUE", "ASKED", "GOT", "ANSWER", "RESULT"].map(str::to_owned);
    let mut rows = vec![heading];
    rows.extend(proved.probes.iter().map(row));
    cx.output.table(&rows)?;
    let changed = proved.probes.iter().any(|probe| !probe.with.is_empty());
    if changed {
        cx.output.line("")?;
        cx.output.line("Tried with other settings than those that hold:")?;
        for probe in proved.probes.iter().filter(|probe| !probe.with.is_empty()) {
            cx.output.line(format_args!("  {}: {}", probe.limit, probe.with.join(", ")))?;
        }
    }
    cx.output.line("")?;
    cx.output.line(sum(&proved.probes))
}

/// `12 limits hold, 0 are broken; 3 are not set, and 2 were not reached or not tried`
fn sum(probes: &[Probe]) -> String {
    let count = |is_it: fn(&Verdict) -> bool| probes.iter().filter(|it| is_it(&it.verdict)).count();
    let [holds, broken, not_set, other] = [
        count(|it| matches!(it, Verdict::Holds)),
        count(|it| matches!(it, Verdict::Broken { .. })),
        count(|it| matches!(it, Verdict::NotSet)),
        count(|it| matches!(it, Verdict::Before { .. } | Verdict::NotTried { .. })),
    ];
    format!(
        "{holds} limits hold, {broken} are broken; {not_set} are not set, and {other} were not reached or not tried"
    )
}

fn row(probe: &Probe) -> [String; 6] {
    let Probe { limit, value, asked, got, answer, verdict, .. } = probe;
    let result = match verdict {
        Verdict::Holds => "holds".to_owned(),
        Verdict::Before { by } => format!("not reached: {by} comes first"),
        Verdict::NotSet => "not set".to_owned(),
        Verdict::NotTried { why } => format!("not tried: {why}"),
        Verdict::Broken { why } => format!("BROKEN: {why}"),
    };
    let value = value.clone().unwrap_or_else(|| "none".to_owned());
    let answer = answer.clone().unwrap_or_else(|| "–".to_owned());
    [(*limit).to_owned(), value, asked.clone(), got.clone(), answer, result]
}
