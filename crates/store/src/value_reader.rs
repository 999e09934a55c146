//! Reading a part of a value, and nothing that is not of the value.
//!
//! A BLAKE3 hash is the root of a tree over the content. The hashes of its subtrees of [`GROUP`] bytes are enough to verify
//! each of these by itself, and together they give the hash of the whole:
//!
//! ```text
//!            hash of the value
//!           /                 \
//!       ·                       ·
//!     /   \                   /   \
//!  group   group           group   group      each is compared before a byte of it is handed out
//! ```

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use blake3::hazmat::{
    ChainingValue, HasherExt, Mode, left_subtree_len, merge_subtrees_non_root, merge_subtrees_root,
};
use offshoot_model::{ContentHash, VariableRef};
use parking_lot::Mutex;

/// The number of bytes that are read and verified at once: large enough to be hashed fast, small enough to be read for a few
/// bytes of it. A power of two, as the tree demands.
pub(crate) const GROUP: u64 = 256 << 10;

/// Values up to this size whose groups are not known are read and verified as a whole: looking for the groups would read them
/// twice.
const WHOLE: u64 = 4 << 20;

/// The number of bytes that hashing a file reads at once.
const BUFFER: usize = 256 << 10;

/// The same of a small file, which may grow meanwhile.
const SMALL_BUFFER: usize = 4 << 10;

/// The hashes of so many large values are remembered. Each takes an eight-thousandth of its value.
const REMEMBERED: usize = 64;

/// The hashes of the groups of a value, in order. None where the value is a single group: its hash is that of the value.
pub(crate) type Groups = Option<Arc<[ChainingValue]>>;

/// Reads a value from any place. Bytes that are not those that were stored are an error
/// ([`InvalidData`](io::ErrorKind::InvalidData)) and are not handed out.
///
/// A value of more than 4 MiB that this process has neither written nor read before is read once as a whole at the first
/// reading.
#[derive(Debug)]
pub struct ValueReader {
    file: File,
    value: VariableRef,
    known: Known,
    /// None until the first reading.
    groups: Option<Groups>,
    at: u64,
    /// Memory for the group that was read last, or for the whole value where the hashes of its groups are not known.
    buffer: Buffer,
    /// The number of bytes of the buffer that are of the value.
    held: usize,
    /// The place of the first of these bytes; none before anything was read.
    from: Option<u64>,
}

/// Memory that the next reader of the same store uses again.
#[derive(Debug)]
struct Buffer {
    bytes: Vec<u8>,
    known: Known,
}

/// Hashes content, and each group of it.
pub(crate) struct GroupHasher {
    done: Vec<ChainingValue>,
    group: blake3::Hasher,
    /// The number of bytes of the group so far.
    filled: u64,
}

/// State that the readers of one store share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// The hashes of groups, of values that were read or written as a whole not long ago.
    hashes: Mutex<VecDeque<Remembered>>,
    /// The buffer of a reader that is gone. A large answer has many values, and fresh memory for each of them takes as long as
    /// reading it.
    buffer: Mutex<Vec<u8>>,
}

/// A value, and the hashes of its groups.
type Remembered = (ContentHash, Arc<[ChainingValue]>);

impl ValueReader {
    /// Reads a value from this file.
    pub(crate) fn new(file: File, value: VariableRef, known: Known) -> Self {
        let buffer = Buffer { bytes: Vec::new(), known: known.clone() };
        Self { file, value, known, groups: None, at: 0, buffer, held: 0, from: None }
    }

    /// The file itself, of which nothing is verified.
    pub fn into_file(self) -> File {
        self.file
    }

    /// The value.
    pub fn value(&self) -> &VariableRef {
        &self.value
    }

    /// Reads the group in which this place lies, and compares it with its hash. Returns the place of its first byte.
    fn load(&mut self, at: u64) -> io::Result<u64> {
        let holds = |from: &u64| (*from..*from + self.held as u64).contains(&at);
        if let Some(from) = self.from.filter(holds) {
            return Ok(from);
        }
        self.from = None;
        let groups = match &self.groups {
            Some(groups) => groups.clone(),
            None => self.groups.insert(self.find_groups()?).clone(),
        };
        let (from, holds) = match &groups {
            Some(groups) => {
                let from = at / GROUP * GROUP;
                self.make_room(GROUP);
                let group = self.read_on(from, GROUP.min(self.value.size - from))?;
                let mut hasher = blake3::Hasher::new();
                hasher.set_input_offset(from).update(group);
                (from, groups[(from / GROUP) as usize] == hasher.finalize_non_root())
            }
            None => (0, self.read_whole()?),
        };
        if !holds {
            return Err(changed());
        }
        self.from = Some(from);
        Ok(from)
    }

