//! `oolong-pairs label`: the agent that labels its piece, or hands it on in parts.

use std::io::{Read as _, stdin};
use std::os::unix::process::CommandExt as _;
use std::process::ExitCode;

use offshoot_oolong_pairs::{Asks, Faults, Reaction, labeller};
use rustix::process::{Signal, getpid, kill_process};

use crate::arguments::LabelArguments;
use crate::{Result, print};

/// The parts into which an agent cuts its piece.
const PARTS: &str = "chunks:4";

pub(crate) fn run(arguments: &LabelArguments) -> Result<ExitCode> {
    let &LabelArguments { seed, label_errors, refusals, kills, levels, .. } = arguments;
    let faults = Faults { seed, label_errors, refusals, kills };
    if levels > 1 {
        return Err(hand_on(&faults, arguments)?.into());
    }
    let mut text = String::new();
    stdin().lock().read_to_string(&mut text)?;
    let asks = Asks::Folder(arguments.asks.clone());
    let ask = if faults.depend_on_calls() { asks.count(&text)? } else { 0 };
    match faults.react(&text, ask) {
        Reaction::Labels(text) => print(text.trim_end()),
        Reaction::Refusal(text) => print(text),
        Reaction::Death => kill_process(getpid(), Signal::KILL)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Becomes the command that cuts the piece, and answers with what the parts answer. Returns only if it cannot.
fn hand_on(faults: &Faults, arguments: &LabelArguments) -> Result<std::io::Error> {
    let LabelArguments { asks, levels, offshoot, .. } = arguments;
    let below = labeller(&std::env::current_exe()?, faults, asks, levels - 1);
    #[expect(
        clippy::disallowed_methods,
        reason = "this process becomes the command, and starts none"
    )]
    let mut command = std::process::Command::new(offshoot);
    command.args(["map", "--quiet", "--split", PARTS, "--on-failure", "skip", "--separator", "\n"]);
    Ok(command.args(["-", "--"]).args(below).exec())
}
