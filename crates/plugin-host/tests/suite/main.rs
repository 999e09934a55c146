//! Plugins of both kinds, real ones, good and awkward.

mod libraries;
mod programs;

use tokio::sync::RwLock;

/// Held for reading by the tests of plugins that a [`shutdown_all`](offshoot_plugin_host::shutdown_all) of another test would end:
/// it ends those of the whole process.
static SHUTDOWN: RwLock<()> = RwLock::const_new(());
