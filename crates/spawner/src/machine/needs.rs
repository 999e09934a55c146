//! Runs that need the answers of others. Such a run stands in no line before all that it needs is over; where one of these did
//! not complete, it is skipped unless it was asked for in another way. An edge costs the same however many there are.
//!
//! A run is asked for behind all that it needs, so what it needs is known here, or was refused.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use offshoot_model::{Ending, Need, OnNeedFailed, Reason, RunId};

use super::Machine;
use super::run::{Body, RunIndex};

/// The needs of the runs of one tree.
#[derive(Debug, Default)]
pub(super) struct Needs {
    /// The last run of each piece, by its place.
    places: Vec<Option<RunIndex>>,
    /// The runs that need others and are not over.
    of: HashMap<RunIndex, Needing>,
    /// The runs that need a run that is not over.
    needed_by: HashMap<RunIndex, Vec<RunIndex>>,
    /// The runs that are over since they were looked at last, and those that need them.
    over: VecDeque<Over>,
}

/// A piece whose answer another piece needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NeededPiece {
    /// The name by which it is known there.
    pub(crate) name: Arc<str>,
    /// The place among all pieces that the owner has asked for.
    pub(crate) place: u32,
}

/// A run that needs others.
#[derive(Debug)]
struct Needing {
    needs: Vec<(Arc<str>, Option<RunIndex>)>,
    on_failed: OnNeedFailed,
    /// The number of these that are not over.
    open: usize,
    /// The number of the last event that ended one of these which may not repeat; 0 where there is none.
    over_at: u64,
}

/// The end of a run that others need.
#[derive(Debug)]
struct Over {
    run: RunIndex,
    reason: Reason,
    needed_by: Vec<RunIndex>,
}

/// The next step of a run with regard to what it needs.
#[derive(Debug, PartialEq, Eq)]
enum Standing {
    /// Everything it needs is over.
    Ready,
    /// Something it needs is not over.
    Held,
    /// The run of this name, which it needs, did not complete.
    Skipped(Arc<str>),
}

#[cfg(test)]
impl Needs {
    /// True if nothing is noted of runs that are not over.
    pub(super) fn is_empty(&self) -> bool {
        self.of.is_empty() && self.needed_by.is_empty() && self.over.is_empty()
    }
}

impl Machine {
    /// Returns the needed pieces as the record names them: each by its last run.
    pub(crate) fn needed_runs(&self, pieces: &[NeededPiece]) -> Vec<Need> {
        let run = |place: u32| Some(self.id((*self.needs.places.get(place as usize)?)?));
        let need = |piece: &NeededPiece| Need { name: piece.name.clone(), run: run(piece.place) };
        pieces.iter().map(need).collect()
    }

    /// Notes what a run that was admitted needs, in a live step or as the record says.
    pub(super) fn note_needs(
        &mut self,
        run: RunIndex,
        place: Option<u32>,
        needs: &[Need],
        on_failed: OnNeedFailed,
    ) {
        if let Some(place) = place.map(|place| place as usize) {
            let places = &mut self.needs.places;
            if places.len() <= place {
                places.resize(place + 1, None);
            }
            places[place] = Some(run);
        }
        if needs.is_empty() {
            return;
        }
        let find = |need: &Need| (Arc::clone(&need.name), need.run.and_then(|run| self.find(run)));
        let needs: Vec<_> = needs.iter().map(find).collect();
        let lives = |run: &RunIndex| self.runs.live(*run).is_some();
        let open: Vec<RunIndex> = needs.iter().filter_map(|(_, run)| *run).filter(lives).collect();
        // The end of one that is over stands before this in the record.
        let over_at = if open.len() == needs.len() { 0 } else { self.seq };
        for &needed in &open {
            self.needs.needed_by.entry(needed).or_default().push(run);
        }
        self.needs.of.insert(run, Needing { needs, on_failed, open: open.len(), over_at });
    }

    /// Forgets what a run that is over needs, and returns the runs that need it: for each, one thing less is open. Where the run may
    /// repeat, its end may be lost together with the start of a run that needs it: both are done again.
    pub(super) fn no_longer_needed(&mut self, run: RunIndex, may_repeat: bool) -> Vec<RunIndex> {
        self.needs.of.remove(&run);
        let needed_by = self.needs.needed_by.remove(&run).unwrap_or_default();
        for next in &needed_by {
            if let Some(needing) = self.needs.of.get_mut(next) {
                needing.open -= 1;
                if !may_repeat {
                    needing.over_at = self.seq;
                }
            }
        }
        needed_by
    }

