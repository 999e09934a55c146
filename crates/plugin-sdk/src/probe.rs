//! Answers to probes: what a check wants to see of this library, done here instead of by its author.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use offshoot_model::JsonText;
use offshoot_plugin_abi::wire::probe::{self, Probe};
use offshoot_runtime::{Finished, MergeFault, MergeInput, MergeJob, RunHost};

/// The probe of a document; none where it is another one, or where this library was built without them.
pub(crate) fn asked(json: &str) -> Option<Probe> {
    if cfg!(feature = "conformance") { probe::decode(json) } else { None }
}

/// Panics, where the document is a probe that asks for it.
pub(crate) fn answer(json: &str) {
    if asked(json) == Some(Probe::Panic) {
        as_asked();
    }
}

/// The outcome of a run that is a probe.
pub(crate) fn run(probe: Probe, host: &RunHost) -> Finished {
    match probe {
        Probe::Panic | Probe::LatePanic => as_asked(),
        Probe::Events(count) => {
            host.started(None);
            (0..count).for_each(|number| host.progress(number.to_string()));
            Finished::text(count.to_string())
        }
        Probe::Bytes(count) => {
            host.started(None);
            let count = usize::try_from(count).expect("addresses have as many bits");
            Finished::text("x".repeat(count))
        }
    }
}

/// The merge whose parameters are a probe; none where they are parameters.
pub(crate) fn merge(params: &str) -> Option<Box<dyn MergeJob>> {
    answer(params);
    (asked(params)? == Probe::LatePanic).then(|| Box::new(Late) as Box<dyn MergeJob>)
}

fn as_asked() -> ! {
    panic!("as a probe asks for")
}

/// Panics when it is finished.
struct Late;

impl MergeJob for Late {
    fn push(&mut self, _index: u32, _result: MergeInput) -> Result<Option<JsonText>, MergeFault> {
        Ok(None)
    }

    fn finish(&mut self) -> BoxFuture<'static, Result<JsonText, MergeFault>> {
        async { as_asked() }.boxed()
    }
}
