//! The places of the request that have been filled.

/// A bit for each place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    words: Vec<u64>,
    count: u32,
}

impl Seen {
    /// Marks a place as filled. Returns true if it was not filled before.
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

    /// The filled places, the smallest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        let bits = |(word, bits): (u32, u64)| {
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word * 64 + bit)
        };
        (0..).zip(self.words.iter().copied()).flat_map(bits)
    }
}
