//! Finds, checks and loads plugins: runtimes and merges that third parties have made, as programs or dynamic libraries.
//!
//! ```text
//!   Search ──▶ Candidate ──▶ Checked ──▶ try_out ──▶ Plugin ──▶ PluginRuntime, PluginMerge
//!   places      plugin.toml    │            │           │
//!                              │            │           └ layouts in both directions, once in this process
//!                              │            └ opened in a process of its own first, where it is new
//!                              └ owner · mode · kind of file · machine · digest · trust: nothing has run so far
//! ```
//!
//! Promise: opening a library runs code of it, so all that can be known without opening it is known first. Each failure
//! names the file, the versions where they matter, and what to do ([`PluginError::hint`]). A panic of a plugin is the end
//! of its run alone, events of a run come in order, and a plugin that does not end a run is not waited for. A plugin is not
//! in a sandbox: once loaded, it can do what this program can.
//!
//! ```
//! use offshoot_plugin_host::{Place, PlaceOrigin, Search};
//!
//! let search = Search::new(vec![Place { folder: "/nowhere".into(), origin: PlaceOrigin::User }]);
//! let error = search.runtime("upper").expect_err("there is nothing at all");
//! assert_eq!(error.to_string(), "there is no runtime `upper` among the plugins here");
//! ```

mod code;
mod error;
mod fields;
mod functions;
mod guard;
mod host;
mod library;
mod load;
mod merge;
mod order;
mod package;
mod plugin;
mod process;
mod runtime;
mod search;
mod settings;
#[cfg(feature = "conformance")]
mod suite;
mod trial;

pub use error::PluginError;
pub use host::{Log, LogLine, Surroundings};
pub use load::abi_version;
pub use merge::PluginMerge;
pub use offshoot_plugin_abi::wire::manifest::{Manifest, MergeEntry, RuntimeEntry};
pub use package::{
    AbiVersion, LibraryFile, NameError, PACKAGE_FILE, Package, PackageProblem, PackageProblems,
    Per, PluginName, ProcessEntry, target,
};
pub use plugin::{Plugin, shutdown_all};
pub use runtime::PluginRuntime;
pub use search::{Candidate, Checked, Examined, Place, PlaceOrigin, Search, trust_digest};
#[cfg(feature = "conformance")]
pub use suite::{Finding, Suite, Verdict, check, suite};
pub use trial::{Described, Extent, Trier, trial, try_out};
