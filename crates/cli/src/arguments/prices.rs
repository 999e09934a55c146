//! `offshoot prices`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Show the prices of models, or take them over from a file
///
/// Budgets in dollars and shown costs are relative to these prices. They stand in tables [prices.MODEL] of the
/// configuration.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot prices show
  offshoot prices show claude-sonnet-5-5
  offshoot prices update prices-2026-11.toml --dry-run")]
pub(crate) struct PricesArguments {
    #[command(subcommand)]
    pub(crate) command: PricesCommand,
}

/// The subcommand.
#[derive(Debug, Subcommand)]
pub(crate) enum PricesCommand {
    /// List the models that have a price, one a line; of one model print every value, and where it stands
    Show(PricesShowArguments),
    /// Take the prices of a file over into prices.toml beside your own configuration
    Update(PricesUpdateArguments),
}

/// `offshoot prices show`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot prices show
  offshoot prices show claude-sonnet-5-5
  Models whose prices have no date:
    offshoot prices show --json | jq -r 'to_entries[] | select(.value.date == null) | .key'")]
pub(crate) struct PricesShowArguments {
    /// The model, as its table is called
    #[arg(value_name = "MODEL")]
    pub(crate) model: Option<String>,
}

/// `offshoot prices update`.
#[derive(Debug, Args)]
#[command(after_help = "\
A file has a table for each model, in dollars for a million tokens:

  [prices.claude-sonnet-5-5]
  inputPerMillion = 3.0
  outputPerMillion = 15.0
  date = 2026-11-01

Example:
  offshoot prices update prices-2026-11.toml")]
pub(crate) struct PricesUpdateArguments {
    /// A TOML file that holds tables [prices.MODEL] and nothing else
    ///
    /// The table of a model takes the place of the one that was taken over before, unless its date is earlier. Models that the
    /// file does not name keep their prices. What config.toml says of a model stands above both.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Say what would change, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}
