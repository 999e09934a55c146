//! A list by places that has a bound: the first ones are kept, and all are counted.

use std::collections::BTreeMap;

/// The number of those that are listed. More are not read one by one, and those of a million pieces would be gigabytes.
pub const LISTED: usize = 1000;

/// Items that belong to places of a request: the first [`LISTED`] in its order, whatever order they came in, and the number of all.
#[derive(Clone, Debug)]
pub struct Listed<T> {
    first: BTreeMap<u32, T>,
    most: usize,
    count: u32,
}

impl<T> Listed<T> {
    /// An empty list that keeps so many.
    pub const fn at_most(most: usize) -> Self {
        Self { first: BTreeMap::new(), most, count: 0 }
    }

    /// Takes one more; each place is given once.
    pub fn insert(&mut self, place: u32, value: T) {
        self.count += 1;
        let is_full = self.first.len() >= self.most;
        if is_full && self.first.last_key_value().is_none_or(|(last, _)| *last < place) {
            return;
        }
        if is_full {
            self.first.pop_last();
        }
        self.first.insert(place, value);
    }

    /// The number of all items, listed or not.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The number of items that are not listed.
    pub fn unlisted(&self) -> u32 {
        self.count - u32::try_from(self.first.len()).expect("no more than were counted")
    }

    /// The listed items, in the order of the request.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &T> {
        self.first.values()
    }

    /// The same with their places, taken out.
    pub fn into_places(self) -> impl ExactSizeIterator<Item = (u32, T)> {
        self.first.into_iter()
    }
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self::at_most(LISTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_places_are_listed_in_whatever_order_they_come() {
        for (most, places, expected) in [
            (0, &[3, 1][..], &[][..]),
            (1, &[3, 1, 2], &[1]),
            (2, &[], &[]),
            (2, &[5], &[5]),
            (2, &[9, 7, 8, 3, 6], &[3, 6]),
            (2, &[0, 1, 2, 3], &[0, 1]),
            (2, &[3, 2, 1, 0], &[0, 1]),
            (9, &[3, 2, 1, 0], &[0, 1, 2, 3]),
        ] {
            let mut listed = Listed::at_most(most);
            places.iter().for_each(|&place| listed.insert(place, place.to_string()));
            assert_eq!(listed.count() as usize, places.len());
            assert_eq!(listed.unlisted() as usize, places.len() - expected.len(), "{places:?}");
            let texts: Vec<String> = expected.iter().map(u32::to_string).collect();
            assert!(listed.iter().eq(&texts), "{most}, {places:?}: {listed:?}");
            assert!(listed.into_places().map(|(place, _)| place).eq(expected.iter().copied()));
        }
    }
}
