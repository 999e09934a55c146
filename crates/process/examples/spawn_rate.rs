//! Measures the time that one child takes, beside tokio's own `Command`, in the same run and by turns.
//!
//! ```text
//! cargo run --release -p offshoot-process --example spawn_rate -- [CHILDREN] [AT_ONCE]
//! ```

use std::error::Error;
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use offshoot_process::{
    Exit, Keep, KeeperCommand, NeverStop, Options, Processes, Program, run_keeper,
};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

const ROUNDS: usize = 7;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut args = std::env::args().skip(1).peekable();
    if args.peek().is_some_and(|arg| arg == "keeper") {
        run_keeper();
    }
    let children = args.next().map_or(Ok(1000), |arg| arg.parse())?;
    let at_once = args.next().map_or(Ok(4), |arg| arg.parse())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(compare(children, at_once))?;
    Ok(ExitCode::SUCCESS)
}

#[expect(clippy::print_stdout, reason = "an example speaks")]
async fn compare(children: usize, at_once: usize) -> Result<(), Box<dyn Error>> {
    let keeper =
        KeeperCommand { program: std::env::current_exe()?, args: vec!["keeper".into()], log: None };
    // Before the sub-reaper flag is set, which cannot be taken back for the others.
    let plain = Processes::start(Options::default())?;
    let held =
        Processes::start(Options { keeper: Some(keeper), subreaper: true, ..Options::default() })?;
    let mut times: [Vec<Duration>; 3] = Default::default();
    for _ in 0..ROUNDS {
        times[0].push(timed(children, at_once, bare).await);
        times[1].push(timed(children, at_once, || ours(plain.clone())).await);
        times[2].push(timed(children, at_once, || ours(held.clone())).await);
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort();
        times[ROUNDS / 2].as_secs_f64() * 1e6 / children as f64
    };
    let [bare, plain, held] = times.each_mut().map(median);
    println!("{children} children, {at_once} at once, median of {ROUNDS}:");
    println!("  tokio Command              {bare:6.0} µs");
    println!("  plain                      {plain:6.0} µs   {:.2}", plain / bare);
    println!("  with keeper and subreaper  {held:6.0} µs   {:.2}", held / bare);
    Ok(())
}

/// Runs so many, and so many at once.
async fn timed<F>(children: usize, at_once: usize, start: impl Fn() -> F) -> Duration
where
    F: Future<Output = ()> + Send + 'static,
{
    let (slots, mut tasks) = (Arc::new(Semaphore::new(at_once)), JoinSet::new());
    let begin = Instant::now();
    for _ in 0..children {
        let (slots, child) = (Arc::clone(&slots), start());
        tasks.spawn(async move {
            let _slot = slots.acquire_owned().await.expect("it is never closed");
            child.await;
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.expect("no child panics");
    }
    begin.elapsed()
}

async fn bare() {
    #[expect(clippy::disallowed_methods, reason = "the comparison")]
    let mut command = tokio::process::Command::new("/bin/true");
    let output = command.env_clear().stdin(Stdio::null()).output().await;
    assert!(output.expect("the program cannot be started").status.success());
}

async fn ours(processes: Processes) {
    let child = processes.spawn(Program {
        stdout: Keep::First(16 * 1024).into(),
        stderr: Keep::Last(4096).into(),
        ..Program::new("/bin/true", "/")
    });
    let finished = child.expect("the program cannot be started").wait(NeverStop).await;
    assert_eq!(finished.exit, Exit::Code(0));
}
