//! Loads the plugin `exec` and runs one command with it: `plugin-supervisor KEEPER FOLDER PROGRAM ARGS…`.
//!
//! It prints `child PID` and each line of the command. When its standard input ends, it shuts its plugins down and ends.

#![expect(clippy::print_stdout, reason = "its output is what the test reads")]

use std::path::Path;
use std::time::Duration;

use offshoot_plugin_host::{Surroundings, shutdown_all};
use offshoot_plugin_tests::{Listener, json, launch, load};
use offshoot_process::{KeeperCommand, Options, Processes};
use offshoot_runtime::{RunContext, RunEvent, RunHost, Runtime, StopHandle};

fn print(event: &RunEvent) {
    match event {
        RunEvent::Started(Some(process)) => println!("child {}", process.pid),
        RunEvent::Progress(line) => println!("{line}"),
        RunEvent::Started(None)
        | RunEvent::ToolUsed(_)
        | RunEvent::Used { .. }
        | RunEvent::Answers
        | RunEvent::BacksOff { .. }
        | RunEvent::ModelChanged(_)
        | RunEvent::QuotaLeft { .. }
        | RunEvent::StrayEnded { .. } => {}
    }
}

#[tokio::main]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [keeper, folder, command @ ..] = &args[..] else { panic!("too few arguments") };
    let keeper = KeeperCommand { program: keeper.into(), args: vec!["keeper".into()], log: None };
    let options = Options { keeper: Some(keeper), subreaper: true, ..Options::default() };
    let processes = Some(Processes::start(options).expect("processes cannot be held"));
    let folder = Path::new(folder);
    let plugin = load("exec", folder, Surroundings { processes, ..Surroundings::default() });
    let exec = plugin.runtime("exec", &json("{}")).expect("the plugin has no such runtime");

    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let (_handle, stop) = StopHandle::new();
    let cx = RunContext::new(RunHost::new(Listener::at(print)), stop);
    let mut run = exec.start(launch(folder, "the task", &command), cx);
    let input_ends = tokio::task::spawn_blocking(|| std::io::read_to_string(std::io::stdin()));
    tokio::select! {
        finished = &mut run => println!("{}", finished.reason),
        _ = input_ends => {
            let failed = shutdown_all(Duration::from_secs(10)).await;
            println!("{} failed to shut down", failed.len());
            println!("{}", run.await.reason);
        }
    }
}
