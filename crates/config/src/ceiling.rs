//! The comparison of two values by what they permit, for each kind of key: a ceiling bounds by it, and along a chain of agents
//! the strictest value holds.
//!
//! The table of ceilings stands on the crate page, under *Ceilings*.

use crate::setting::{AllowAgents, ToolList};

/// The order of a key's values.
pub(crate) struct Bound<T> {
    /// True if the first value permits more than the second.
    pub(crate) exceeds: fn(&T, &T) -> bool,
    /// True if a ceiling may name the key.
    pub(crate) is_ceiling: bool,
    /// True if the ceiling's value stands in for a key that is not set and that has no built-in value. Not so for `allowAgents`,
    /// where unset is the strictest there is.
    pub(crate) unset_is_unbounded: bool,
}

/// Values in this order. A ceiling may name the key, and unset is more than any of them.
const fn by<T>(exceeds: fn(&T, &T) -> bool) -> Bound<T> {
    Bound { exceeds, is_ceiling: true, unset_is_unbounded: true }
}

/// Greater is more.
pub(crate) const fn count<T: Ord>() -> Bound<T> {
    by(|value, ceiling| value > ceiling)
}

/// Greater is more, and nothing is more than 0, which means none.
pub(crate) const fn zero_is_endless<T: Ord + Default>() -> Bound<T> {
    by(|value, ceiling| {
        let none = T::default();
        *ceiling != none && (*value == none || value > ceiling)
    })
}

/// Greater is more, and a ceiling does not name the key.
pub(crate) const fn smaller_is_stricter<T: Ord>() -> Bound<T> {
    Bound { is_ceiling: false, ..count() }
}

/// Smaller is more: waits, and what is kept back. A ceiling does not name the key.
pub(crate) const fn greater_is_stricter<T: Ord>() -> Bound<T> {
    Bound { is_ceiling: false, ..by(|value, ceiling| value < ceiling) }
}

/// Neither is more: the value that stands highest in a chain holds.
pub(crate) const fn the_first_holds<T>() -> Bound<T> {
    Bound { is_ceiling: false, ..by(|_, _| false) }
}

/// True is more than false.
pub(crate) const fn permission() -> Bound<bool> {
    count()
}

/// More agents are more.
pub(crate) const fn agents() -> Bound<AllowAgents> {
    Bound { unset_is_unbounded: false, ..by(|value, ceiling| !value.is_within(ceiling)) }
}

/// More rights are more.
pub(crate) const fn tools() -> Bound<ToolList> {
    by(|value, ceiling| !value.is_within(ceiling))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_above_every_timeout_and_below_every_count() {
        let timeout = zero_is_endless::<u64>().exceeds;
        for (value, ceiling, exceeds) in [
            (0, 60, true),
            (61, 60, true),
            (60, 60, false),
            (1, 60, false),
            (0, 0, false),
            (u64::MAX, 0, false),
        ] {
            assert_eq!(timeout(&value, &ceiling), exceeds, "{value} under {ceiling}");
        }
        assert!(!(count::<u64>().exceeds)(&0, &60));
        assert!((permission().exceeds)(&true, &false));
        assert!(!(permission().exceeds)(&false, &false));
    }
}
