//! The flag of commands whose JSON has versions.

use clap::Args;
use offshoot_display::json::Format;

use super::words::{FORMAT, one_of};

/// The version of the form of JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct FormatArgument {
    /// The version of the form in which --json prints
    #[arg(long, value_name = "VERSION", value_parser = one_of(FORMAT), default_value = "2")]
    pub(crate) format: Format,
}
