//! The list of groups that a keeper ends if its supervisor dies: a file in memory that both have open.
//!
//! ```text
//!   the token, 32 bytes │ the control group, 480 bytes │ group │ blank │ group │ …
//!                         its path, then zeros           16 bytes each: the leader's number and start time
//! ```
//!
//! The supervisor writes a group into a blank place and blanks the place when the group is gone. The keeper reads all of
//! it, once, when the supervisor has ended: so no process is woken because another one starts or ends. A place is written by one
//! call and lies within one page, so that each group is there whole or not at all.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::Identity;
use crate::cgroup::LONGEST_PATH;
use crate::sys::{self, ProcessId};

/// The token of a supervisor: 16 random bytes in hexadecimal.
pub(crate) const TOKEN_BYTES: usize = 32;

/// The size of the part before the first place.
const HEAD_BYTES: usize = TOKEN_BYTES + LONGEST_PATH;

/// The size of a place. It divides that of a page, and so does what comes before the first.
const PLACE_BYTES: usize = 16;

const BLANK: [u8; PLACE_BYTES] = [0; PLACE_BYTES];

/// The supervisor's side.
#[derive(Debug)]
pub(super) struct Ledger {
    /// The file, of which the keeper has a copy.
    pub(super) file: File,
    /// The position of each group.
    places: HashMap<Identity, u64>,
    /// Places that were blanked.
    blank: Vec<u64>,
}

/// The groups that the keeper finds.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) token: String,
    /// The control group whose remaining processes are left over.
    pub(super) cgroup: Option<PathBuf>,
    pub(super) groups: Vec<Identity>,
}

impl Ledger {
    /// A ledger of these groups.
    pub(super) fn new(
        token: &str,
        cgroup: Option<&Path>,
        groups: impl Iterator<Item = Identity>,
    ) -> io::Result<Self> {
        debug_assert_eq!(token.len(), TOKEN_BYTES);
        let mut head = [0; HEAD_BYTES];
        head[..TOKEN_BYTES].copy_from_slice(token.as_bytes());
        let path = cgroup.map(|path| path.as_os_str().as_bytes()).unwrap_or_default();
        head[TOKEN_BYTES..][..path.len()].copy_from_slice(path);
        let file = sys::memory_file(super::LEDGER)?;
        file.write_all_at(&head, 0)?;
        let mut ledger = Self { file, places: HashMap::new(), blank: Vec::new() };
        groups.into_iter().try_for_each(|group| ledger.enter(group))?;
        Ok(ledger)
    }

    /// A group that lives. Each has one place, however often it is entered.
    pub(super) fn enter(&mut self, group: Identity) -> io::Result<()> {
        if self.places.contains_key(&group) {
            return Ok(());
        }
        let place = self.blank.pop().unwrap_or(self.places.len() as u64);
        self.places.insert(group, place);
        self.file.write_all_at(&to_bytes(group), offset(place))
    }

    /// A group that is gone.
    pub(super) fn strike(&mut self, group: Identity) -> io::Result<()> {
        let Some(place) = self.places.remove(&group) else { return Ok(()) };
        self.blank.push(place);
        self.file.write_all_at(&BLANK, offset(place))
    }

    /// Empties the list: the supervisor ends in order, with no process left that would have to be found.
    pub(super) fn discard(&self) -> io::Result<()> {
        self.file.set_len(0)
    }
}

impl Left {
    /// Returns the groups that a supervisor has left. None where it has ended in order.
    pub(super) fn read(ledger: &File) -> io::Result<Option<Self>> {
        let length = ledger.metadata()?.len();
        if length == 0 {
            return Ok(None);
        }
        let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        ledger.read_exact_at(&mut bytes, 0)?;
        let (head, places) = bytes
            .split_at_checked(HEAD_BYTES)
            .ok_or_else(|| io::Error::other("the ledger has no head"))?;
        let (token, path) = head.split_at(TOKEN_BYTES);
        let path = path.split(|byte| *byte == 0).next().filter(|path| !path.is_empty());
        let cgroup = path.map(|path| PathBuf::from(OsStr::from_bytes(path)));
        let token = str::from_utf8(token).map_err(io::Error::other)?.to_owned();
        let groups = places.as_chunks().0.iter().filter_map(from_bytes).collect();
        Ok(Some(Self { token, cgroup, groups }))
    }
}

fn offset(place: u64) -> u64 {
    HEAD_BYTES as u64 + place * PLACE_BYTES as u64
}

fn to_bytes(Identity { pid, start_time }: Identity) -> [u8; PLACE_BYTES] {
    let mut bytes = BLANK;
    bytes[..4].copy_from_slice(&pid.to_le_bytes());
    bytes[8..].copy_from_slice(&start_time.to_le_bytes());
    bytes
}

/// None where nothing stands there, or a group that must not be signalled.
fn from_bytes(bytes: &[u8; PLACE_BYTES]) -> Option<Identity> {
    let pid = u32::from_le_bytes(*bytes.first_chunk()?);
    let start_time = u64::from_le_bytes(*bytes.last_chunk()?);
    ProcessId::new(pid).map(|_| Identity { pid, start_time })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    fn left(ledger: &Ledger) -> Option<Left> {
        Left::read(&ledger.file).expect("it cannot be read")
    }

    fn group(pid: u32) -> Identity {
        Identity { pid, start_time: u64::MAX - u64::from(pid) }
    }

    #[test]
    fn what_was_entered_and_not_struck_is_left() {
        let cgroup = Path::new("/sys/fs/cgroup/a group");
        let mut ledger = Ledger::new(TOKEN, Some(cgroup), [2, 3].map(group).into_iter())
            .expect("writing to memory failed");
        let mut check = |enter: &[u32], strike: &[u32], expected: &[u32], places: u64| {
            enter
                .iter()
                .for_each(|pid| ledger.enter(group(*pid)).expect("the system has no room for it"));
            strike
                .iter()
                .for_each(|pid| ledger.strike(group(*pid)).expect("the system has no room for it"));
            let mut left = left(&ledger).expect("it is not discarded");
            left.groups.sort_by_key(|group| group.pid);
            let groups = expected.iter().copied().map(group).collect();
            assert_eq!(
                left,
                Left { token: TOKEN.to_owned(), cgroup: Some(cgroup.to_owned()), groups }
            );
            let length = ledger.file.metadata().expect("the file cannot be examined").len();
            assert_eq!(length, offset(places), "a place is used again");
        };
        check(&[], &[], &[2, 3], 2);
        check(&[4_194_303], &[2], &[3, 4_194_303], 3);
        check(&[5], &[3, 5, 6], &[4_194_303], 3);
        check(&[7, 7, 8, 9, 7], &[], &[7, 8, 9, 4_194_303], 4);
        check(&[10, 10], &[7, 10], &[8, 9, 4_194_303], 5);
        ledger.strike(Identity { pid: 8, start_time: 1 }).expect("nothing happens");
        assert_eq!(left(&ledger).expect("it is not discarded").groups.len(), 3);
        ledger.discard().expect("it can be made empty");
        assert_eq!(left(&ledger), None);
    }

    #[test]
    fn no_place_names_a_group_that_must_not_be_signalled() {
        for pid in [0, 1, u32::MAX, 1 << 31] {
            assert_eq!(from_bytes(&to_bytes(Identity { pid, start_time: 7 })), None, "{pid}");
        }
        assert_eq!(from_bytes(&BLANK), None);
    }
}
