//! Which places of the request have been filled.

/// A bit for each place.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    words: Vec<u64>,
    count: u32,
}

impl Seen {
    /// Whether the place is new.
    pub(super) fn insert(&mut self, index: u32) -> bool {
        let (word, bit) = (index as usize / 64, 1_u64 << (index % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        self.count += u32::from(new);
        new
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }
}