    /// Reads all of it, and remembers the hashes of its groups for the next reader. True if it is what was stored.
    fn read_whole(&mut self) -> io::Result<bool> {
        self.make_room(self.value.size);
        let mut hasher = GroupHasher::new();
        // Group by group, so that each is hashed while the processor still has it at hand.
        for at in (0..self.value.size).step_by(GROUP as usize) {
            hasher.update(self.read_on(at, GROUP.min(self.value.size - at))?);
        }
        let (hash, _, groups) = hasher.finish();
        self.known.remember(hash, &groups);
        Ok(hash == self.value.hash)
    }

    /// Forgets what is held, and has room for so many bytes.
    fn make_room(&mut self, bytes: u64) {
        let buffer = &mut self.buffer.bytes;
        if buffer.is_empty() {
            *buffer = self.known.spare_buffer();
        }
        if buffer.len() < bytes as usize {
            buffer.resize(bytes as usize, 0);
        }
        self.held = 0;
    }

    /// Reads so many bytes from this place behind those that are held, and returns them.
    fn read_on(&mut self, from: u64, length: u64) -> io::Result<&[u8]> {
        let end = self.held + length as usize;
        let into = &mut self.buffer.bytes[self.held..end];
        self.file.read_exact_at(into, from).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => changed(),
            _ => error,
        })?;
        self.held = end;
        Ok(into)
    }

    /// The hashes of the groups, where they are known; of a value that is not small, the whole is read for them.
    fn find_groups(&self) -> io::Result<Groups> {
        let VariableRef { hash, size, .. } = self.value;
        let known = self.known.get(hash);
        if known.is_some() || size <= WHOLE {
            return Ok(known);
        }
        let (found, length, groups) = hash_file(&self.file)?;
        if found != hash || length != size {
            return Err(changed());
        }
        self.known.remember(hash, &groups);
        Ok(groups)
    }
}

fn changed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the value has been changed")
}

/// Hashes a file from its beginning, by position: the writer of the file is not disturbed.
pub(crate) fn hash_file(file: &File) -> io::Result<(ContentHash, u64, Groups)> {
    // Most values are small, and a large buffer takes longer than reading them.
    let bytes = file.metadata()?.len().saturating_add(1);
    let buffer = usize::try_from(bytes).unwrap_or(BUFFER).clamp(SMALL_BUFFER, BUFFER);
    let mut hasher = FileHasher::with_buffer(file, buffer);
    hasher.take_in(u64::MAX)?;
    Ok(hasher.finish())
}

impl Read for ValueReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        let rest = self.fill_buf()?;
        let read = rest.len().min(into.len());
        into[..read].copy_from_slice(&rest[..read]);
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for ValueReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at >= self.value.size {
            return Ok(&[]);
        }
        let from = self.load(self.at)?;
        Ok(&self.buffer.bytes[(self.at - from) as usize..self.held])
    }

    fn consume(&mut self, bytes: usize) {
        self.at += bytes as u64;
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.known.keep_buffer(std::mem::take(&mut self.bytes));
    }
}

impl Seek for ValueReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.value.size.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        let before = || io::Error::new(io::ErrorKind::InvalidInput, "before the beginning");
        self.at = at.ok_or_else(before)?;
        Ok(self.at)
    }
}

impl GroupHasher {
    pub(crate) fn new() -> Self {
        Self { done: Vec::new(), group: blake3::Hasher::new(), filled: 0 }
    }

