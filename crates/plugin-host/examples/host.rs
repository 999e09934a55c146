//! A small program that runs plugins: `host LIBRARY RUNTIME TASK` tries a library out in a process of its own, loads it, runs
//! the task and prints its answer. What cannot be used ends it with code 5, as it does the command.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "what it prints is what it is for")]

use std::io::{self, Read};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use futures_util::future::BoxFuture;
use offshoot_model::{JsonText, Refusal, RefusalCode, RunId, SpawnRequest};
use offshoot_plugin_host::{
    Checked, Extent, Plugin, PluginError, Surroundings, Trier, shutdown_all, trial, try_out,
};
use offshoot_process::{Options, Processes};
use offshoot_runtime::{
    Finished, Host, Launch, Output, RunContext, RunEvent, RunHost, Runtime, StopHandle, WaitAnswer,
    WaitFor,
};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [library, runtime, task] = &args[..] else { return be_tried() };
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    match threads.expect("there are threads").block_on(run(library, runtime, task)) {
        Ok(finished) => {
            let answer = match finished.output {
                Output::Text(text) => text.to_string(),
                other => format!("{other:?}"),
            };
            println!("{}\n{answer}", finished.reason);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}\nhint: {}", error.hint().unwrap_or_default());
            ExitCode::from(5)
        }
    }
}

/// Does the work of the hidden mode of the command.
fn be_tried() -> ExitCode {
    let mut order = Vec::new();
    io::stdin().read_to_end(&mut order).expect("an order can be read");
    println!("{}", trial(&order).expect("it is an order"));
    ExitCode::SUCCESS
}

async fn run(library: &str, runtime: &str, task: &str) -> Result<Finished, PluginError> {
    let nothing = || JsonText::parse("{}".to_owned()).expect("it is JSON");
    let checked = Checked::file(Path::new(library))?;
    let processes = Processes::start(Options::default()).expect("the system has processes");
    let trier = Trier {
        processes: processes.clone(),
        program: std::env::current_exe().expect("a program has a file"),
        args: Vec::new(),
        environment: Vec::new(),
    };
    let runtimes = vec![(runtime.to_owned(), nothing())];
    let extent = Extent { config: Some(nothing()), runtimes, merges: Vec::new() };
    try_out(&trier, &checked, &extent).await?;
    let surroundings = Surroundings { processes: Some(processes), ..Surroundings::default() };
    let plugin = Plugin::load(&checked, surroundings, &nothing())?;
    let runtime = plugin.runtime(runtime, &nothing())?;
    let (_handle, stop) = StopHandle::new();
    let cx = RunContext::new(RunHost::new(Printer), stop);
    let finished = runtime.start(Launch::bare(task), cx).await;
    match shutdown_all(Duration::from_secs(5)).await.pop() {
        Some(error) => Err(error),
        None => Ok(finished),
    }
}

/// Prints what a run tells, and admits no children.
struct Printer;

impl Host for Printer {
    fn hear(&self, event: RunEvent) {
        println!("{event:?}");
    }

    fn spawn(&self, _request: SpawnRequest) -> BoxFuture<'static, Result<RunId, Refusal>> {
        Box::pin(async { Err(Refusal::new(RefusalCode::RecursionDisabled, "none here")) })
    }

    fn wait(&self, _wait: WaitFor) -> BoxFuture<'static, Result<WaitAnswer, Refusal>> {
        Box::pin(async { Ok(WaitAnswer::default()) })
    }
}
