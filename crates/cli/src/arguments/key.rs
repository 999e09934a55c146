//! `offshoot key`.

use clap::{Args, Subcommand};

/// Look into a session key
#[derive(Debug, Args)]
pub(crate) struct KeyArguments {
    #[command(subcommand)]
    pub(crate) command: KeyCommand,
}

/// The subcommand.
#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Say what a key is made of; a malformed key is an error that shows the place
    #[command(after_help = "\
Example:
  offshoot key parse agent:main:subagent:a:sub:b --json")]
    Parse {
        /// The session key
        #[arg(value_name = "KEY", allow_hyphen_values = true)]
        key: String,
    },
    /// Print how deep a session is; 0 also for what is no key
    #[command(after_help = "\
Example:
  offshoot key depth agent:main:subagent:a:sub:b")]
    Depth {
        /// The session key
        #[arg(
            value_name = "KEY",
            default_value = "",
            allow_hyphen_values = true,
            hide_default_value = true
        )]
        key: String,
    },
    /// Print the key of the parent; exits 1 where there is none
    #[command(after_help = "\
Example:
  offshoot key parent agent:main:subagent:a:sub:b")]
    Parent {
        /// The session key
        #[arg(
            value_name = "KEY",
            default_value = "",
            allow_hyphen_values = true,
            hide_default_value = true
        )]
        key: String,
    },
}
