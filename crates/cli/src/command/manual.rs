//! `offshoot manual`.

use std::fs;
use std::path::PathBuf;

use clap::{Args, CommandFactory};

use crate::arguments::Arguments;
use crate::code::{FailureCode, NoteCode};
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Write the manual pages of all commands
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  offshoot manual ~/.local/share/man/man1")]
pub(crate) struct ManualArguments {
    /// The folder to write them into
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}

/// Writes one page for each command.
pub(crate) fn run(arguments: &ManualArguments, cx: &Invocation) -> Result<(), Failure> {
    let folder = &arguments.folder;
    let failed = |error: std::io::Error| {
        Failure::file(FailureCode::CannotWrite, "write into", folder, &error)
    };
    fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(Arguments::command(), folder).map_err(failed)?;
    cx.output
        .note(NoteCode::ManualWritten, format_args!("manual pages are in {}", folder.display()));
    Ok(())
}
