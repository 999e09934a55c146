//! The slots of an attempt's file, and the heads of what stands in the files.

use offshoot_model::RunId;

use super::frame::number;
use super::{AttemptId, OutputBounds};

/// The largest slot: as much as an attempt may say without a file of its own.
const LARGEST: u64 = 64 * 1024;

/// The smallest slot, where little is to be kept.
const SMALLEST: u64 = 512;

/// The first bytes of a slot that was written, and of an entry of a file of many attempts.
const SLOT: u32 = u32::from_le_bytes(*b"OFS1");
const ENTRY: u32 = u32::from_le_bytes(*b"OFE1");

/// The slots that an attempt has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slots {
    /// The bytes of each, with its head.
    pub(super) bytes: u32,
    /// The number of those that are written once.
    pub(super) first: u32,
    /// The number of all.
    pub(super) all: u32,
}

/// The head of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotHead {
    pub(super) slots: Slots,
    /// The number of the slot, in the order of what was said.
    pub(super) number: u32,
    /// The bytes of the frames in it.
    pub(super) filled: u32,
    /// The bytes that were said before it.
    pub(super) before: u64,
}

/// The head of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryHead {
    pub(super) run: RunId,
    pub(super) attempt: AttemptId,
    /// The bytes of the frames in it.
    pub(super) filled: u32,
}

impl Slots {
    pub(super) fn of(bounds: OutputBounds) -> Self {
        let bytes = (bounds.run / 4).clamp(SMALLEST, LARGEST);
        // Of two that are written in turn one is always full.
        let all = (bounds.run / bytes).clamp(3, u64::from(u32::MAX));
        Self { bytes: bytes as u32, first: (all / 2) as u32, all: all as u32 }
    }

    /// The bytes of frames for which a slot has room.
    pub(super) const fn room(self) -> usize {
        self.bytes as usize - SlotHead::BYTES
    }

    /// The place of a slot in the file.
    pub(super) fn place(self, number: u32) -> u64 {
        let index = match number.checked_sub(self.first) {
            None => number,
            Some(later) => self.first + later % (self.all - self.first),
        };
        u64::from(index) * u64::from(self.bytes)
    }
}

impl SlotHead {
    pub(super) const BYTES: usize = 32;

    pub(super) fn encode(self) -> [u8; Self::BYTES] {
        let Self { slots: Slots { bytes, first, all }, number, filled, before } = self;
        let mut head = [0; Self::BYTES];
        let words = [SLOT, bytes, first, all, number, filled];
        for (place, word) in head.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        head[24..].copy_from_slice(&before.to_le_bytes());
        head
    }

    /// Returns `None` if the bytes are no head, or one of a file that was not written here.
    pub(super) fn decode(head: &[u8; Self::BYTES]) -> Option<Self> {
        let word = |at: usize| number(&head[at..at + 4]) as u32;
        let slots = Slots { bytes: word(4), first: word(8), all: word(12) };
        let decoded =
            Self { slots, number: word(16), filled: word(20), before: number(&head[24..]) };
        let size = u64::from(slots.bytes);
        let is_one = word(0) == SLOT
            && (SMALLEST..=LARGEST).contains(&size)
            && slots.first < slots.all
            && decoded.filled as usize <= slots.room();
        is_one.then_some(decoded)
    }
}

impl EntryHead {
    pub(super) const BYTES: usize = 40;

    pub(super) fn encode(self) -> [u8; Self::BYTES] {
        let mut head = [0; Self::BYTES];
        head[..4].copy_from_slice(&ENTRY.to_le_bytes());
        head[4..8].copy_from_slice(&self.filled.to_le_bytes());
        head[8..24].copy_from_slice(self.run.as_uuid().as_bytes());
        head[24..].copy_from_slice(&self.attempt.0.to_le_bytes());
        head
    }

    pub(super) fn decode(head: &[u8; Self::BYTES]) -> Option<Self> {
        let run = RunId::from_bytes(head[8..24].try_into().expect("16 bytes"));
        let attempt = AttemptId(u128::from_le_bytes(head[24..].try_into().expect("16 bytes")));
        let filled = number(&head[4..8]) as u32;
        let is_one = number(&head[..4]) == u64::from(ENTRY) && u64::from(filled) <= LARGEST;
        is_one.then_some(Self { run, attempt, filled })
    }
}
