//! The number of times that each value was given.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::{self, Write};

use indexmap::IndexMap;
use offshoot_model::{ContentHash, Payload, VariableRef};

use super::identity;
use crate::text;
use crate::values::Source;

/// Holds each distinct value once: as it was first written, in request order, under what makes it equal to
/// others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vote {
    /// An index map keeps the hashes, so that growing does not read a million scattered keys again.
    candidates: IndexMap<Box<[u8]>, Candidate>,
    /// Kept between pushes, so that a value that was given before costs no memory.
    identity: Vec<u8>,
    /// Stored values that were read: which candidate each is.
    read: HashMap<ContentHash, usize>,
    /// The one that was read last, with its identity, until it is voted for.
    learned: Option<(ContentHash, Vec<u8>)>,
}

/// One distinct value.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) value: Payload,
    pub(crate) count: u64,
    /// The first place in the request at which it stands.
    first: u32,
}

impl Vote {
    /// Gives the candidate that was voted for.
    pub(super) fn push(&mut self, index: u32, value: Payload) -> &Candidate {
        let stored = match &value {
            Payload::Stored(reference) => Some(reference.hash),
            Payload::Text(_) | Payload::Json(_) => None,
        };
        let known = stored.and_then(|hash| self.read.get(&hash).copied());
        let at = known.or_else(|| {
            self.identity.clear();
            match self.learned.take_if(|(hash, _)| Some(*hash) == stored) {
                Some((_, identity)) => self.identity = identity,
                None => identity::write(&value, &mut self.identity),
            }
            self.candidates.get_index_of(self.identity.as_slice())
        });
        let at = match at {
            Some(at) => {
                let candidate = &mut self.candidates[at];
                candidate.count += 1;
                if index < candidate.first {
                    (candidate.first, candidate.value) = (index, value);
                }
                at
            }
            None => {
                let candidate = Candidate { value, count: 1, first: index };
                self.candidates.insert_full(self.identity.as_slice().into(), candidate).0
            }
        };
        if let Some(hash) = stored {
            self.read.insert(hash, at);
        }
        &self.candidates[at]
    }

    /// The stored value that has to be read before it is voted for, if this is one.
    pub(super) fn unread(&self, value: &Payload) -> Option<VariableRef> {
        identity::unread(value).filter(|reference| !self.read.contains_key(&reference.hash))
    }

    /// Takes in what a stored value says, which is voted for next.
    pub(super) fn learn(&mut self, reference: &VariableRef, bytes: &[u8]) {
        let identity = identity::of_read(reference.kind, bytes);
        self.learned = identity.map(|identity| (reference.hash, identity));
    }

    /// The most frequent value; among equals the one that stands first in the request, so that the answer does not
    /// depend on who was faster.
    pub(crate) fn winner(&self) -> Option<&Candidate> {
        self.candidates.values().max_by_key(|candidate| (candidate.count, Reverse(candidate.first)))
    }

    /// Returns how many values were given most often, and how often, where it is more than one.
    pub(crate) fn tie(&self) -> Option<(usize, u64)> {
        let most = self.winner()?.count;
        let tied = self.candidates.values().filter(|candidate| candidate.count == most).count();
        (tied > 1).then_some((tied, most))
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &Payload> {
        self.candidates.values().map(|candidate| &candidate.value)
    }

    pub(crate) fn write(&self, source: &mut Source<'_>, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(b"{\"winner\":")?;
        match self.winner() {
            Some(winner) => text::json(&winner.value, source, out)?,
            None => out.write_all(b"null")?,
        }
        if self.tie().is_some() {
            out.write_all(b",\"tie\":true")?;
        }
        out.write_all(b",\"votes\":{")?;
        let mut ordered: Vec<&Candidate> = self.candidates.values().collect();
        ordered.sort_unstable_by_key(|candidate| candidate.first);
        for (position, candidate) in ordered.into_iter().enumerate() {
            if position > 0 {
                out.write_all(b",")?;
            }
            text::name(&candidate.value, source, out)?;
            write!(out, ":{{\"count\":{},\"value\":", candidate.count)?;
            text::json(&candidate.value, source, out)?;
            out.write_all(b"}")?;
        }
        out.write_all(b"}}")
    }
}
