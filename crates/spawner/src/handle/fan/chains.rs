//! Pieces that read the answers of others as their input, one after the other. Of such a chain one piece has a part in the answer: the
//! last, or the first that did not complete.

use std::collections::HashMap;

use offshoot_model::{OnNeedFailed, Refusal};

use super::Piece;
use crate::error::SpawnerError;
use crate::machine::Past;
use crate::message::FanEvent;

/// The chains of the pieces of one request, in the order of their first pieces. A piece on its own is a chain of one.
#[derive(Debug)]
pub(super) struct Chains {
    /// The place of each piece in its chain.
    links: Vec<Link>,
    /// For each chain: true once its outcome is known.
    known: Vec<bool>,
    /// For each chain of which a piece did not complete: the number of that one, from 1.
    failed_at: HashMap<u32, u32>,
}

/// A piece of a chain.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    chain: u32,
    /// From 1.
    number: u32,
    is_last: bool,
}

impl Chains {
    /// Finds the chains; none where each piece is on its own. The pieces need each other in no cycle.
    ///
    /// # Errors
    ///
    /// A piece that reads an answer and does not need exactly one, and two pieces that read the same answer.
    pub(super) fn of(pieces: &[Piece]) -> Result<Option<Self>, SpawnerError> {
        if !pieces.iter().any(|piece| piece.reads_need) {
            return Ok(None);
        }
        let mut read_by: Vec<Option<usize>> = vec![None; pieces.len()];
        for (place, piece) in pieces.iter().enumerate().filter(|(_, piece)| piece.reads_need) {
            let wrong = match &*piece.needs {
                [_] if piece.on_need_failed == OnNeedFailed::Run => "starts without it",
                [_] if piece.input.is_some() => "has another input",
                [need] => match read_by[need.place as usize].replace(place) {
                    None => continue,
                    Some(_) => "is not the only one",
                },
                _ => "does not need exactly one",
            };
            let message =
                format!("the piece {} reads the answer that it needs, and {wrong}", place + 1);
            return Err(Refusal::invalid("needs", message).into());
        }
        let mut links = vec![Link::default(); pieces.len()];
        let firsts = (0..pieces.len()).filter(|&place| !pieces[place].reads_need);
        let mut chains = 0;
        for (first, chain) in firsts.zip(0..) {
            let along = std::iter::successors(Some(first), |&place| read_by[place]);
            for (place, number) in along.zip(1..) {
                links[place] = Link { chain, number, is_last: read_by[place].is_none() };
            }
            chains += 1;
        }
        Ok(Some(Self { links, known: vec![false; chains], failed_at: HashMap::new() }))
    }

    /// Returns the number of the piece that kept a chain from completing, from 1.
    pub(super) fn failed_at(&self, chain: u32) -> Option<u32> {
        self.failed_at.get(&chain).copied()
    }

    /// Makes of what is told of a piece what is told of its chain, if that is its outcome.
    pub(super) fn outcome(&mut self, mut event: FanEvent) -> Option<FanEvent> {
        let (place, completed) = match &mut event {
            FanEvent::Ended { place, envelope } => (place, envelope.status.is_success()),
            FanEvent::Over { place, past, .. } => (place, matches!(past, Past::Completed(_))),
            FanEvent::Refused { place, .. } => (place, false),
        };
        let Link { chain, number, is_last } = self.links[*place as usize];
        // Those behind a piece that did not complete are skipped.
        if completed && !is_last || std::mem::replace(&mut self.known[chain as usize], true) {
            return None;
        }
        if !completed {
            self.failed_at.insert(chain, number);
        }
        *place = chain;
        Some(event)
    }
}

#[cfg(test)]
mod tests;
