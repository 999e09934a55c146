//! Probes of limits that count spawns: how deep, how many, how often.

use std::sync::Arc;

use futures_util::FutureExt;
use offshoot_config::MaxDepth;
use offshoot_model::{RunId, SpawnRequest};
use offshoot_runtime::{Finished, Launch, RunContext, WaitFor};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{Tried, agent, answer, not_too_much, numbers_of, numbers_of_piece, task};
use crate::error::NoProbe;
use crate::probe::{Probe, Verdict};
use crate::trial::{Finding, Trial};

/// The setting with which agents below the root may spawn, as the operator's flag has it.
const RECURSION: (&str, Value) = ("allowRecursiveSpawn", Value::Bool(true));

/// The right of an agent below the root to spawn.
pub(crate) fn recursion<'a>(trial: &'a Trial, limit: &'static str) -> Tried<'a> {
    async move {
        let body = agent(|launch: Launch, cx: RunContext| async move {
            if launch.depth > 1 {
                return Finished::text("0 ");
            }
            match cx.host.spawn(task("a part of it")).await {
                Ok(_) => answer(1, None),
                Err(refusal) => answer(0, Some(&refusal)),
            }
        });
        let tree = trial.open(&[], body).await?;
        let (got, code) = numbers_of_piece(&tree, "ask for a child").await?;
        let allowed = trial.settings.allow_recursive_spawn();
        let verdict = match (allowed, got, code.as_deref()) {
            (true, 1, _) | (false, 0, Some("recursion_disabled")) => Verdict::Holds,
            // The definition of the agent says more than the setting.
            (_, 0, Some(code)) => Verdict::Before { by: code.to_owned() },
            (_, got, _) => Verdict::Broken { why: format!("got {got}") },
        };
        let (asked, got) =
            ("1 child".to_owned(), format!("{got} child{}", if got == 1 { "" } else { "ren" }));
        trial.close(limit, tree, Finding { asked, got, answer: code, verdict }).await
    }
    .boxed()
}

/// The levels below the root.
pub(crate) fn depth<'a>(trial: &'a Trial, limit: &'static str) -> Tried<'a> {
    async move {
        let body = agent(|launch: Launch, cx: RunContext| async move {
            let depth = u64::from(launch.depth);
            match cx.host.spawn(task(format!("level {}", depth + 1))).await {
                Ok(_) => pass_on(&cx).await,
                Err(refusal) => answer(depth, Some(&refusal)),
            }
        });
        let most = u64::from(trial.settings.max_depth());
        let with = [RECURSION];
        chain(trial, limit, ("level", most), "depth_limit", ("level 1", body), &with).await
    }
    .boxed()
}

/// The number of times that the same task may stand in one chain.
pub(crate) fn repeats<'a>(trial: &'a Trial, limit: &'static str) -> Tried<'a> {
    async move {
        let body = agent(|launch: Launch, cx: RunContext| async move {
            match cx.host.spawn(task(Arc::clone(&launch.task))).await {
                Ok(_) => pass_on(&cx).await,
                Err(refusal) => answer(u64::from(launch.depth), Some(&refusal)),
            }
        });
        let most = u64::from(trial.settings.max_identical_delegations());
        let counted = ("delegation", most);
        // As deep as it takes, where that is not too deep for any tree.
        let deep = (most + 1).max(u64::from(trial.settings.max_depth()));
        let with = [RECURSION, ("maxDepth", json!(deep))];
        let is_possible = u8::try_from(deep).ok().and_then(MaxDepth::new).is_some();
        let with = if is_possible { &with[..] } else { &with[..1] };
        chain(trial, limit, counted, "repeat_limit", ("the same again", body), with).await
    }
    .boxed()
}

/// Live children of one session.
pub(crate) fn children<'a>(trial: &'a Trial, limit: &'static str) -> Tried<'a> {
    async move {
        let most = trial.settings.max_children_per_agent().ok_or(Verdict::NotSet)?;
        greedy(trial, limit, ("child", u64::from(most)), "children_limit", Pace::AllAlive).await
    }
    .boxed()
}

/// Spawns over the life of the tree.
pub(crate) fn spawns<'a>(trial: &'a Trial, limit: &'static str) -> Tried<'a> {
    async move {
        let most = u64::from(trial.settings.max_spawns());
        greedy(trial, limit, ("spawn", most), "spawn_limit", Pace::OneByOne).await
    }
    .boxed()
}

/// Spawns within a minute.
pub(crate) fn rate<'a>(trial: &'a Trial, limit: &'static str) -> Tried<'a> {
    async move {
        let most = trial.settings.max_spawns_per_minute().ok_or(Verdict::NotSet)?;
        greedy(trial, limit, ("spawn", u64::from(most)), "spawn_rate", Pace::OneByOne).await
    }
    .boxed()
}

