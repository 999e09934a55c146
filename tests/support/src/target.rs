//! The target folder of the running test.

use std::path::{Path, PathBuf};

/// The target folder: what tests install may lie there, where `cargo clean` takes it along.
///
/// # Panics
///
/// Outside a program that cargo built.
pub fn target_folder() -> PathBuf {
    let profile = profile_folder();
    profile.parent().expect("a profile lies in a target folder").to_owned()
}

/// The folder of the profile in it.
pub(crate) fn profile_folder() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own file");
    // target/{profile}/deps/{test}: an example or a benchmark lies one folder higher.
    let above = |folder: &&Path| !folder.ends_with("deps") && !folder.ends_with("examples");
    test.ancestors().skip(1).find(above).expect("a test lies in a target folder").to_owned()
}
