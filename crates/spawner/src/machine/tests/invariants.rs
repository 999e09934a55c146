//! What must hold after every step, counted from the effects alone.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use offshoot_model::{Admitted, EventKind, Origin, RootId, RunId, RunStatus};

use super::super::{Effect, Machine, RunIndex};
use super::world::Limits;

/// The books that the test keeps beside the machine.
pub(super) struct Ledger {
    pub(super) root: RootId,
    limits: Limits,
    seq: u64,
    admitted: HashMap<RunId, Admitted>,
    ended: BTreeMap<RunId, RunStatus>,
    holding: BTreeSet<RunId>,
    all_ended: u32,
    spawns: u32,
    pub(super) deepest: u32,
    pub(super) most_holding: usize,
    /// What has happened, and how often.
    pub(super) seen: BTreeMap<&'static str, u32>,
}

impl Ledger {
    pub(super) fn new(root: RootId, limits: Limits) -> Self {
        Self {
            root,
            limits,
            seq: 0,
            admitted: HashMap::new(),
            ended: BTreeMap::new(),
            holding: BTreeSet::new(),
            all_ended: 0,
            spawns: 0,
            deepest: 0,
            most_holding: 0,
            seen: BTreeMap::new(),
        }
    }

    pub(super) fn note(&mut self, effect: &Effect, machine: &Machine) {
        match effect {
            Effect::Record(event) => {
                assert_eq!(event.root, self.root, "one_tree_one_supervisor");
                assert_eq!(event.seq, self.seq + 1, "kept events are numbered without gaps");
                self.seq = event.seq;
                self.recorded(event.run, &event.kind);
            }
            Effect::Start { run } => {
                let id = machine.id(*run);
                assert!(
                    self.holding.contains(&id),
                    "what starts holds a slot, and that is on record"
                );
                assert!(self.admitted.contains_key(&id), "what starts was admitted");
            }
            Effect::Ended { envelope, .. } => {
                let id = envelope.run_id;
                assert_eq!(self.ended.get(&id), Some(&envelope.status), "recorded before told");
            }
            Effect::AllEnded => self.all_ended += 1,
            Effect::Show(_)
            | Effect::Stop { .. }
            | Effect::Reply { .. }
            | Effect::Resolve { .. } => {}
        }
    }

    fn recorded(&mut self, run: RunId, kind: &EventKind) {
        assert!(!self.ended.contains_key(&run), "nothing is recorded of a run after its end");
        *self.seen.entry(kind.name()).or_default() += 1;
        match kind {
            EventKind::Admitted(admitted) => {
                let depth = admitted.depth;
                assert!(depth <= self.limits.max_depth, "no run is deeper than the limit");
                self.deepest = self.deepest.max(depth);
                self.spawns += u32::from(admitted.origin == Origin::Agent);
                assert!(
                    self.spawns <= self.limits.max_spawns,
                    "agents spawn no more than the limit"
                );
                let before = self.admitted.insert(run, (**admitted).clone());
                assert!(before.is_none(), "a run is admitted once");
            }
            EventKind::Starting => {
                let cap = self.limits.max_concurrent as usize;
                assert!(self.holding.len() < cap, "nobody starts at the cap");
                let depth = self.admitted[&run].depth;
                let here =
                    self.holding.iter().filter(|id| self.admitted[id].depth == depth).count();
                let level_cap = self.limits.per_level.map_or(usize::MAX, |cap| cap as usize);
                assert!(here < level_cap, "nobody starts on a full level");
                assert!(self.holding.insert(run), "a run starts once");
                self.most_holding = self.most_holding.max(self.holding.len());
            }
            EventKind::Waiting => assert!(self.holding.remove(&run), "only a holder lends"),
            EventKind::Returned => {
                assert!(self.holding.insert(run), "only what was lent comes back");
                let in_debt = self.holding.len() > self.limits.max_concurrent as usize;
                *self.seen.entry("in debt").or_default() += u32::from(in_debt);
            }
            EventKind::Ended(ending) => {
                self.holding.remove(&run);
                assert!(ending.status().is_terminal());
                *self.seen.entry(ending.status().as_str()).or_default() += 1;
                self.ended.insert(run, ending.status());
            }
            _ => {}
        }
    }

    pub(super) fn assert_step(&self, machine: &Machine) {
        assert_eq!(self.holding.len(), machine.active() as usize, "no slot leaked");
        assert_eq!(
            self.admitted.len() - self.ended.len(),
            machine.live(),
            "live is what is not over"
        );
    }

    pub(super) fn assert_ended(&self) {
        assert_eq!(self.admitted.len(), self.ended.len(), "every run ends in exactly one state");
        assert_eq!(self.all_ended, 1, "the end of the tree is told once");
    }

    pub(super) fn holding(&self, machine: &Machine) -> BTreeSet<RunIndex> {
        self.holding.iter().filter_map(|&id| machine.find(id)).collect()
    }

    pub(super) fn status(&self, run: RunId) -> Option<RunStatus> {
        self.ended.get(&run).copied()
    }

    pub(super) fn admitted(&self, run: RunId) -> &Admitted {
        &self.admitted[&run]
    }

    pub(super) fn count(&self, status: RunStatus) -> usize {
        self.ended.values().filter(|&&ended| ended == status).count()
    }
}
