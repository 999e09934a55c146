//! The thread of one merge: it takes results, keeps what is needed of them, and runs the program at the end.
//!
//! Values of programs stay on one thread, and calls in calls take more stack than an ordinary one has.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;

use jaq_json::Val;
use offshoot_plugin_sdk::{JsonText, MergeFault, MergeInput, MergeValue};
use tokio::sync::oneshot;

use crate::params::Params;
use crate::program::{Program, ProgramError};
use crate::results;
use crate::watch::Watch;

/// The way to the thread. When it is dropped, the program ends soon, and the thread with it.
pub(crate) struct Worker {
    tx: SyncSender<Work>,
    faulty: Arc<OnceLock<MergeFault>>,
    stop: StopOnDrop,
}

/// The answer of a merge. When it is dropped before it came, the program ends soon.
pub(crate) struct Answer {
    rx: oneshot::Receiver<Result<JsonText, MergeFault>>,
    _stop: StopOnDrop,
}

enum Work {
    Result(u32, MergeInput),
    Finish(oneshot::Sender<Result<JsonText, MergeFault>>),
}

/// Asks the program to end when its answer is not waited for any more.
struct StopOnDrop(Arc<AtomicBool>);

/// Results that wait for the thread. A caller that brings more waits with them, so that these are all that is held.
const WAITING: usize = 4;

/// The stack of the thread. It is only taken as far as it is used.
const STACK: usize = 256 * 1024 * 1024;

/// Of it, what calls may use. The rest is for what a call does before the next look, and for dropping nested values.
const STACK_FOR_CALLS: usize = STACK / 2;

impl Worker {
    /// Begins, once its programs were found to be some: better now than when all the work is done.
    pub(crate) fn start(params: Params) -> Result<(thread::JoinHandle<()>, Self), MergeFault> {
        let (tx, rx) = sync_channel(WAITING);
        let (read, was_read) = sync_channel(1);
        let faulty = Arc::new(OnceLock::new());
        let stop = Arc::new(AtomicBool::new(false));
        let (fault, stopped) = (Arc::clone(&faulty), Arc::clone(&stop));
        let work = move || match Programs::read(&params) {
            // A caller that is gone wants no answer.
            Err(wrong) => drop(read.send(Err(wrong))),
            Ok(programs) => {
                let _ = read.send(Ok(()));
                let shelf = Shelf { params, programs, kept: BTreeMap::new(), bytes: 0, stopped };
                shelf.serve(&rx, &fault);
            }
        };
        let thread = thread::Builder::new().name("merge-jq".to_owned()).stack_size(STACK);
        let thread = thread
            .spawn(work)
            .map_err(|error| MergeFault::new(format!("no thread for the program: {error}")))?;
        was_read.recv().map_err(|_| panicked())??;
        Ok((thread, Self { tx, faulty, stop: StopOnDrop(stop) }))
    }

    /// Hands a result over. What is wrong with one that was handed over before is told here.
    pub(crate) fn push(&self, index: u32, result: MergeInput) -> Result<(), MergeFault> {
        let sent = self.tx.send(Work::Result(index, result));
        match self.faulty.get() {
            Some(fault) => Err(fault.clone()),
            None => sent.map_err(|_| panicked()),
        }
    }

    /// No more results come.
    pub(crate) fn finish(self) -> Answer {
        let Self { tx, stop, .. } = self;
        let (reply, rx) = oneshot::channel();
        // Where the thread is gone, so is the reply.
        let _ = tx.send(Work::Finish(reply));
        Answer { rx, _stop: stop }
    }
}

impl Answer {
    pub(crate) async fn wait(self) -> Result<JsonText, MergeFault> {
        self.rx.await.map_err(|_| panicked())?
    }
}

/// The programs of a merge.
struct Programs {
    whole: Program,
    each: Option<Program>,
}

impl Programs {
    fn read(params: &Params) -> Result<Self, MergeFault> {
        let whole = Program::read(&params.program).map_err(fault)?;
        let each = params.each.as_deref().map(Program::read).transpose();
        let each = each.map_err(|error| of_each(fault(error)))?;
        Ok(Self { whole, each })
    }
}

/// The results that are kept until the end.
struct Shelf {
    params: Params,
    programs: Programs,
    /// By their places. Without a program for each, one value a place.
    kept: BTreeMap<u32, Vec<Kept>>,
    bytes: u64,
    stopped: Arc<AtomicBool>,
}

