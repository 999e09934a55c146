//! `offshoot completions`.

use crate::arguments::CompletionsArguments;
use crate::completion;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Prints the script.
pub(crate) fn run(arguments: &CompletionsArguments, cx: &Invocation) -> Result<(), Failure> {
    let script = completion::script(&arguments.shell.to_string());
    let script = script.map_err(|error| Failure::of(Exit::BadInput, &error))?;
    cx.output.bytes(&script)
}
