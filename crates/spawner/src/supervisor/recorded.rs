//! The pieces that stand in the record of an earlier supervisor.

use std::collections::HashMap;
use std::sync::Arc;

use offshoot_model::Envelope;

use crate::machine::RunIndex;

/// The recorded pieces by their place, until their owner asks for them.
#[derive(Default)]
pub(crate) struct RecordedPieces {
    by_place: HashMap<u32, Recorded>,
    /// The places of those that live.
    places: HashMap<RunIndex, u32>,
}

/// A piece that stands in the record.
pub(crate) enum Recorded {
    /// The piece is over.
    Ended(Box<Envelope>),
    /// The piece is not over, or the record of its end is on its way. Its owner has to say what it takes to run it.
    Lives {
        /// Its place in the tree.
        run: RunIndex,
        /// Letters that may not have reached it.
        letters: Vec<Arc<str>>,
    },
}

impl RecordedPieces {
    pub(crate) fn insert(&mut self, place: u32, piece: Recorded) {
        if let Recorded::Lives { run, .. } = piece {
            self.places.insert(run, place);
        }
        self.by_place.insert(place, piece);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_place.is_empty()
    }

    /// The owner asks for the piece at this place.
    pub(super) fn take(&mut self, place: u32) -> Option<Recorded> {
        let piece = self.by_place.remove(&place)?;
        if let Recorded::Lives { run, .. } = piece {
            self.places.remove(&run);
        }
        Some(piece)
    }

    /// A run is over before its owner has asked for it, if it is one of these; the record of that is durable.
    pub(super) fn ended(&mut self, run: RunIndex, envelope: Box<Envelope>) {
        if let Some(place) = self.places.remove(&run) {
            self.by_place.insert(place, Recorded::Ended(envelope));
        }
    }
}
