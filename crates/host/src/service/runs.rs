//! Runs as callers name and see them: itself and what is below it; for the operator, everything.

use std::collections::HashMap;
use std::str::FromStr;
use std::time::Duration;

use offshoot_door::{
    CallError, CallerKind, Cancel, List, RaiseBudget, RunName, Runs, Send, Tree as AskedTree,
    Trees, WireTreeNode,
};
use offshoot_model::{BudgetGrant, BudgetRequest, Refusal, RefusalCode, RunId, Timestamp, Tree};
use offshoot_spawner::{Agents, Clock, SystemClock};
use offshoot_store::FIND_LIMIT;

use super::{TreeService, blocking, failed, invalid, lets_more_happen, operator};

impl TreeService {
    /// Ends a run below the caller; for the operator, any.
    pub(super) async fn cancel(&self, caller: CallerKind, cancel: Cancel) -> Result<(), CallError> {
        let Cancel { run: name, only } = cancel;
        let run = self.named(caller, "run", &name).await?;
        match caller {
            CallerKind::Run(caller) => self.agents.cancel(caller, run, only).await?,
            CallerKind::Operator | CallerKind::OperatorCommand => {
                self.agents.cancel_as_operator(run, only)?;
            }
        }
        Ok(())
    }

    /// Adds to the budget of a run, for the operator.
    pub(super) async fn raise(
        &self,
        caller: CallerKind,
        raise: RaiseBudget,
    ) -> Result<(), CallError> {
        operator(caller)?;
        if caller == CallerKind::OperatorCommand {
            return Err(lets_more_happen());
        }
        let RaiseBudget { run: name, add: BudgetRequest { tokens, usd } } = raise;
        let run = self.named(caller, "run", &name).await?;
        let more = BudgetGrant { tokens, usd };
        if let Some(day) = &self.day {
            day.reserve_more(more, SystemClock.now()).map_err(|error| {
                let refusal = Refusal::new(RefusalCode::BudgetExhausted, error.to_string());
                CallError::from(refusal.with_hint(error.hint_of_raise()))
            })?;
        }
        // Where the one who asked goes before the answer, the raise may have come through: it stays reserved.
        let raised = self.agents.raise_as_operator(run, more).await;
        if let (Some(day), Err(_)) = (&self.day, &raised) {
            day.give_back(more);
        }
        Ok(raised?)
    }

    /// Writes into a session below the caller; for the operator, into any.
    pub(super) async fn send(&self, caller: CallerKind, send: Send) -> Result<(), CallError> {
        let Send { to, text } = send;
        if text.trim().is_empty() {
            return Err(invalid("text", "the message is empty"));
        }
        let run = self.named(caller, "to", &to).await?;
        match caller {
            CallerKind::Run(caller) => self.agents.send(caller, run, &text).await?,
            CallerKind::Operator => self.agents.send_as_operator(run, &text).await?,
            CallerKind::OperatorCommand => return Err(lets_more_happen()),
        }
        Ok(())
    }

    /// Runs with what is below them.
    pub(super) async fn trees(
        &self,
        caller: CallerKind,
        asked: AskedTree,
    ) -> Result<Trees, CallError> {
        let top = match (&asked.run, caller) {
            (Some(name), _) => self.named(caller, "run", name).await?,
            (None, CallerKind::Run(run)) => run,
            (None, CallerKind::Operator | CallerKind::OperatorCommand) => self.agents.root().run(),
        };
        let tree = self.tree(caller).await?;
        let mut roots = tree.get(top).map(|node| WireTreeNode::from(&tree.view(node)));
        if !asked.all {
            roots.iter_mut().for_each(|root| hide_deleted(&tree, root));
        }
        if let Some(top) = &mut roots {
            top.holds = tree.holds(self.agents.root()).clone();
            self.times().await.tell(&tree, top);
        }
        Ok(Trees { roots: roots.into_iter().collect() })
    }

    /// The same runs one after the other. Nothing of a tree that runs is archived.
    pub(super) async fn list(&self, caller: CallerKind, list: List) -> Result<Runs, CallError> {
        let tree = self.tree(caller).await?;
        let mut runs: Vec<WireTreeNode> = tree
            .nodes()
            .filter(|node| may_see(&tree, caller, node.run))
            .filter(|node| list.all || !tree.is_deleted(node))
            .map(|node| WireTreeNode {
                children: Vec::new(),
                ..WireTreeNode::from(&tree.view(node))
            })
            .collect();
        if let Some(limit) = list.limit {
            let first = runs.len().saturating_sub(limit as usize);
            runs.drain(..first);
        }
        // The topmost run says why nothing more of its tree starts.
        if let Some(top) = runs.iter_mut().min_by_key(|run| run.depth) {
            top.holds = tree.holds(self.agents.root()).clone();
        }
        let times = self.times().await;
        runs.iter_mut().for_each(|run| times.tell(&tree, run));
        Ok(Runs { runs })
    }

