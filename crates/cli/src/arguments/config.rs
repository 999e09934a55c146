//! `offshoot config`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::LimitArguments;

/// Look into the configuration
#[derive(Debug, Args)]
pub(crate) struct ConfigArguments {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

/// The subcommand.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print every value that is set, and where
    Show,
    /// Print the limits that hold for an agent, and where each comes from
    Resolve(Box<ResolveArguments>),
    /// Say what is wrong with a file, or that nothing is
    Check(CheckArguments),
    /// Print the JSON Schema of configuration files
    Schema,
    /// Write a configuration file (TOML) with every key and its meaning, all commented out
    Init(ConfigInitArguments),
}

/// `offshoot config resolve`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot config resolve
  offshoot config resolve --agent reviewer --json")]
pub(crate) struct ResolveArguments {
    /// The agent
    #[arg(long, value_name = "ID", default_value = "main")]
    pub(crate) agent: String,

    #[command(flatten)]
    pub(crate) limits: LimitArguments,
}

/// `offshoot config check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot config check
  offshoot config check .offshoot/config.toml")]
pub(crate) struct CheckArguments {
    /// The file, TOML or JSON5 [default: the whole configuration that holds in this folder]
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

/// `offshoot config init`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot config init
  offshoot config init ~/.config/offshoot/config.toml")]
pub(crate) struct ConfigInitArguments {
    /// The file; it must not exist [default: .offshoot/config.toml]
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}
