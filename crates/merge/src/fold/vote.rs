//! How often each value was given.

use std::cmp::Reverse;
use std::io::{self, Write};

use indexmap::IndexMap;
use offshoot_model::Payload;

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
        self.identity.clear();
        identity::write(&value, &mut self.identity);
        match self.candidates.get_index_of(self.identity.as_slice()) {
            Some(at) => {
                let candidate = &mut self.candidates[at];
                candidate.count += 1;
                if index < candidate.first {
                    (candidate.first, candidate.value) = (index, value);
                }
                &self.candidates[at]
            }
            None => {
                let identity = self.identity.as_slice().into();
                let candidate = Candidate { value, count: 1, first: index };
                self.candidates.entry(identity).or_insert(candidate)
            }
        }
    }

    /// The most frequent value; among equals the one that stands first in the request, so that the answer does not
    /// depend on who was faster.
    pub(crate) fn winner(&self) -> Option<&Candidate> {
        self.candidates.values().max_by_key(|candidate| (candidate.count, Reverse(candidate.first)))
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
