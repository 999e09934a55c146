//! Reading what agents said, from the files, also while they are written.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use offshoot_model::{RootId, RunId};

use super::frame::{self, Kind, number};
use super::slot::{EntryHead, SlotHead};
use super::{AttemptId, OUTPUT, SMALL, Said, SaidPart};
use crate::below::{Below, if_there};
use crate::{DataFolder, StoreError};

/// Reads what the agents of one tree said. Each reading goes on where the one before it ended.
#[derive(derive_more::Debug)]
#[debug("OutputReader({root:?})")]
pub struct OutputReader {
    folder: DataFolder,
    root: RootId,
    /// The part of each file of many attempts that was read.
    small: HashMap<String, u64>,
    files: HashMap<String, Place>,
    /// The bytes that were told of attempts with a file of their own.
    told: HashMap<AttemptId, u64>,
}

/// A place in the file of an attempt.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    slot: u32,
    /// The bytes of the slot's frames that were read.
    at: u32,
    over: bool,
}

/// The place at which something new was found.
enum Found {
    Entry { file: String, from: u64, filled: u32 },
    File(String),
}

impl OutputReader {
    /// A reader that has read nothing. A tree of which nothing was kept has nothing to read.
    pub fn new(folder: &DataFolder, root: RootId) -> Self {
        Self {
            folder: folder.clone(),
            root,
            small: HashMap::new(),
            files: HashMap::new(),
            told: HashMap::new(),
        }
    }

    /// Tells what has come since the last reading of the runs that are wanted: one attempt after the other, the earlier first.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read, and what `tell` answers.
    pub fn read<E: From<StoreError>>(
        &mut self,
        mut wanted: impl FnMut(RunId) -> bool,
        mut tell: impl FnMut(Said) -> Result<(), E>,
    ) -> Result<(), E> {
        let name = format!("{OUTPUT}/{}", self.root);
        let path = self.folder.path().join(&name);
        let trouble = |error| E::from(StoreError::io("read", &path, error));
        let folder = if_there(self.folder.below.folder(&name)).map_err(trouble)?;
        let Some(folder) = folder else { return Ok(()) };
        let found = self.find(&folder, &mut wanted).map_err(trouble)?;
        for ((attempt, run, _), found) in found {
            let mut parts = Vec::new();
            let read = match found {
                Found::Entry { file, from, filled } => {
                    let mut frames = vec![0; filled as usize];
                    let read = folder.read(file).and_then(|it| it.read_exact_at(&mut frames, from));
                    read.map(|()| _ = self.frames(attempt, &mut &frames[..], &mut parts))
                }
                Found::File(file) => self.file(&folder, attempt, &file, &mut parts),
            };
            read.map_err(trouble)?;
            for what in parts {
                tell(Said { run, attempt, what })?;
            }
        }
        Ok(())
    }

    fn find(
        &mut self,
        folder: &Below,
        wanted: &mut impl FnMut(RunId) -> bool,
    ) -> io::Result<BTreeMap<(AttemptId, RunId, bool), Found>> {
        let mut found = BTreeMap::new();
        let mut entries = Vec::new();
        for (name, there) in folder.entries()? {
            let Some(name) = name.to_str() else { continue };
            if name.starts_with(SMALL) {
                entries.push((name.to_owned(), there.length()));
                continue;
            }
            // The id of a run has 36 characters.
            let Some((run, attempt)) = name.split_at_checked(36) else { continue };
            let attempt = attempt.strip_prefix('-').and_then(AttemptId::parse);
            let Some((run, attempt)) = run.parse().ok().zip(attempt) else { continue };
            let is_over = self.files.get(name).is_some_and(|place| place.over);
            if !is_over && wanted(run) {
                found.insert((attempt, run, false), Found::File(name.to_owned()));
            }
        }
        for (name, length) in entries {
            let from = self.small.entry(name.clone()).or_default();
            if *from >= length {
                continue;
            }
            let file = folder.read(&name)?;
            let mut head = [0; EntryHead::BYTES];
            while *from + EntryHead::BYTES as u64 <= length {
                file.read_exact_at(&mut head, *from)?;
                let Some(EntryHead { run, attempt, filled }) = EntryHead::decode(&head) else {
                    break;
                };
                let begin = *from + EntryHead::BYTES as u64;
                if begin + u64::from(filled) > length {
                    break;
                }
                *from = begin + u64::from(filled);
                if wanted(run) {
                    // Behind a file of its own there is an entry where that was cut.
                    let entry = Found::Entry { file: name.clone(), from: begin, filled };
                    found.insert((attempt, run, true), entry);
                }
            }
        }
        Ok(found)
    }

