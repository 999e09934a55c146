//! The slots that the runs of several trees held at once, counted again from their records.
//!
//! The trees of a user share slots where `host.maxConcurrent` bounds them, and those of an account where `host.maxConcurrentPerAccount` does.
//! Each tree records the bounds, and its starts and ends; this puts
//! the records of all trees in the order of time and counts. A tree that was killed has held nothing after its last event, as far as its
//! record tells.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use offshoot_model::{Account, Event, EventKind, RootId, RunId, Timestamp};
use serde::Serialize;

/// Counts the slots of several trees.
#[derive(Debug, Default)]
pub struct HostAudit {
    changes: Vec<Change>,
}

/// The slots of one tree, in the order of its record.
#[derive(Debug, Default)]
pub struct HostTree {
    bounds: HashMap<Pool, u32>,
    /// The runtimes of the runs.
    runtimes: HashMap<RunId, Arc<str>>,
    /// The pools of which each run holds a slot.
    holding: HashMap<RunId, Vec<Pool>>,
    changes: Vec<Change>,
    last: Timestamp,
}

/// The runs that share slots: those of one account; none for all.
type Pool = Option<Account>;

/// The slots that all trees held, as their records tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostFindings {
    /// The most slots that were held at once while something bounded them; none where nothing did.
    pub peak: Option<u32>,
    /// The accounts whose slots were bounded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub accounts: Vec<AccountPeak>,
    /// Starts beyond the bound.
    pub breaches: Vec<HostBreach>,
}

/// The most slots of one account that were held at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AccountPeak {
    /// The account.
    pub account: Account,
    /// The most that were held at once.
    pub peak: u32,
    /// The greatest bound that was recorded.
    pub max_concurrent: u32,
}

impl AccountPeak {
    /// Takes in that so many slots of an account are held, under this bound.
    pub(crate) fn note(
        peaks: &mut BTreeMap<Account, Self>,
        account: &Account,
        held: u32,
        bound: Option<u32>,
    ) {
        let new = || Self { account: account.clone(), peak: 0, max_concurrent: 0 };
        let of = peaks.entry(account.clone()).or_insert_with(new);
        of.peak = of.peak.max(held);
        of.max_concurrent = of.max_concurrent.max(bound.unwrap_or(0));
    }
}

/// A run that started beyond the bound of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostBreach {
    /// The tree of the run.
    pub tree: RootId,
    /// The number of the event.
    pub seq: u64,
    /// The run.
    pub run: RunId,
    /// The slots that were held, with its own.
    pub held: u32,
    /// The bound that its tree had recorded.
    pub bound: u32,
    /// The account, where its slots are those beyond which the run started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<Account>,
}

/// A slot that a run takes or gives back.
// Slots that are given back come first in a moment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Change {
    at: Timestamp,
    takes: bool,
    tree: RootId,
    seq: u64,
    run: RunId,
    pool: Pool,
    /// The bound of a run that starts; none of one that takes its slot back, which may go on over it.
    bound: Option<u32>,
}

impl HostTree {
    /// Takes in one event. The events come in their order.
    pub fn apply(&mut self, event: &Event) {
        let &Event { root: tree, seq, run, .. } = event;
        let at = event.at.max(self.last);
        match &event.kind {
            EventKind::HostBound { max_concurrent } => {
                self.bounds.insert(None, *max_concurrent);
            }
            EventKind::AccountBound { account, max_concurrent } => {
                self.bounds.insert(Some(account.clone()), *max_concurrent);
            }
            EventKind::Admitted(admitted) => {
                let runtime = admitted.runtime.as_ref().map(Arc::clone);
                runtime.into_iter().for_each(|it| drop(self.runtimes.insert(run, it)));
            }
            EventKind::FellBack { runtime, .. } => {
                self.runtimes.insert(run, Arc::clone(runtime));
            }
            kind @ (EventKind::Starting | EventKind::Returned)
                if !self.holding.contains_key(&run) =>
            {
                let pools = self.pools_of(run);
                for pool in &pools {
                    let bound = self.bounds.get(pool).copied();
                    let bound = bound.filter(|_| *kind == EventKind::Starting);
                    let pool = pool.clone();
                    self.changes.push(Change { at, takes: true, tree, seq, run, pool, bound });
                }
                self.holding.insert(run, pools);
            }
            EventKind::Waiting | EventKind::Resumed { .. } | EventKind::Ended(_) => {
                let given_back =
                    |pool| Change { at, takes: false, tree, seq, run, pool, bound: None };
                let pools = self.holding.remove(&run).into_iter().flatten();
                self.changes.extend(pools.map(given_back));
            }
            // Its runs have held nothing since the supervisor before it died.
            EventKind::Reopened => self.let_go(tree),
            _ => {}
        }
        self.last = at;
    }