    /// Takes in the next bytes.
    pub(crate) fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            // A group is closed when another follows: the only one is hashed in another way.
            if self.filled == GROUP {
                self.done.push(self.group.finalize_non_root());
                self.group = blake3::Hasher::new();
                self.group.set_input_offset(self.done.len() as u64 * GROUP);
                self.filled = 0;
            }
            let room = usize::try_from(GROUP - self.filled).unwrap_or(usize::MAX);
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.group.update(now);
            self.filled += now.len() as u64;
            bytes = later;
        }
    }

    /// The hash of all of it, its size, and the hashes of its groups.
    pub(crate) fn finish(mut self) -> (ContentHash, u64, Groups) {
        let size = self.done.len() as u64 * GROUP + self.filled;
        if self.done.is_empty() {
            return (ContentHash::from_bytes(*self.group.finalize().as_bytes()), size, None);
        }
        self.done.push(self.group.finalize_non_root());
        let (left, right) = halves(&self.done, size);
        let hash = merge_subtrees_root(&left, &right, Mode::Hash);
        (ContentHash::from_bytes(*hash.as_bytes()), size, Some(self.done.into()))
    }
}

/// Hashes a file from its beginning, by position: the writer of the file is not disturbed.
pub(crate) struct FileHasher<'a> {
    file: &'a File,
    at: u64,
    state: GroupHasher,
    buffer: Box<[u8]>,
}

impl<'a> FileHasher<'a> {
    pub(crate) fn new(file: &'a File) -> Self {
        Self::with_buffer(file, BUFFER)
    }

    /// The same, where so many bytes are read at once.
    fn with_buffer(file: &'a File, buffer: usize) -> Self {
        Self { file, at: 0, state: GroupHasher::new(), buffer: vec![0; buffer].into() }
    }

    /// Takes in the next bytes, at most so many and not beyond the end.
    pub(crate) fn take_in(&mut self, bytes: u64) -> io::Result<()> {
        let Self { file, at, state, buffer } = self;
        *at += read_pieces(file, *at, bytes, buffer, |piece| state.update(piece))?;
        Ok(())
    }

    pub(crate) fn finish(self) -> (ContentHash, u64, Groups) {
        self.state.finish()
    }
}

/// Verifies copies of values where they lie in a file.
#[derive(Debug)]
pub(crate) struct CopyVerifier {
    file: File,
    buffer: Box<[u8]>,
}

impl CopyVerifier {
    /// Verifies copies in this file, which is read by position.
    pub(crate) fn new(file: File) -> Self {
        Self { file, buffer: vec![0; BUFFER].into() }
    }

    /// Returns true if the bytes from this place on are those of the value.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read.
    pub(crate) fn holds(&mut self, at: u64, value: &VariableRef) -> io::Result<bool> {
        let mut hasher = blake3::Hasher::new();
        let read = read_pieces(&self.file, at, value.size, &mut self.buffer, |piece| {
            hasher.update(piece);
        })?;
        let hash = ContentHash::from_bytes(*hasher.finalize().as_bytes());
        Ok(read == value.size && hash == value.hash)
    }
}