    /// Adds the frames; true where the attempt ended with them.
    fn frames(
        &mut self,
        attempt: AttemptId,
        frames: &mut &[u8],
        parts: &mut Vec<SaidPart>,
    ) -> bool {
        let told = self.told.entry(attempt).or_default();
        while let Some(frame) = frame::take(frames) {
            match frame.kind {
                Kind::Said(stream) => {
                    *told += frame.bytes.len() as u64;
                    let bytes = frame.bytes.to_vec();
                    parts.push(SaidPart::Bytes { at: frame.at, stream, bytes });
                }
                Kind::End => {
                    let missing = number(frame.bytes).saturating_sub(*told);
                    if missing > 0 {
                        parts.push(SaidPart::Gap(missing));
                    }
                    parts.push(SaidPart::End);
                    self.told.remove(&attempt);
                    return true;
                }
            }
        }
        false
    }

    fn file(
        &mut self,
        folder: &Below,
        attempt: AttemptId,
        name: &str,
        parts: &mut Vec<SaidPart>,
    ) -> io::Result<()> {
        let file = folder.read(name)?;
        let Some(first) = head(&file, 0)? else { return Ok(()) };
        let mut place = self.files.get(name).copied().unwrap_or_default();
        loop {
            let Some((found, frames)) = slot(&file, first, place)? else {
                // Overwritten meanwhile: what is there now is later.
                match earliest(&file, first, place.slot)? {
                    Some(next) => place = Place { slot: next, at: 0, over: false },
                    None => break,
                }
                continue;
            };
            if place.at == 0 && found.filled > 0 {
                let told = self.told.entry(attempt).or_default();
                let missing = found.before.saturating_sub(*told);
                if missing > 0 {
                    *told = found.before;
                    parts.push(SaidPart::Gap(missing));
                }
            }
            place.at = found.filled;
            place.over = self.frames(attempt, &mut &frames[..], parts);
            let next = Place { slot: place.slot.saturating_add(1), at: 0, over: false };
            if place.over || earliest(&file, first, next.slot)?.is_none() {
                break;
            }
            place = next;
        }
        self.files.insert(name.to_owned(), place);
        Ok(())
    }
}

/// The head of the slot at this place of the file.
fn head(file: &File, place: u64) -> io::Result<Option<SlotHead>> {
    let mut head = [0; SlotHead::BYTES];
    match file.read_exact_at(&mut head, place) {
        Ok(()) => Ok(SlotHead::decode(&head)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// A slot and its frames that were not read; none where a later slot stands at its place, or none.
fn slot(file: &File, first: SlotHead, place: Place) -> io::Result<Option<(SlotHead, Vec<u8>)>> {
    let at = first.slots.place(place.slot);
    let is_it = |head: &SlotHead| head.number == place.slot && head.filled >= place.at;
    let Some(found) = head(file, at)?.filter(is_it) else { return Ok(None) };
    let mut frames = vec![0; (found.filled - place.at) as usize];
    file.read_exact_at(&mut frames, at + SlotHead::BYTES as u64 + u64::from(place.at))?;
    // Overwritten while it was read.
    Ok(head(file, at)?.filter(is_it).map(|_| (found, frames)))
}

/// The first slot from this number on that is there.
fn earliest(file: &File, first: SlotHead, from: u32) -> io::Result<Option<u32>> {
    // Slots are written one after the other: where its place was not overwritten, nothing later is there.
    match head(file, first.slots.place(from))? {
        Some(head) if head.number == from => return Ok(Some(from)),
        Some(head) if head.number > from => {}
        Some(_) | None => return Ok(None),
    }
    let mut next = None;
    for index in first.slots.first..first.slots.all {
        let number = head(file, u64::from(index) * u64::from(first.slots.bytes))?;
        let number = number.map(|head| head.number).filter(|number| *number > from);
        next = next.into_iter().chain(number).min();
    }
    Ok(next)
}