    /// The pools that bound a run. In one life of a tree a runtime has one account.
    fn pools_of(&self, run: RunId) -> Vec<Pool> {
        let runtime = self.runtimes.get(&run);
        let bounds = |pool: &&Pool| match pool {
            None => true,
            Some(account) => Some(&account.runtime) == runtime,
        };
        self.bounds.keys().filter(bounds).cloned().collect()
    }

    /// No run holds a slot after the last event.
    fn let_go(&mut self, tree: RootId) {
        let at = self.last;
        for (run, pools) in self.holding.drain() {
            let given_back =
                |pool| Change { at, takes: false, tree, seq: 0, run, pool, bound: None };
            self.changes.extend(pools.into_iter().map(given_back));
        }
        self.bounds.clear();
    }
}

impl HostAudit {
    /// Takes in the slots of a tree, all of whose record was read.
    pub fn add(&mut self, root: RootId, mut tree: HostTree) {
        tree.let_go(root);
        self.changes.extend(tree.changes);
    }

    /// Counts over all trees that were added.
    pub fn finish(mut self) -> HostFindings {
        self.changes.sort_unstable();
        let (mut all, mut findings) = (HashMap::<Pool, u32>::new(), HostFindings::default());
        let mut accounts = BTreeMap::new();
        for Change { takes, tree, seq, run, pool: account, bound, .. } in self.changes {
            let held = all.entry(account.clone()).or_default();
            if !takes {
                *held = held.saturating_sub(1);
                continue;
            }
            *held += 1;
            let held = *held;
            match &account {
                None => findings.peak = findings.peak.max(Some(held)),
                Some(account) => AccountPeak::note(&mut accounts, account, held, bound),
            }
            if let Some(bound) = bound.filter(|bound| held > *bound) {
                findings.breaches.push(HostBreach { tree, seq, run, held, bound, account });
            }
        }
        findings.accounts = accounts.into_values().collect();
        findings
    }
}

impl std::fmt::Display for HostBreach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { tree, seq, run, held, bound, account } = self;
        write!(f, "event {seq} of tree {tree}, run {run}: started as number {held}")?;
        if let Some(account) = account {
            write!(f, " of {account}")?;
        }
        write!(f, " of all trees, of which {bound} may run at once")
    }
}

#[cfg(test)]
mod tests {
    use offshoot_model::{Ending, Reason};

    use super::*;

