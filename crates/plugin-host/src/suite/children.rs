//! The rules about a run that asks for children.

use offshoot_model::RunStatus;
use offshoot_plugin_abi::RuntimeRef;

use super::listener::{Children, Listener};
use super::runtime::{read, start};
use super::{Book, soon};

const ANSWERED: &str = "a run that asks for a child completes with the answer of its wait";
const REFUSED: &str = "a run whose child is refused completes";
const STOPPED: &str = "a run that waits for a child can be stopped";
/// The reason why children cannot be tried.
const NO_ASKING_TASK: &str = "no task was named that asks for a child";

/// Tries the rules with a task that asks for a child.
pub(super) async fn check(
    runtime: &RuntimeRef,
    subject: &str,
    task: Option<&str>,
    book: &mut Book<'_>,
) {
    let Some(task) = task else {
        return book.skip(subject, ANSWERED, NO_ASKING_TASK);
    };
    book.rule(subject, ANSWERED, completes(runtime, task, Children::Answer)).await;
    book.rule(subject, REFUSED, completes(runtime, task, Children::Refused)).await;
    book.rule(subject, STOPPED, async {
        let listener = Listener::with(Children::Hang);
        let run = start(runtime, task, &listener);
        // A runtime may also end its turn, and be given the result with the next one.
        tokio::select! {
            biased;
            waits = soon("its wait for the child", listener.waits()) => waits?,
            _ = run.outcome() => return Err("it ended without a wait for its child".to_owned()),
        }
        run.cancel(0);
        let outcome = soon("its end, once it was stopped while it waited,", run.outcome()).await?;
        match read(&outcome) {
            Ok(finished) if finished.reason.status() == RunStatus::Completed => {
                Err("it says that it completed".to_owned())
            }
            _ => Ok(()),
        }
    })
    .await;
}

/// Checks that a run completes which gets this answer, and that it waited for nothing but its own children.
async fn completes(runtime: &RuntimeRef, task: &str, children: Children) -> Result<(), String> {
    let listener = Listener::with(children);
    let run = start(runtime, task, &listener);
    let outcome = soon("its outcome, once its request was answered,", run.outcome()).await?;
    let asked = listener.asked();
    let foreign = asked.waits.iter().flatten().find(|run| !asked.granted.contains(run));
    if asked.spawns == 0 {
        return Err("it asked for no child".to_owned());
    }
    if let Some(foreign) = foreign {
        return Err(format!("it waited for {foreign}, which is no child of it"));
    }
    if matches!(children, Children::Answer) && asked.waits.is_empty() {
        return Err("it did not wait for its child".to_owned());
    }
    let reason = read(&outcome)?.reason;
    if reason.status() == RunStatus::Completed { Ok(()) } else { Err(reason.to_string()) }
}
