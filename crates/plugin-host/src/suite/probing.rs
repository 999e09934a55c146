//! The rules that only the SDK of a plugin can try: panics, and events and answers of any size. See
//! [`probe`](offshoot_plugin_abi::wire::probe).

use std::sync::Arc;

use offshoot_plugin_abi::abi_stable::std_types::RResult;
use offshoot_plugin_abi::wire::finished;
use offshoot_plugin_abi::wire::probe::{self, Probe};
use offshoot_plugin_abi::{AbiError, RunRef, RuntimeRef};
use offshoot_runtime::{Output, RunEvent};

use super::listener::Listener;
use super::{Book, Suite, Verdict, soon};
use crate::host::{Surroundings, host};
use crate::plugin::{Plugin, words};

/// The answer of a plugin to probes.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Probing {
    Answers,
    /// The plugin was built without the SDK, or with one that knows none.
    Not,
}

/// Events of one run.
const MANY: u32 = 10_000;
/// An answer of this size, in bytes.
const LARGE: u32 = 100 << 20;
/// The same where an answer is a line: a longer one is a file, for which a probe has no folder.
const LARGE_LINE: u32 = 10 << 20;
const NOT: &str =
    "it does not answer to probes, as what is built with the SDK's feature `conformance` does";

/// Finds out whether it answers to probes, and tries its own entries.
pub(super) async fn check(plugin: &Arc<Plugin>, suite: &Suite, book: &mut Book<'_>) -> Probing {
    let panic = probe::encode(Probe::Panic);
    let mut probing = Probing::Not;
    book.judge("the plugin", "a panic in any of its entries is an error", async {
        let entry = match (suite.runtimes.first(), suite.merges.first()) {
            (Some((name, _)), _) => {
                plugin.functions.runtime(name.as_str(), panic.as_str()).map(drop)
            }
            (None, Some((name, _))) => {
                plugin.functions.merge(name.as_str(), panic.as_str()).map(drop)
            }
            (None, None) => return Verdict::Skipped("it has nothing to give".to_owned()),
        };
        if caught(entry).is_err() {
            return Verdict::Skipped(NOT.to_owned());
        }
        probing = Probing::Answers;
        // Only now: a plugin that takes a probe for settings must not begin with them.
        let nothing = host(Surroundings::default(), tracing::Span::none());
        let init = plugin.functions.init(nothing, panic.as_str());
        verdict(caught(init.map(drop)))
    })
    .await;
    probing
}

/// Tries the entries of a runtime.
pub(super) async fn of_runtime(
    plugin: &Plugin,
    runtime: &RuntimeRef,
    subject: &str,
    probing: Probing,
    book: &mut Book<'_>,
) {
    let events = format!("{MANY} events come in order, and before the outcome");
    let large = if plugin.is_program() { LARGE_LINE } else { LARGE };
    let bytes = format!("an answer of {} MB comes whole", large >> 20);
    let panics = "a panic in a run is its outcome, and in an operation of it an error";
    if probing == Probing::Not {
        [panics, &events, &bytes].into_iter().for_each(|rule| book.skip(subject, rule, NOT));
        return;
    }
    let start = |probe| -> (Listener, RunRef) {
        let listener = Listener::default();
        let host = listener.crossing();
        (listener, runtime.start(probe::encode(probe).as_str().into(), host))
    };
    book.rule(subject, panics, async {
        let (_, run) = start(Probe::Panic);
        for _ in 0..2 {
            caught(soon("its outcome", run.outcome()).await?.map(drop))?;
        }
        if plugin.is_program() {
            // Its run is over, and so is what could be asked of it.
            return Ok(());
        }
        let panic = probe::encode(Probe::Panic);
        let called = run.call("letter".into(), panic.as_str().into());
        caught(soon("the answer", called).await?.map(drop))
    })
    .await;
    book.rule(subject, &events, async {
        let (listener, run) = start(Probe::Events(MANY));
        let outcome = soon("its outcome", run.outcome()).await?;
        let heard = listener.heard();
        finished(outcome)?;
        let expected = (0..MANY).map(|number| RunEvent::Progress(number.to_string().into()));
        match heard.split_first() {
            Some((RunEvent::Started(_), told)) if told.iter().cloned().eq(expected) => Ok(()),
            _ => Err(format!("{} events, or in another order", heard.len())),
        }
    })
    .await;
    book.rule(subject, &bytes, async {
        let (_, run) = start(Probe::Bytes(large));
        match finished(soon("its outcome", run.outcome()).await?)? {
            Output::Text(text)
                if text.len() == large as usize && text.bytes().all(|b| b == b'x') =>
            {
                Ok(())
            }
            other => Err(format!("it is another one, of {} bytes", format!("{other:?}").len())),
        }
    })
    .await;
}

/// Tries the entries of a merge.
pub(super) async fn of_merge(
    plugin: &Arc<Plugin>,
    name: &str,
    subject: &str,
    probing: Probing,
    book: &mut Book<'_>,
) {
    let rule = "a panic where it begins, takes a result or finishes is an error";
    if probing == Probing::Not {
        book.skip(subject, rule, NOT);
        return;
    }
    book.rule(subject, rule, async {
        let panic = probe::encode(Probe::Panic);
        let late = probe::encode(Probe::LatePanic);
        let given = plugin.functions.merge(name, "{}");
        let merge = given.into_result().map_err(|error| words(&error))?;
        let begin = |params: &str| merge.begin(params.into(), Listener::default().crossing());
        caught(begin(&panic).map(drop))?;
        let mut job = begin(&late).into_result().map_err(|error| words(&error))?;
        caught(job.push(0, panic.as_str().into(), "null".into()).map(drop))?;
        let mut job = begin(&late).into_result().map_err(|error| words(&error))?;
        caught(soon("the answer", job.finish()).await?.map(drop))
    })
    .await;
}

fn caught(answer: RResult<(), AbiError>) -> Result<(), String> {
    match answer {
        RResult::RErr(error) if error.known_code() == AbiError::PANICKED => Ok(()),
        RResult::RErr(error) => Err(format!("code {}: {}", error.code, words(&error))),
        RResult::ROk(()) => Err("it went well".to_owned()),
    }
}

fn verdict(kept: Result<(), String>) -> Verdict {
    kept.map_or_else(Verdict::Broken, |()| Verdict::Kept)
}

fn finished(outcome: RResult<offshoot_plugin_abi::Outcome, AbiError>) -> Result<Output, String> {
    let outcome = outcome.into_result().map_err(|error| words(&error))?;
    Ok(finished::decode(outcome).map_err(|error| words(&error))?.output)
}
