//! Which of two values is the stricter, for each kind of setting.

/// Fewer is stricter.
pub(super) fn fewer<T: Ord>(value: &T, than: &T) -> bool {
    value < than
}

/// More is stricter: waits, and what is kept back.
pub(super) fn more<T: Ord>(value: &T, than: &T) -> bool {
    value > than
}

/// Fewer is stricter, and nothing is looser than 0, which means none.
pub(super) fn fewer_but_zero_is_none<T: Ord + Default>(value: &T, than: &T) -> bool {
    let none = T::default();
    *value != none && (*than == none || value < than)
}

/// No is stricter than yes.
pub(super) fn no(value: &bool, than: &bool) -> bool {
    !*value && *than
}

/// The value that stands highest in the chain holds: the setting has no more and less.
pub(super) fn first<T>(_value: &T, _than: &T) -> bool {
    false
}

/// One word is stricter than the other.
pub(super) fn word<T: PartialEq>(strict: T) -> impl Fn(&T, &T) -> bool {
    move |value, than| *value == strict && *than != strict
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strictness_is_a_table() {
        for (value, than, stricter) in
            [(1, 2, true), (2, 1, false), (1, 1, false), (0, 1, true), (1, 0, false)]
        {
            assert_eq!(fewer(&value, &than), stricter, "{value} than {than}");
            assert_eq!(more(&than, &value), stricter, "{than} than {value}");
        }
        for (value, than, stricter) in
            [(1, 2, true), (2, 1, false), (0, 1, false), (1, 0, true), (0, 0, false)]
        {
            assert_eq!(fewer_but_zero_is_none(&value, &than), stricter, "{value} than {than}");
        }
        for (value, than, stricter) in
            [(false, true, true), (true, false, false), (false, false, false), (true, true, false)]
        {
            assert_eq!(no(&value, &than), stricter, "{value} than {than}");
        }
        assert!(word('a')(&'a', &'b'));
        assert!(!word('a')(&'b', &'a'));
        assert!(!word('a')(&'a', &'a'));
        assert!(!first(&1, &2));
    }
}
