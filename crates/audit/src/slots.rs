//! The holders of slots, counted again: in the whole tree, and below each run whose own rules say something else.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use offshoot_model::{Account, EventKind, Rules, RunId};

use crate::host::AccountPeak;
use crate::rule::Rule;

/// Slots in use.
#[derive(Default)]
pub(crate) struct Holders {
    pub(crate) tree: Slots,
    /// The slots in use strictly below a run.
    below: HashMap<RunId, Slots>,
    /// The most that all trees of the user may hold, of which this tree cannot hold more.
    of_host: Option<u32>,
    /// The same of the runs of each account, by the name of its runtime: in one life of a tree a runtime has one account.
    of_accounts: HashMap<Arc<str>, OfAccount>,
    /// The runtimes of the runs that hold a slot of their account.
    runtimes: HashMap<RunId, Arc<str>>,
    /// The most that were held at once of each account, in all lives of the tree.
    pub(crate) peaks: BTreeMap<Account, AccountPeak>,
}

/// The slots of one account.
#[derive(Clone)]
struct OfAccount {
    account: Account,
    most: u32,
    held: u32,
}

impl Holders {
    /// Checks if a run may start at this depth below these runs; in words why not.
    pub(crate) fn check_start<'a>(
        &self,
        depth: u32,
        rules: Option<&Rules>,
        above: impl Iterator<Item = (RunId, &'a Rules)>,
    ) -> Option<String> {
        let in_tree = rules.and_then(|rules| self.tree.check_start(depth, rules).err());
        let over_all = self.of_host.filter(|most| self.tree.held >= *most).map(|most| {
            format!("started while {} held a slot, and {most} of all trees may", self.tree.held)
        });
        in_tree.or(over_all).or_else(|| {
            let mut above =
                above.filter_map(|(run, rules)| Some((run, self.below.get(&run)?, rules)));
            above.find_map(|(run, slots, rules)| {
                let message = slots.check_start(depth, rules).err()?;
                Some(format!("{message} below run {run}"))
            })
        })
    }

    /// Checks if a run of this runtime may start as far as its account is concerned; in words why not.
    pub(crate) fn check_account(&self, runtime: &str) -> Option<String> {
        let &OfAccount { most, held, .. } = self.of_accounts.get(runtime)?;
        (held >= most).then(|| {
            format!("started while {held} of `{runtime}` held a slot, and {most} of all trees may")
        })
    }

    /// Takes in what bounds all trees of the user; in words what is wrong with it. One run may always run whatever memory is left, so some
    /// must hold a slot.
    pub(crate) fn of_host(&mut self, kind: &EventKind) -> Option<(Rule, String)> {
        let wrong = match kind {
            EventKind::MemoryShort(_) if self.tree.held == 0 => {
                (Rule::Memory, "waits for memory although no run held a slot")
            }
            EventKind::MemoryShort(shortage) if !shortage.is_short() => {
                (Rule::Memory, "waits for memory although its numbers say that there is enough")
            }
            EventKind::HostBound { max_concurrent } => {
                self.of_host = Some(*max_concurrent);
                return None;
            }
            EventKind::AccountBound { account, max_concurrent } => {
                let of = OfAccount { account: account.clone(), most: *max_concurrent, held: 0 };
                self.of_accounts.insert(Arc::clone(&account.runtime), of);
                return None;
            }
            EventKind::AccountFull { account }
                if !self.of_accounts.contains_key(&account.runtime) =>
            {
                let waits = "waits for runs of its account although nothing bounds them";
                (Rule::Concurrency, waits)
            }
            EventKind::HostFull if self.of_host.is_none() => {
                (Rule::Concurrency, "waits for runs of other trees although nothing bounds them")
            }
            _ => return None,
        };
        Some((wrong.0, wrong.1.to_owned()))
    }

    /// A run of this runtime holds a slot, and one of its account, if that is bounded.
    pub(crate) fn take(
        &mut self,
        run: RunId,
        runtime: Option<&Arc<str>>,
        depth: u32,
        above: &[RunId],
    ) {
        self.tree.take(depth);
        for run in above {
            self.below.entry(*run).or_default().take(depth);
        }
        if let Some(runtime) = runtime
            && let Some(account) = self.of_accounts.get_mut(runtime)
        {
            account.held += 1;
            AccountPeak::note(&mut self.peaks, &account.account, account.held, Some(account.most));
            self.runtimes.insert(run, Arc::clone(runtime));
        }
    }

    /// A run holds no slot any more, and none of its account.
    pub(crate) fn give_back(&mut self, run: RunId, depth: u32, above: &[RunId]) {
        self.tree.give_back(depth);
        for run in above {
            self.below.get_mut(run).expect("it was taken there").give_back(depth);
        }
        let runtime = self.runtimes.remove(&run);
        if let Some(account) = runtime.and_then(|runtime| self.of_accounts.get_mut(&runtime)) {
            account.held -= 1;
        }
    }

    /// Nothing holds any.
    pub(crate) fn clear(&mut self) {
        self.tree.clear();
        self.below.clear();
        self.of_host = None;
        self.of_accounts.clear();
        self.runtimes.clear();
    }
}

/// Slots in use in one part of the tree, and at each depth of it.
#[derive(Default)]
pub(crate) struct Slots {
    held: u32,
    level: Vec<u32>,
    pub(crate) peak: u32,
    pub(crate) peak_per_level: Vec<u32>,
}

impl Slots {
    /// Checks that a run may start at this depth; the error says why it may not.
    fn check_start(&self, depth: u32, rules: &Rules) -> Result<(), String> {
        let here = self.level.get(depth as usize).copied().unwrap_or(0);
        if self.held >= rules.max_concurrent {
            return Err(format!(
                "started while {} held a slot, and {} may",
                self.held, rules.max_concurrent
            ));
        }
        match rules.max_concurrent_per_level {
            Some(most) if here >= most => {
                Err(format!("started while {here} at depth {depth} held a slot, and {most} may"))
            }
            _ => Ok(()),
        }
    }

    fn take(&mut self, depth: u32) {
        let at = depth as usize;
        if self.level.len() <= at {
            self.level.resize(at + 1, 0);
            self.peak_per_level.resize(at + 1, 0);
        }
        self.level[at] += 1;
        self.held += 1;
        self.peak = self.peak.max(self.held);
        self.peak_per_level[at] = self.peak_per_level[at].max(self.level[at]);
    }

    fn clear(&mut self) {
        self.held = 0;
        self.level.fill(0);
    }

    fn give_back(&mut self, depth: u32) {
        self.level[depth as usize] -= 1;
        self.held -= 1;
    }
}