    /// The present, as answers tell of it.
    async fn times(&self) -> Times {
        // A tree that has just ended has no silence.
        let silences = self.agents.silences().await.unwrap_or_default();
        Times { now: self.agents.now(), silences: silences.into_iter().collect() }
    }

    /// The run that a caller means, among those that it may see.
    pub(super) async fn named(
        &self,
        caller: CallerKind,
        field: &'static str,
        name: &RunName,
    ) -> Result<RunId, CallError> {
        let (agents, name) = (self.agents.clone(), name.clone());
        blocking(move || {
            let found = candidates(&agents, caller, &name)?;
            match found[..] {
                [run] => Ok(run),
                [] => {
                    let message = format!("there is no run `{name}` below this session");
                    Err(invalid(field, message))
                }
                [..] => Err(invalid(field, format!("`{name}` may be any of several runs"))),
            }
        })
        .await
    }

    /// The runs that a caller means, in its order.
    pub(super) async fn all_named(
        &self,
        caller: RunId,
        names: &[RunName],
    ) -> Result<Vec<RunId>, CallError> {
        let mut runs = Vec::with_capacity(names.len());
        for name in names {
            let run = self.named(CallerKind::Run(caller), "runs", name).await?;
            if run == caller {
                return Err(invalid("runs", "a session has no result of its own yet"));
            }
            runs.push(run);
        }
        Ok(runs)
    }
}

/// A moment, and the time for which each run that holds a slot has been silent then.
struct Times {
    now: Timestamp,
    silences: HashMap<RunId, Duration>,
}

impl Times {
    /// Tells of a run and what is below it how old it is, since when it runs and for how long it has been silent.
    fn tell(&self, tree: &Tree, node: &mut WireTreeNode) {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        if let Some(known) = tree.get(node.run_id) {
            let runs = known.age(self.now).filter(|_| !known.status.is_terminal());
            node.age_ms = Some(ms(self.now.since(known.admitted_at)));
            node.running_ms = runs.map(ms);
            // None was silent before it began.
            let silence = self.silences.get(&known.run).copied();
            node.silent_ms = silence.zip(runs).map(|(silence, runs)| ms(silence.min(runs)));
        }
        node.children.iter_mut().for_each(|child| self.tell(tree, child));
    }
}

/// Leaves out what is below a run and deleted, and counts it. What it used stays in the sums.
fn hide_deleted(tree: &Tree, node: &mut WireTreeNode) {
    let before = node.children.len();
    node.children.retain(|child| !tree.get(child.run_id).is_some_and(|it| tree.is_deleted(it)));
    node.deleted = u32::try_from(before - node.children.len()).unwrap_or(u32::MAX);
    node.children.iter_mut().for_each(|child| hide_deleted(tree, child));
}

/// Runs that a name may mean. The record is asked, the text is only compared.
fn candidates(
    agents: &Agents,
    caller: CallerKind,
    name: &RunName,
) -> Result<Vec<RunId>, CallError> {
    let sees = |run: RunId| match caller {
        CallerKind::Run(caller) if run == caller => Ok(true),
        CallerKind::Run(caller) => agents.is_below(run, caller).map_err(failed),
        CallerKind::Operator | CallerKind::OperatorCommand => {
            let root = agents.root().run();
            Ok(run == root || agents.is_below(run, root).map_err(failed)?)
        }
    };
    if let Ok(run) = RunId::from_str(&name.0) {
        return Ok(if sees(run)? { vec![run] } else { Vec::new() });
    }
    let found = agents.store().find(&name.0).map_err(failed)?;
    if found.len() < FIND_LIMIT {
        let mut runs = Vec::new();
        for run in found.into_iter().map(|found| found.run) {
            if sees(run)? {
                runs.push(run);
            }
        }
        return Ok(runs);
    }
    // Runs of others stand before ours: look at our own alone.
    let tree = agents.tree().map_err(failed)?;
    let meant = |run: RunId, key: &str| run.to_string().starts_with(&name.0) || key == name.0;
    let nodes = tree.nodes().filter(|node| meant(node.run, node.key.as_str()));
    Ok(nodes.map(|node| node.run).filter(|run| may_see(&tree, caller, *run)).collect())
}

/// Itself and what is below it; for the operator everything.
fn may_see(tree: &Tree, caller: CallerKind, run: RunId) -> bool {
    let Some(caller) = caller.run() else { return true };
    let mut at = Some(run);
    while let Some(run) = at {
        if run == caller {
            return true;
        }
        at = tree.get(run).and_then(|node| node.parent);
    }
    false
}
