//! The pieces that stand in the record of an earlier supervisor.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use offshoot_model::{Envelope, RunId};

use crate::machine::{Past, RunIndex};

/// The recorded pieces by their place, until their owner asks for them.
#[derive(Default)]
pub(crate) struct RecordedPieces {
    by_place: HashMap<u32, Recorded>,
    /// The places of those whose end is not on record yet.
    places: HashMap<RunIndex, u32>,
    /// The runs that had the places of pieces that run again.
    again: HashMap<u32, RunId>,
    /// Of the pieces that stand in no record, only those with this label run; all of them where absent.
    only: Option<Arc<str>>,
}

/// A piece that stands in the record.
pub(crate) enum Recorded {
    /// The piece is over.
    Over {
        /// The run of the piece.
        run: RunId,
        /// The outcome of the piece.
        past: Past,
    },
    /// The piece is not over. Its owner has to say what it takes to run it.
    Lives {
        /// The index of its run in the tree.
        run: RunIndex,
        /// Letters that may not have reached it.
        letters: Vec<Arc<str>>,
        /// True if its runtime goes on where it was.
        continues: bool,
    },
    /// The piece ended when the tree was taken over, and the record of that may be on its way.
    Ending {
        /// The index of its run in the tree.
        run: RunIndex,
        /// True if it was being cancelled because the answer stood without it.
        unneeded: bool,
    },
}

impl RecordedPieces {
    pub(crate) fn insert(&mut self, place: u32, piece: Recorded) {
        if let Some(run) = piece.run() {
            self.places.insert(run, place);
        }
        self.by_place.insert(place, piece);
    }

    /// With pieces that run again, and with the label that a piece must have to run.
    pub(crate) fn with_again(self, again: HashMap<u32, RunId>, only: Option<Arc<str>>) -> Self {
        Self { again, only, ..self }
    }

    /// Returns the run that had the place of a piece, if the piece runs again.
    pub(super) fn instead(&self, place: u32) -> Option<RunId> {
        self.again.get(&place).copied()
    }

    /// Returns the label that a piece at this place would have to have to run, if it has another one.
    pub(super) fn excludes(&self, place: u32, label: Option<&str>) -> Option<&str> {
        let only = self.only.as_deref()?;
        (label != Some(only) && !self.again.contains_key(&place)).then_some(only)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_place.is_empty() && self.only.is_none()
    }

    /// Returns the number of pieces at these places that have failed.
    pub(super) fn failed(&self, places: Range<u32>) -> u32 {
        if self.is_empty() {
            return 0;
        }
        let has_failed = |place: &u32| match self.by_place.get(place) {
            Some(Recorded::Over { past, .. }) => past.has_failed(),
            Some(Recorded::Ending { unneeded, .. }) => !unneeded,
            Some(Recorded::Lives { .. }) | None => false,
        };
        u32::try_from(places.filter(has_failed).count()).expect("no more than there are places")
    }

    /// The owner asks for the piece at this place.
    pub(super) fn take(&mut self, place: u32) -> Option<Recorded> {
        let piece = self.by_place.remove(&place)?;
        if let Some(run) = piece.run() {
            self.places.remove(&run);
        }
        Some(piece)
    }

    /// A run is over before its owner has asked for it, if it is one of these; the record of that is durable.
    pub(super) fn ended(&mut self, run: RunIndex, envelope: Envelope) {
        let Some(place) = self.places.remove(&run) else { return };
        let piece = self.by_place.get_mut(&place).expect("a recorded piece has lost its place");
        if !matches!(piece, Recorded::Ending { unneeded: true, .. }) {
            *piece = Recorded::Over { run: envelope.run_id, past: Past::of(envelope) };
        }
    }
}

impl Recorded {
    /// The run whose end is not on record yet.
    fn run(&self) -> Option<RunIndex> {
        match self {
            Self::Lives { run, .. } | Self::Ending { run, .. } => Some(*run),
            Self::Over { .. } => None,
        }
    }
}
