//! The folders in which plugins are looked for first.

use std::path::PathBuf;

use clap::Args;

/// The folders in which plugins are looked for first.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PluginPathArguments {
    /// Look for plugins in DIR first; may be given more than once
    #[arg(long, value_name = "DIR")]
    pub(crate) plugin_path: Vec<PathBuf>,
}