/// Reads so many bytes from this place on, piece by piece, and not beyond the end. Returns how many there were.
fn read_pieces(
    file: &File,
    from: u64,
    bytes: u64,
    buffer: &mut [u8],
    mut take: impl FnMut(&[u8]),
) -> io::Result<u64> {
    let mut done = 0;
    while done < bytes {
        let wanted = (bytes - done).min(buffer.len() as u64) as usize;
        match file.read_at(&mut buffer[..wanted], from + done) {
            Ok(0) => break,
            Ok(read) => {
                take(&buffer[..read]);
                done += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// The two subtrees of a tree over so many bytes, of which there is more than one group.
fn halves(groups: &[ChainingValue], size: u64) -> (ChainingValue, ChainingValue) {
    let left = left_subtree_len(size);
    let (before, after) = groups.split_at((left / GROUP) as usize);
    (subtree(before, left), subtree(after, size - left))
}

fn subtree(groups: &[ChainingValue], size: u64) -> ChainingValue {
    if let [only] = groups {
        return *only;
    }
    let (left, right) = halves(groups, size);
    merge_subtrees_non_root(&left, &right, Mode::Hash)
}

impl Known {
    pub(crate) fn get(&self, hash: ContentHash) -> Groups {
        let known = self.0.hashes.lock();
        known.iter().find(|(known, _)| *known == hash).map(|(_, groups)| Arc::clone(groups))
    }

    pub(crate) fn remember(&self, hash: ContentHash, groups: &Groups) {
        let Some(groups) = groups else { return };
        let mut known = self.0.hashes.lock();
        known.retain(|(known, _)| *known != hash);
        known.truncate(REMEMBERED - 1);
        known.push_front((hash, Arc::clone(groups)));
    }

    fn spare_buffer(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.buffer.lock())
    }

    fn keep_buffer(&self, buffer: Vec<u8>) {
        let mut spare = self.0.buffer.lock();
        // Never more than the largest value that is read as a whole.
        if spare.len() < buffer.len() {
            *spare = buffer;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use offshoot_model::ValueKind;

    use super::*;

    fn content(size: u64) -> Vec<u8> {
        (0..size).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 13) as u8).collect()
    }

    fn hashed(bytes: &[u8], portion: usize) -> (ContentHash, u64, Groups) {
        let mut hasher = GroupHasher::new();
        bytes.chunks(portion).for_each(|part| hasher.update(part));
        hasher.finish()
    }

    #[test]
    fn the_hash_is_that_of_the_whole_whatever_its_size() {
        for size in [0, 1, 1023, GROUP - 1, GROUP, GROUP + 1, 2 * GROUP, 3 * GROUP, 5 * GROUP + 7] {
            let bytes = content(size);
            for portion in [1000, 64 << 10, 3 << 20] {
                let (hash, length, groups) = hashed(&bytes, portion);
                assert_eq!((hash, length), (ContentHash::of(&bytes), size));
                let many = size.div_ceil(GROUP).max(1);
                assert_eq!(groups.map_or(1, |groups| groups.len() as u64), many, "{size}");
            }
        }
    }

    /// A reader of these bytes of a value that was stored as those, by this process or by an earlier one.
    fn reader(stored: &[u8], there: &[u8], is_known: bool) -> ValueReader {
        let (hash, size, groups) = hashed(stored, 1 << 20);
        let known = Known::default();
        if is_known {
            known.remember(hash, &groups);
        }
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(there).unwrap();
        ValueReader::new(file, VariableRef { hash, size, kind: ValueKind::Bytes }, known)
    }

    #[test]
    fn any_part_is_read_as_it_was_stored() {
        let ranges = |size| [(0, 10), (GROUP - 3, 6), (2 * GROUP, GROUP + 99), (5, size - 5)];
        for (size, is_known) in
            [(3 * GROUP + 99, true), (3 * GROUP + 99, false), (WHOLE + 3, false)]
        {
            let bytes = content(size);
            let mut reader = reader(&bytes, &bytes, is_known);
            for (from, length) in ranges(size) {
                let mut part = vec![0; length as usize];
                reader.seek(SeekFrom::Start(from)).unwrap();
                reader.read_exact(&mut part).unwrap();
                assert!(part == bytes[from as usize..][..length as usize], "{from} {length}");
            }
            assert_eq!(reader.seek(SeekFrom::End(-1)).unwrap(), size - 1);
            assert_eq!(reader.read(&mut [0; 8]).unwrap(), 1);
            assert_eq!(reader.read(&mut [0; 8]).unwrap(), 0);
            let before = -size.cast_signed() - 1;
            assert!(reader.seek(SeekFrom::Current(before)).is_err());
            assert!(reader.known.get(reader.value.hash).is_some(), "for the next reader");
        }
    }

    #[test]
    fn what_was_changed_is_not_handed_out_and_the_rest_is() {
        // A part is verified by itself where the hashes of the groups are known, else with the whole.
        let cases = [(900, true, false), (4 * GROUP, true, true), (4 * GROUP, false, false)];
        for (size, is_known, rest_is_read) in cases {
            let bytes = content(size);
            let mut changed = bytes.clone();
            let at = size as usize - 700;
            changed[at] ^= 1;
            let mut one = reader(&bytes, &changed, is_known);
            one.seek(SeekFrom::Start(size - 1)).unwrap();
            let error = one.read(&mut [0]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
            one.seek(SeekFrom::Start(0)).unwrap();
            assert_eq!(one.read(&mut [0]).is_ok(), rest_is_read, "{size} {is_known}");
            // Cut off.
            let mut short = reader(&bytes, &bytes[..at], is_known);
            let error = short.read_to_end(&mut Vec::new()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
    }
}
