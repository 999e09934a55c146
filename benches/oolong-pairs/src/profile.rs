//! The entries of one user, counted; and the pairs that follow.

use std::collections::BTreeMap;

use jiff::civil::Date;

use crate::{Label, Labelled, Question};

/// The entries of one user, by label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    dates: BTreeMap<Label, Vec<Date>>,
}

/// Users with their entries, in the order of their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profiles(BTreeMap<u32, Profile>);

impl Profile {
    /// Returns the number of entries with a label.
    pub fn count(&self, label: Label) -> u32 {
        u32::try_from(self.dates(label).len()).expect("a context has fewer than 2^32 lines")
    }

    pub(crate) fn dates(&self, label: Label) -> &[Date] {
        self.dates.get(&label).map_or(&[], Vec::as_slice)
    }
}

impl FromIterator<Labelled> for Profiles {
    fn from_iter<T: IntoIterator<Item = Labelled>>(labelled: T) -> Self {
        let mut users = BTreeMap::<u32, Profile>::new();
        for Labelled { user, date, label } in labelled {
            users.entry(user).or_default().dates.entry(label).or_default().push(date);
        }
        Self(users)
    }
}

impl Profiles {
    /// Returns the answer to a question: pairs with the lower id first, in order, none twice.
    pub fn pairs(&self, question: &Question) -> Vec<(u32, u32)> {
        let places: Vec<_> = self
            .0
            .iter()
            .map(|(&user, profile)| (user, question.pairs.places(profile)))
            .filter(|(_, (one, other))| *one || *other)
            .collect();
        let mut pairs = Vec::new();
        for (place, (low, (low_one, low_other))) in places.iter().enumerate() {
            for (high, (high_one, high_other)) in &places[place + 1..] {
                if (*low_one && *high_other) || (*low_other && *high_one) {
                    pairs.push((*low, *high));
                }
            }
        }
        pairs
    }
}
