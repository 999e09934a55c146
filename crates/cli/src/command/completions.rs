//! `offshoot completions`.

use clap::CommandFactory;

use crate::arguments::{Arguments, CompletionsArguments};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Prints the script.
pub(crate) fn run(arguments: &CompletionsArguments, cx: &Invocation) -> Result<Exit, Failure> {
    // Into memory first: the generator panics where its writer fails, and a closed pipe is no bug.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "offshoot", &mut script);
    cx.output.bytes(&script)?;
    Ok(Exit::Done)
}
