//! The interface is frozen.

mod documents;
mod lines;
mod protocol;
mod reference;

/// Version 1.0, as it was published. A change in a table would break every plugin that is out there: what is new goes into the
/// JSON, or behind the last prefix field under a higher minor version, with a file of its own beside this one.
const FROZEN: &str = include_str!("1.0.md");

#[test]
fn the_layout_of_version_1_0_is_frozen() {
    let now = reference::text();
    for (number, (frozen, now)) in (1..).zip(FROZEN.lines().zip(now.lines())) {
        assert_eq!(now, frozen, "line {number} of tests/layout/1.0.md");
    }
    assert_eq!(now.lines().count(), FROZEN.lines().count());
}

#[test]
fn the_number_of_the_interface_is_its_own() {
    assert_eq!(offshoot_plugin_abi::VERSION, "1.0.0");
    // The loader compares the version of this crate too, which is part of each layout: it stays within the same major one.
    let (major, _) = env!("CARGO_PKG_VERSION").split_once('.').expect("a version");
    assert_eq!(Some(major), offshoot_plugin_abi::VERSION.split('.').next());
}
