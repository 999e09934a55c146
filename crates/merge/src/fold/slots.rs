//! Values in request order, filled in any order.

/// One place for each index up to the largest that was filled.
#[derive(Clone, Debug)]
pub(super) struct Slots<T> {
    places: Vec<Option<T>>,
}

impl<T> Slots<T> {
    pub(super) fn insert(&mut self, index: u32, value: T) {
        let index = index as usize;
        if index >= self.places.len() {
            self.places.resize_with(index + 1, || None);
        }
        self.places[index] = Some(value);
    }

    /// Returns the number of places, filled or not.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The filled places, in request order, each with its index.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.places.iter().enumerate().filter_map(|(index, place)| Some((index, place.as_ref()?)))
    }
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { places: Vec::new() }
    }
}
