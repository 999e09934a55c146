//! Flags that every command takes, before or after its name.

use std::path::PathBuf;

use clap::{ArgAction, Args};

use crate::output::Loudness;

/// Flags that every command takes.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Read FILE on top of all other configuration files
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Keep data in DIR [default: $OFFSHOOT_DATA_DIR, else .offshoot]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,

    /// Append a log to FILE [default: standard error, where $OFFSHOOT_LOG is set]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) log_file: Option<PathBuf>,

    /// Print results as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Say nothing but errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    /// Say more
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

impl Global {
    /// Returns the result of `-q` and `-v`.
    pub(crate) const fn loudness(&self) -> Loudness {
        match (self.quiet, self.verbose) {
            (true, _) => Loudness::Quiet,
            (false, 0) => Loudness::Normal,
            (false, _) => Loudness::Verbose,
        }
    }
}