    /// A run is over that these need. They are looked at once all that the step ends has ended: what stops a whole tree
    /// is the reason of each of its runs.
    pub(super) fn over_for(&mut self, run: RunIndex, reason: Reason, needed_by: Vec<RunIndex>) {
        if !needed_by.is_empty() {
            self.needs.over.push_back(Over { run, reason, needed_by });
        }
    }

    /// True if runs are over of which those that need them have not heard.
    pub(super) fn has_needs_over(&self) -> bool {
        !self.needs.over.is_empty()
    }

    /// Lets the runs that needed what is over stand in line, or skips them.
    pub(super) fn go_on_without_needs(&mut self) {
        let mut ready = Vec::new();
        while let Some(Over { run, reason, needed_by }) = self.needs.over.pop_front() {
            for next in needed_by {
                // The owner of a piece that was read back has to hand in its task first.
                if !self.is_in_line(next) || self.unclaimed.contains(&next) {
                    continue;
                }
                let needing = &self.needs.of[&next];
                let is_failure = !reason.status().is_success();
                if is_failure && needing.on_failed == OnNeedFailed::Skip {
                    let is_it = |(_, needed): &&(Arc<str>, Option<RunIndex>)| *needed == Some(run);
                    let (name, _) =
                        needing.needs.iter().find(is_it).expect("it is among what is needed");
                    self.finished(next, Ending::of(because_of(name, &reason)));
                } else if needing.open == 0 {
                    ready.push(next);
                }
            }
        }
        // At the head of the line: what was begun is finished before more is begun.
        for run in ready.into_iter().rev() {
            self.put_back(run);
        }
    }

    /// A run that is counted among those in line takes its place there as soon as all that it needs is over.
    pub(super) fn take_place_when_ready(&mut self, run: RunIndex) {
        match self.standing(run) {
            Standing::Ready => self.take_place(run),
            Standing::Held => {}
            Standing::Skipped(need) => {
                let need = need.to_string();
                self.finished(run, Ending::of(Reason::NeedFailed { need }));
            }
        }
    }

    /// Returns the needed runs that completed, each with the name by which it is known there.
    pub(super) fn answers_for(&self, run: RunIndex) -> Vec<(Arc<str>, RunId)> {
        let Some(needing) = self.needs.of.get(&run) else { return Vec::new() };
        let completed = |(name, run): &(Arc<str>, Option<RunIndex>)| {
            let run = &self.runs[(*run)?];
            run.status().is_success().then(|| (Arc::clone(name), run.id))
        };
        needing.needs.iter().filter_map(completed).collect()
    }

    /// True if a run that is not over needs the answers of others.
    pub(crate) fn has_needs(&self) -> bool {
        !self.needs.of.is_empty()
    }

    /// Returns the number up to which the record has to be durable before a run starts: all answers that it needs are in it, but those
    /// that are made again where they are lost.
    pub(super) fn answers_recorded_at(&self, run: RunIndex) -> u64 {
        self.needs.of.get(&run).map_or(0, |needing| needing.over_at)
    }

    fn standing(&self, run: RunIndex) -> Standing {
        let Some(needing) = self.needs.of.get(&run) else { return Standing::Ready };
        if needing.on_failed == OnNeedFailed::Skip {
            // One that was refused is not there.
            let has_failed = |run: RunIndex| match self.runs[run].body {
                Body::Ended(status) => !status.is_success(),
                Body::Live(_) => false,
            };
            if let Some((name, _)) =
                needing.needs.iter().find(|(_, run)| run.is_none_or(has_failed))
            {
                return Standing::Skipped(Arc::clone(name));
            }
        }
        if needing.open == 0 { Standing::Ready } else { Standing::Held }
    }
}

/// Returns the reason of a run that is skipped because one that it needs ended in this way: who cancels a run cancels what
/// needs it.
fn because_of(name: &str, reason: &Reason) -> Reason {
    match reason {
        Reason::Cancelled { by } => Reason::Cancelled { by: *by },
        _ => Reason::NeedFailed { need: name.to_owned() },
    }
}
