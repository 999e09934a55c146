//! The merge: results are gathered, and the program runs once, at the end, on a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use offshoot_plugin_sdk::{
    BoxFuture, FutureExt, JsonText, Merge, MergeFault, MergeInput, MergeJob, RunHost,
};
use serde::Deserialize;
use tokio::sync::oneshot;

use crate::program::{Program, ProgramError};
use crate::results::{self, Results};
use crate::watch::Watch;

/// A merge by a jq program.
#[derive(Clone, Copy, Debug, Default)]
pub struct MergeJq;

/// What a merge is asked for: the text of a program, or an object with it.
struct Params {
    program: Arc<str>,
    limit: Duration,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Object {
    program: String,
    #[serde(default = "default_seconds")]
    seconds: u64,
}

struct Job {
    params: Params,
    results: Results,
}

/// Asks the program to end when nobody waits for it any more.
struct StopOnDrop(Arc<AtomicBool>);

/// The stack of the thread that runs a program. It is only taken as far as it is used.
const STACK: usize = 256 * 1024 * 1024;

/// Of it, what calls may use. The rest is for what a call does before the next look, and for dropping nested values.
const STACK_FOR_CALLS: usize = STACK / 2;

impl Merge for MergeJq {
    fn name(&self) -> &str {
        "merge-jq"
    }

    fn begin(&self, params: &JsonText, _host: RunHost) -> Result<Box<dyn MergeJob>, MergeFault> {
        let params = Params::read(params)?;
        // Better now than when all the work is done.
        let program = Arc::clone(&params.program);
        let check = move || Program::read(&program).map(drop);
        on_thread(check)?.join().map_err(|_| panicked())?.map_err(fault)?;
        Ok(Box::new(Job { params, results: Results::new() }))
    }
}

impl MergeJob for Job {
    fn push(&mut self, index: u32, result: MergeInput) -> Result<Option<JsonText>, MergeFault> {
        // The first one counts, so that a replay may repeat itself.
        self.results.entry(index).or_insert(result);
        Ok(None)
    }

    fn finish(&mut self) -> BoxFuture<'static, Result<JsonText, MergeFault>> {
        let results = std::mem::take(&mut self.results);
        match start(&self.params, results) {
            Ok((_, answer)) => answer,
            Err(fault) => std::future::ready(Err(fault)).boxed(),
        }
    }
}

type Answer = BoxFuture<'static, Result<JsonText, MergeFault>>;

/// Starts the program. It ends soon after its answer was dropped.
fn start(
    params: &Params,
    results: Results,
) -> Result<(thread::JoinHandle<()>, Answer), MergeFault> {
    let (program, limit) = (Arc::clone(&params.program), params.limit);
    let stop = Arc::new(AtomicBool::new(false));
    let stop_on_drop = StopOnDrop(Arc::clone(&stop));
    let (tx, rx) = oneshot::channel();
    let thread = on_thread(move || {
        // Nobody to tell is nobody who wants to know.
        let _ = tx.send(run(&program, results, stop, limit));
    })?;
    let answer = async move {
        let _stop_on_drop = stop_on_drop;
        rx.await.map_err(|_| panicked())?
    };
    Ok((thread, answer.boxed()))
}

impl Params {
    fn read(params: &JsonText) -> Result<Self, MergeFault> {
        let text = params.as_str();
        let Object { program, seconds } = if text.trim_start().starts_with('"') {
            serde_json::from_str(text).map(|program| Object { program, seconds: default_seconds() })
        } else {
            serde_json::from_str(text)
        }
        .map_err(|error| {
            MergeFault::new(format!(
                "merge-jq takes a program, or an object with `program` and `seconds`: {error}"
            ))
        })?;
        Ok(Self { program: program.into(), limit: Duration::from_secs(seconds) })
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn run(
    program: &str,
    results: Results,
    stop: Arc<AtomicBool>,
    limit: Duration,
) -> Result<JsonText, MergeFault> {
    let watch = Watch::new(stop, limit, STACK_FOR_CALLS);
    let input = results::value(results)?;
    let answer =
        Program::read(program).and_then(|program| program.run(input, &watch)).map_err(fault)?;
    // Its numbers know more than JSON, and its texts may be any bytes.
    JsonText::parse(answer).map_err(|error| {
        MergeFault::new(format!("the jq program gave a value that is no JSON: {error}"))
    })
}

fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<thread::JoinHandle<T>, MergeFault> {
    let thread = thread::Builder::new().name("merge-jq".to_owned()).stack_size(STACK);
    thread
        .spawn(work)
        .map_err(|error| MergeFault::new(format!("no thread for the program: {error}")))
}

/// Long enough for a gigabyte, short enough for somebody who waits.
fn default_seconds() -> u64 {
    300
}

fn fault(error: ProgramError) -> MergeFault {
    let hint = match error {
        ProgramError::Values(_) => "; put [ ] around it to get them all",
        ProgramError::Wrong(_)
        | ProgramError::TooLong
        | ProgramError::Failed(_)
        | ProgramError::Halted(_) => "",
    };
    MergeFault::new(format!("{error}{hint}"))
}

fn panicked() -> MergeFault {
    MergeFault { message: "the program's thread panicked".to_owned(), panicked: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_ends_when_nobody_waits_for_it() {
        let params = JsonText::of(&"def f: f; f").expect("plain data");
        let params = Params::read(&params).expect("a program");
        let (thread, answer) = start(&params, Results::new()).expect("a thread");
        drop(answer);
        thread.join().expect("it ends in peace, and soon");
    }

    #[test]
    fn parameters() {
        #[track_caller]
        fn check(params: &str, expected: Result<(&str, u64), &str>) {
            let params = JsonText::parse(params.to_owned()).expect("JSON");
            let found = Params::read(&params);
            let found = found.map(|params| (params.program.to_string(), params.limit.as_secs()));
            let expected = expected.map(|(program, seconds)| (program.to_owned(), seconds));
            match expected {
                Ok(expected) => assert_eq!(found, Ok(expected)),
                Err(part) => {
                    let message = found.expect_err("refused").message;
                    assert!(message.contains(part), "{message}");
                }
            }
        }
        check(r#"".""#, Ok((".", 300)));
        check(r#"{"program": "add", "seconds": 5}"#, Ok(("add", 5)));
        check("null", Err("merge-jq takes a program"));
        check("{}", Err("missing field `program`"));
        check(r#"{"program": ".", "limit": 1}"#, Err("unknown field `limit`"));
    }
}
