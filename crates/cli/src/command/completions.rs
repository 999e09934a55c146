//! `offshoot completions`.

use clap::Args;
use clap_complete::Shell;

use crate::completion;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Print a script that completes the command line in a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot completions bash > ~/.local/share/bash-completion/completions/offshoot
  offshoot completions zsh > ~/.zfunc/_offshoot
  offshoot completions fish > ~/.config/fish/completions/offshoot.fish")]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// Prints the script.
pub(crate) fn run(arguments: &CompletionsArguments, cx: &Invocation) -> Result<(), Failure> {
    let script = completion::script(&arguments.shell.to_string());
    let script = script.map_err(|error| Failure::of(Exit::BadInput, &error))?;
    cx.output.bytes(&script)
}