/// A chain that returns to an agent with another one in between.
pub(crate) fn cycles<'a>(trial: &'a Trial, limit: &'static str) -> Tried<'a> {
    async move {
        let config = trial.config()?;
        let main = config.default_agent().clone();
        let other = config.agents().map(|agent| agent.id().clone()).find(|id| *id != main);
        let mut with = vec![RECURSION];
        if trial.settings.max_depth() < 3 {
            with.push(("maxDepth", json!(3)));
        }
        // Where one agent is defined, the probe brings another one.
        let (own_trial, other) = match other {
            Some(other) => (None, other),
            None => {
                with.push(("allowAgents", json!(["*"])));
                let (trial, other) = trial.with_another_agent()?;
                (Some(trial), other)
            }
        };
        let trial = own_trial.as_ref().unwrap_or(trial);
        let agents = [main.clone(), other];
        let body = agent(move |launch: Launch, cx: RunContext| {
            let agents = agents.clone();
            async move {
                let depth = launch.depth as usize;
                let next = agents.get(depth % 2).cloned();
                if depth == 3 {
                    return answer(3, None);
                }
                let request = SpawnRequest { agent: next, ..task(format!("step {}", depth + 1)) };
                match cx.host.spawn(request).await {
                    Ok(_) => pass_on(&cx).await,
                    Err(refusal) => answer(launch.depth.into(), Some(&refusal)),
                }
            }
        });
        let tree = trial.open(&with, body).await?;
        let (got, code) = numbers_of_piece(&tree, "step 1").await?;
        let allowed = trial.settings.allow_cycles();
        let verdict = match (allowed, got, code.as_deref()) {
            (true, 3, None) | (false, 2, Some("cycle")) => Verdict::Holds,
            (_, _, Some(code)) if code != "cycle" => Verdict::Before { by: code.to_owned() },
            _ => Verdict::Broken { why: format!("a chain of {got} agents") },
        };
        let (asked, got) = (format!("{main}, another, {main}"), format!("{got} in a chain"));
        trial.close(limit, tree, Finding { asked, got, answer: code, verdict }).await
    }
    .boxed()
}

/// The way in which an agent asks for many children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// Each is over before the next one is asked for.
    OneByOne,
    /// All live until the last one was asked for.
    AllAlive,
}

/// One agent asks for one child more than it may have.
async fn greedy(
    trial: &Trial,
    limit: &'static str,
    (unit, most): (&str, u64),
    own_code: &str,
    pace: Pace,
) -> Result<Probe, NoProbe> {
    not_too_much(most)?;
    let asked = most + 1;
    let (release, _) = watch::channel(false);
    let release = Arc::new(release);
    let body = agent(move |launch: Launch, cx: RunContext| {
        let release = Arc::clone(&release);
        async move {
            if launch.depth > 1 {
                // Gone where the sender is: then the tree is over.
                let _ = release
                    .subscribe()
                    .wait_for(|&released| released || pace == Pace::OneByOne)
                    .await;
                return Finished::text("done");
            }
            let mut refusal = None;
            let mut got = 0;
            while got < asked {
                match cx.host.spawn(task(format!("part {got}"))).await {
                    Ok(run) if pace == Pace::OneByOne => wait_for(&cx, run).await,
                    Ok(_) => {}
                    Err(refused) => {
                        refusal = Some(refused);
                        break;
                    }
                }
                got += 1;
            }
            release.send_replace(true);
            answer(got, refusal.as_ref())
        }
    });
    let tree = trial.open(&[RECURSION], body).await?;
    let (got, code) = numbers_of_piece(&tree, "ask for many").await?;
    let finding = Finding::counted(unit, most, asked, got, code, own_code);
    trial.close(limit, tree, finding).await
}

/// Each agent asks for one below itself, until one is refused.
async fn chain(
    trial: &Trial,
    limit: &'static str,
    (unit, most): (&str, u64),
    own_code: &str,
    (first, body): (&str, crate::agent::Body),
    with: &[(&str, Value)],
) -> Result<Probe, NoProbe> {
    let tree = trial.open(with, body).await?;
    let (got, code) = numbers_of_piece(&tree, first).await?;
    let finding = Finding::counted(unit, most, most + 1, got, code, own_code);
    trial.close(limit, tree, finding).await
}

/// Answers with what the only child answers.
async fn pass_on(cx: &RunContext) -> Finished {
    let answered = cx.host.wait(WaitFor::default()).await;
    let ended = answered.ok().and_then(|answer| answer.ended.into_iter().next());
    match ended {
        Some(envelope) => {
            let (got, code) = numbers_of(&envelope);
            Finished::text(format!("{got} {}", code.unwrap_or_default()))
        }
        None => Finished::text("the tree is over"),
    }
}

async fn wait_for(cx: &RunContext, run: RunId) {
    // Where the tree is over, the next request is refused.
    let _ = cx.host.wait(WaitFor { runs: vec![run], ..WaitFor::default() }).await;
}