enum Kept {
    /// A result as it came, which is less than a tree of values.
    Whole(MergeInput),
    /// A value that was made of it, as text for the same reason.
    Made(String),
}

impl Shelf {
    fn serve(mut self, rx: &Receiver<Work>, faulty: &OnceLock<MergeFault>) {
        for work in rx {
            match work {
                // The first one of a place counts, so that a replay may repeat itself.
                Work::Result(index, _) if self.kept.contains_key(&index) => {}
                Work::Result(..) if faulty.get().is_some() => {}
                Work::Result(index, result) => match self.take(result) {
                    Ok(values) => drop(self.kept.insert(index, values)),
                    Err(fault) => {
                        self.kept.clear();
                        // It is empty: that was asked before.
                        let _ = faulty.set(fault);
                    }
                },
                Work::Finish(reply) => {
                    let answer = match faulty.get() {
                        Some(fault) => Err(fault.clone()),
                        None => self.answer(),
                    };
                    let _ = reply.send(answer);
                    return;
                }
            }
        }
    }

    /// The part of a result that is to be kept.
    fn take(&mut self, result: MergeInput) -> Result<Vec<Kept>, MergeFault> {
        let Self { params, programs, bytes, stopped, .. } = self;
        let key = Arc::clone(&result.key);
        let mut fits = |size: u64| {
            *bytes = bytes.saturating_add(size);
            match *bytes > params.max_bytes {
                true => Err(too_many(params)),
                false => Ok(()),
            }
        };
        let Some(each) = &programs.each else {
            fits(size(&result.value))?;
            return Ok(vec![Kept::Whole(result)]);
        };
        if size(&result.value) > params.max_bytes {
            return Err(too_many(params));
        }
        let watch = Watch::new(Arc::clone(stopped), params.limit, STACK_FOR_CALLS);
        let mut made = Vec::new();
        for value in each.values(results::one(result)?, &watch) {
            let value = value.map_err(|error| {
                let MergeFault { message, .. } = of_each(fault(error));
                MergeFault::new(format!("the result of `{key}`: {message}"))
            })?;
            let value = value.to_string();
            fits(value.len() as u64)?;
            made.push(Kept::Made(value));
        }
        Ok(made)
    }

    fn answer(self) -> Result<JsonText, MergeFault> {
        let Self { params, programs, kept, stopped, .. } = self;
        let watch = Watch::new(stopped, params.limit, STACK_FOR_CALLS);
        let values = kept.into_values().flatten().map(|kept| match kept {
            Kept::Whole(result) => results::one(result),
            Kept::Made(text) => results::parse("each", &text),
        });
        let input: Val = values.collect::<Result<_, _>>()?;
        let answer = programs.whole.run(input, &watch).map_err(fault)?;
        // Its numbers know more than JSON, and its texts may be any bytes.
        JsonText::parse(answer).map_err(|error| {
            MergeFault::new(format!("the jq program gave a value that is no JSON: {error}"))
        })
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn size(value: &MergeValue) -> u64 {
    match value {
        MergeValue::Text(text) => text.len() as u64,
        MergeValue::Json(json) => json.as_str().len() as u64,
        MergeValue::File { size, .. } => *size,
    }
}

fn too_many(params: &Params) -> MergeFault {
    let Params { max_bytes, each, .. } = params;
    let instead = match each {
        Some(_) => "make less of each",
        None => "keep less of each with `each`",
    };
    MergeFault::new(format!(
        "the results are larger than {max_bytes} bytes together; {instead}, or raise `maxBytes`"
    ))
}

fn of_each(fault: MergeFault) -> MergeFault {
    MergeFault { message: format!("`each`: {}", fault.message), ..fault }
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

    fn start(params: &str) -> (thread::JoinHandle<()>, Worker) {
        let params = JsonText::parse(params.to_owned()).expect("JSON");
        Worker::start(Params::read(&params).expect("parameters")).expect("a thread")
    }

    #[test]
    fn a_program_ends_when_it_is_not_waited_for() {
        let (thread, worker) = start(r#""def f: f; f""#);
        drop(worker.finish());
        thread.join().expect("it ends in peace, and soon");
        let (thread, worker) = start(r#"{"each": "def f: f; f"}"#);
        let value = MergeValue::Text("x".into());
        let status = offshoot_plugin_sdk::model::RunStatus::Completed;
        worker.push(0, MergeInput { key: "k".into(), status, value }).expect("it has room");
        drop(worker);
        thread.join().expect("it ends in peace, and soon");
    }
}
