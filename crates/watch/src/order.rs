//! The order of the rows.

/// The order in which runs are shown: as a tree, or in a table sorted by one of its columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Order {
    /// As a tree, children in the order in which they were asked for.
    #[default]
    Tree,
    /// A table, the longest silence first.
    Silence,
    /// A table, the longest time first.
    Age,
    /// A table, the highest cost first.
    Cost,
}

impl Order {
    const ALL: [Self; 4] = [Self::Tree, Self::Silence, Self::Age, Self::Cost];

    /// The next one, or the one before.
    pub(crate) fn turned(self, forward: bool) -> Self {
        turned(&Self::ALL, self, forward)
    }

    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Tree => "tree",
            Self::Silence => "table by silence",
            Self::Age => "table by time",
            Self::Cost => "table by cost",
        }
    }
}

/// The value beside one of these, round in a circle.
pub(crate) fn turned<T: Copy + PartialEq>(all: &[T], at: T, forward: bool) -> T {
    let here = all.iter().position(|one| *one == at).unwrap_or(0);
    let step = if forward { 1 } else { all.len() - 1 };
    all[(here + step) % all.len()]
}
