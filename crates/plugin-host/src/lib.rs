//! Finds, checks and loads plugins: runtimes and merges that third parties have made, as dynamic libraries.
//!
//! ```text
//!   Search ──▶ Candidate ──▶ Checked
//!   places      plugin.toml    owner · mode · kind of file · machine · digest · trust      nothing has run so far
//! ```
//!
//! Promise: opening a library runs code of it, so all that can be known without opening it is known first. Each failure
//! names the file and what to do ([`PluginError::hint`]). A plugin is not in a sandbox: once loaded, it can do what this
//! program can.
//!
//! ```
//! use offshoot_plugin_host::{Place, PlaceOrigin, Search};
//!
//! let search = Search::new(vec![Place { folder: "/nowhere".into(), origin: PlaceOrigin::User }]);
//! let error = search.runtime("upper").expect_err("there is nothing at all");
//! assert_eq!(error.to_string(), "there is no runtime `upper` among the plugins here");
//! ```

mod error;
mod guard;
mod library;
mod package;
mod search;

pub use error::PluginError;
pub use package::{
    AbiVersion, LibraryFile, NameError, PACKAGE_FILE, Package, PackageProblem, PackageProblems,
    PluginName, target,
};
pub use search::{Candidate, Checked, Place, PlaceOrigin, Search};
