//! The merge: results go to a thread of its own, and its answer comes back.

use std::future::ready;

use offshoot_plugin_sdk::{
    BoxFuture, FutureExt, JsonText, Merge, MergeFault, MergeInput, MergeJob, RunHost,
};

use crate::params::Params;
use crate::worker::Worker;

/// A merge by a jq program.
#[derive(Clone, Copy, Debug, Default)]
pub struct MergeJq;

/// None once it was finished.
struct Job(Option<Worker>);

impl Merge for MergeJq {
    fn name(&self) -> &str {
        "merge-jq"
    }

    fn begin(&self, params: &JsonText, _host: RunHost) -> Result<Box<dyn MergeJob>, MergeFault> {
        let (_thread, worker) = Worker::start(Params::read(params)?)?;
        Ok(Box::new(Job(Some(worker))))
    }
}

impl MergeJob for Job {
    fn push(&mut self, index: u32, result: MergeInput) -> Result<Option<JsonText>, MergeFault> {
        self.0.as_ref().ok_or_else(over)?.push(index, result)?;
        Ok(None)
    }

    fn finish(&mut self) -> BoxFuture<'static, Result<JsonText, MergeFault>> {
        match self.0.take() {
            Some(worker) => worker.finish().wait().boxed(),
            None => ready(Err(over())).boxed(),
        }
    }
}

fn over() -> MergeFault {
    MergeFault::new("this merge is over")
}
