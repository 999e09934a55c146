//! The runs of a tree, over or not, in the order in which they were admitted.

use std::collections::HashMap;
use std::ops::{Index, IndexMut};

use derive_more::{Deref, DerefMut};
use offshoot_model::RunId;

use super::run::{Live, Run, RunIndex};

/// All runs of one tree.
#[derive(Debug, Default, Deref, DerefMut)]
pub(crate) struct Runs {
    #[deref]
    #[deref_mut]
    list: Vec<Run>,
    index: HashMap<RunId, RunIndex>,
}

impl Runs {
    /// Puts a run behind the others.
    pub(super) fn add(&mut self, run: Run) -> RunIndex {
        let place = RunIndex::new(self.list.len());
        let before = self.index.insert(run.id, place);
        assert!(before.is_none(), "run ids are minted once");
        self.list.push(run);
        place
    }

    /// Returns the place of a run.
    pub(super) fn find(&self, run: RunId) -> Option<RunIndex> {
        self.index.get(&run).copied()
    }

    /// Returns the places of all runs.
    pub(super) fn places(&self) -> impl DoubleEndedIterator<Item = RunIndex> + use<> {
        (0..self.list.len()).map(RunIndex::new)
    }

    /// Returns a run while it is not over.
    pub(super) fn live(&self, run: RunIndex) -> Option<&Live> {
        self[run].live()
    }

    /// Returns the same, to change it.
    pub(super) fn live_mut(&mut self, run: RunIndex) -> Option<&mut Live> {
        self[run].live_mut()
    }

    /// Returns a run while an attempt of it runs or waits; none while it stands in line for an attempt.
    pub(super) fn running(&self, run: RunIndex) -> Option<&Live> {
        self[run].running()
    }

    /// Returns the root while it is not over.
    pub(super) fn root(&self) -> Option<&Live> {
        self.list.first()?.live()
    }

    /// Returns the runs above a run, its parent first.
    pub(super) fn above(&self, run: RunIndex) -> impl Iterator<Item = RunIndex> {
        std::iter::successors(self[run].parent, |run| self[*run].parent)
    }
}

impl Index<RunIndex> for Runs {
    type Output = Run;

    fn index(&self, run: RunIndex) -> &Run {
        &self.list[run.get()]
    }
}

impl IndexMut<RunIndex> for Runs {
    fn index_mut(&mut self, run: RunIndex) -> &mut Run {
        &mut self.list[run.get()]
    }
}