    /// Builds the record of a tree with this number: runs by their numbers, at these moments.
    fn tree(number: u8, bound: Option<u32>, steps: &[(u64, u8, &str)]) -> (RootId, HostTree) {
        let run =
            |of: u8| RunId::from_bytes([number, of, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let root = RootId::new(run(0));
        let mut tree = HostTree::default();
        let bound = bound.map(|max_concurrent| (0, 0, EventKind::HostBound { max_concurrent }));
        let kind = |word: &str| match word {
            "starts" => EventKind::Starting,
            "waits" => EventKind::Waiting,
            "returns" => EventKind::Returned,
            "killed" => EventKind::Reopened,
            _ => EventKind::Ended(Box::new(Ending::of(Reason::Completed { exit_code: None }))),
        };
        let steps = steps.iter().map(|&(at, of, word)| (at, of, kind(word)));
        for (seq, (at, of, kind)) in bound.into_iter().chain(steps).enumerate() {
            let at = Timestamp::from_micros(at);
            tree.apply(&Event { root, seq: seq as u64 + 1, at, run: run(of), kind });
        }
        (root, tree)
    }

    #[track_caller]
    fn check(trees: Vec<(RootId, HostTree)>, peak: Option<u32>, breaches: &[(u64, u32, u32)]) {
        let mut audit = HostAudit::default();
        trees.into_iter().for_each(|(root, tree)| audit.add(root, tree));
        let found = audit.finish();
        let of = |breach: &HostBreach| (breach.seq, breach.held, breach.bound);
        let all: Vec<_> = found.breaches.iter().map(of).collect();
        assert_eq!((found.peak, &*all), (peak, breaches));
    }

    #[test]
    fn slots_are_counted_over_all_trees() {
        let one = || {
            tree(1, Some(2), &[(1, 1, "starts"), (5, 1, "ends"), (5, 2, "starts"), (9, 2, "ends")])
        };
        check(vec![one()], Some(1), &[]);
        // In one moment a slot is given back before it is taken.
        let two = || tree(2, Some(2), &[(2, 1, "starts"), (9, 1, "ends")]);
        check(vec![one(), two()], Some(2), &[]);
        let three = tree(3, Some(2), &[(6, 1, "starts"), (7, 1, "ends")]);
        check(vec![one(), two(), three], Some(3), &[(2, 3, 2)]);
        // A tree that nothing bounds takes no part.
        check(vec![one(), tree(4, None, &[(2, 1, "starts"), (3, 2, "starts")])], Some(1), &[]);
    }

    #[test]
    fn the_slots_of_each_account_are_counted_over_all_trees() {
        let account =
            |credential: &str| Account::of_credential("claude", &[1; 32], credential.as_bytes());
        let of = |number: u8, credential: &str, runtime: &str| {
            let (root, mut tree) = tree(number, None, &[]);
            let mut seq = 0;
            let mut say = |at: u64, of: u8, kind: EventKind| {
                seq += 1;
                let run = RunId::from_bytes([number, of, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
                tree.apply(&Event { root, seq, at: Timestamp::from_micros(at), run, kind });
            };
            let bound = EventKind::AccountBound { account: account(credential), max_concurrent: 1 };
            say(0, 0, bound);
            let runtime = Arc::from(runtime);
            say(1, 1, EventKind::FellBack { number: 1, runtime, model: None });
            say(2, 1, EventKind::Starting);
            (root, tree)
        };
        check(vec![of(1, "a", "claude"), of(2, "b", "claude")], None, &[]);
        check(vec![of(1, "a", "claude"), of(2, "a", "exec")], None, &[]);
        check(vec![of(1, "a", "claude"), of(2, "a", "claude")], None, &[(3, 2, 1)]);
    }

    #[test]
    fn what_waits_and_what_was_killed_holds_none() {
        let parent = || {
            tree(
                1,
                Some(1),
                &[(1, 1, "starts"), (2, 1, "waits"), (6, 1, "returns"), (9, 1, "ends")],
            )
        };
        let child = tree(2, Some(1), &[(3, 1, "starts"), (5, 1, "ends")]);
        check(vec![parent(), child], Some(1), &[]);
        let late = tree(2, Some(1), &[(3, 1, "starts"), (7, 1, "ends")]);
        // A parent that goes on takes its slot back over the limit; what starts then is one too many.
        check(vec![parent(), late], Some(2), &[]);
        let later = tree(2, Some(1), &[(7, 1, "starts"), (8, 1, "ends")]);
        check(vec![parent(), later], Some(2), &[(2, 2, 1)]);
        // It was killed after 2, and a new supervisor holds it from 8 on.
        let killed = tree(3, Some(1), &[(1, 1, "starts"), (2, 2, "waits"), (8, 0, "killed")]);
        check(vec![killed, tree(2, Some(1), &[(3, 1, "starts")])], Some(1), &[]);
        // The record of one that runs still, or was killed and left, ends.
        check(
            vec![tree(3, Some(1), &[(1, 1, "starts")]), tree(2, Some(1), &[(3, 1, "starts")])],
            Some(1),
            &[],
        );
    }
}
