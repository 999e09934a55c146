//! The official inspector of servers.

use std::sync::OnceLock;

use offshoot_test_support::skip;

use crate::install;

/// The command line of the inspector for this test, to which what it is to do is added; none where it cannot be had, which is then
/// said and counted.
///
/// # Panics
///
/// With `CI=true`, where it cannot be had.
pub fn inspector(test: &str) -> Option<Vec<String>> {
    static INSTALLED: OnceLock<Result<String, String>> = OnceLock::new();
    let installed = INSTALLED.get_or_init(|| {
        let program = install::inspector()?;
        let program = program.to_str().ok_or_else(|| "its path is not UTF-8".to_owned())?;
        Ok(program.to_owned())
    });
    match installed {
        Ok(program) => Some(vec!["node".to_owned(), program.clone(), "--cli".to_owned()]),
        Err(why) => {
            skip(test, why);
            None
        }
    }
}
