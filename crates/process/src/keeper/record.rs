//! What a supervisor tells its keeper: a token once, then records of one size, so that each is written at once or not
//! at all.

use crate::Identity;
use crate::sys::ProcessId;

/// What a keeper says when it holds.
pub(super) const READY: &[u8] = b"offshoot-keeper 1\n";

/// The token of a supervisor: 16 random bytes in hexadecimal.
pub(crate) const TOKEN_BYTES: usize = 32;

/// One record, in bytes. Far below `PIPE_BUF`, up to which a write into a pipe is whole or nothing.
pub(super) const RECORD_BYTES: usize = 16;

/// What changed. A group is known by its leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// It lives.
    Add(Identity),
    /// It is gone.
    Remove(Identity),
    /// The supervisor ends in order, and nothing is left.
    Done,
}

impl Record {
    pub(super) fn to_bytes(self) -> [u8; RECORD_BYTES] {
        let (kind, Identity { pid, start_time }) = match self {
            Self::Add(group) => (1u32, group),
            Self::Remove(group) => (2, group),
            Self::Done => (3, Identity { pid: 0, start_time: 0 }),
        };
        let mut bytes = [0; RECORD_BYTES];
        bytes[..4].copy_from_slice(&kind.to_le_bytes());
        bytes[4..8].copy_from_slice(&pid.to_le_bytes());
        bytes[8..].copy_from_slice(&start_time.to_le_bytes());
        bytes
    }

    /// None where it is no record, or names a group that must not be signalled.
    pub(super) fn from_bytes(bytes: &[u8; RECORD_BYTES]) -> Option<Self> {
        let (kind, rest) = bytes.split_first_chunk()?;
        let (pid, start_time) = rest.split_first_chunk()?;
        let pid = u32::from_le_bytes(*pid);
        let start_time = u64::from_le_bytes(*start_time.first_chunk()?);
        let group = ProcessId::new(pid).map(|_| Identity { pid, start_time });
        match u32::from_le_bytes(*kind) {
            1 => group.map(Self::Add),
            2 => group.map(Self::Remove),
            3 => Some(Self::Done),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_were_written() {
        let group = Identity { pid: 4_194_303, start_time: u64::MAX - 1 };
        for record in [Record::Add(group), Record::Remove(group), Record::Done] {
            assert_eq!(Record::from_bytes(&record.to_bytes()), Some(record));
        }
    }

    #[test]
    fn no_record_names_a_group_that_must_not_be_signalled() {
        for pid in [0, 1, u32::MAX, 1 << 31] {
            let record = Record::Add(Identity { pid, start_time: 7 });
            assert_eq!(Record::from_bytes(&record.to_bytes()), None, "{pid}");
        }
        assert_eq!(Record::from_bytes(&[0; RECORD_BYTES]), None);
        assert_eq!(Record::from_bytes(&[9; RECORD_BYTES]), None);
    }
}
