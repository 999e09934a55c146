//! Removing what some runs of a tree said, while the words of the others stay.

use std::fs::File;
use std::io::{self, Read, Write};

use offshoot_model::{RootId, RunId};

use super::slot::EntryHead;
use super::{OUTPUT, SMALL};
use crate::below::{Below, if_there};
use crate::error::Doing;
use crate::{DataFolder, StoreError};

/// Removes what these runs of a tree said, or only counts it: the files of attempts, and their entries in files of many. The caller
/// sees to it that no supervisor writes there. Returns the number of files that are gone or shorter, and of bytes.
///
/// # Errors
///
/// Fails if a file cannot be read, written or removed.
pub(crate) fn remove_said(
    folder: &DataFolder,
    root: RootId,
    goes: impl Fn(RunId) -> bool,
    dry: bool,
) -> Result<(u64, u64), StoreError> {
    let name = format!("{OUTPUT}/{root}");
    let remove = || match if_there(folder.below.folder(&name))? {
        Some(place) => remove_in(&place, &goes, dry),
        None => Ok((0, 0)),
    };
    remove().doing("remove from", &folder.path().join(&name))
}

fn remove_in(place: &Below, goes: &impl Fn(RunId) -> bool, dry: bool) -> io::Result<(u64, u64)> {
    let (mut files, mut bytes) = (0, 0);
    for (name, there) in place.entries()? {
        let Some(name) = name.to_str() else { continue };
        if name.starts_with(SMALL) {
            let whole = read(&mut place.read(name)?)?;
            let rest = without(&whole, goes);
            if rest.len() < whole.len() {
                (files, bytes) = (files + 1, bytes + (whole.len() - rest.len()) as u64);
                if !dry {
                    place.write_whole(place, name, |file| file.write_all(&rest))?;
                }
            }
        } else if name.get(..36).and_then(|run| run.parse().ok()).is_some_and(goes) {
            (files, bytes) = (files + 1, bytes + there.length());
            if !dry {
                place.remove(name)?;
            }
        }
    }
    Ok((files, bytes))
}

fn read(file: &mut File) -> io::Result<Vec<u8>> {
    let mut whole = Vec::new();
    file.read_to_end(&mut whole)?;
    Ok(whole)
}

/// The entries of the runs that stay. Behind half an entry nothing can be read, and nothing is kept.
fn without(mut entries: &[u8], goes: impl Fn(RunId) -> bool) -> Vec<u8> {
    let mut rest = Vec::new();
    while let Some((head, behind)) = entries.split_first_chunk::<{ EntryHead::BYTES }>()
        && let Some(EntryHead { run, filled, .. }) = EntryHead::decode(head)
        && behind.len() >= filled as usize
    {
        let (entry, following) = entries.split_at(EntryHead::BYTES + filled as usize);
        if !goes(run) {
            rest.extend_from_slice(entry);
        }
        entries = following;
    }
    rest
}
