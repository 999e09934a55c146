//! Merge functions, as they cross.

use std::sync::Arc;

use futures_util::FutureExt;
use offshoot_model::JsonText;
use offshoot_plugin_abi::abi_stable::sabi_trait::TD_Opaque;
use offshoot_plugin_abi::abi_stable::std_types::{ROption, RResult, RStr, RString};
use offshoot_plugin_abi::async_ffi::FutureExt as _;
use offshoot_plugin_abi::wire::merge as wire;
use offshoot_plugin_abi::{
    AbiError, Later, Merge as AbiMerge, MergeJob as AbiMergeJob, MergeJob_TO, MergeJobRef,
    RunHostRef,
};
use offshoot_runtime::{Merge, MergeFault, MergeInput, MergeJob, MergeValue, RunHost};

use crate::loaded::Loaded;
use crate::merge::over;
use crate::run_host::Link;
use crate::{Config, guard, probe};

/// A merge function as its host has it.
pub(crate) struct MergeObject {
    loaded: &'static Loaded,
    /// None only while it is dropped.
    merge: Option<Arc<dyn Merge>>,
}

impl MergeObject {
    pub(crate) fn new(loaded: &'static Loaded, merge: Arc<dyn Merge>) -> Self {
        Self { loaded, merge: Some(merge) }
    }
}

impl AbiMerge for MergeObject {
    fn begin(&self, params_json: RStr<'_>, host: RunHostRef) -> RResult<MergeJobRef, AbiError> {
        guard::answer(|| {
            let executor = self.loaded.executor.handle()?;
            let _entered = executor.enter();
            let params = json(Config::new(params_json.as_str()).as_json(), "parameters")?;
            let link = Link::new(host, None);
            let merge = self.merge.as_ref().expect("it is not being dropped");
            let job = match probe::merge(params.as_str()) {
                Some(job) => job,
                None => merge
                    .begin(&params, RunHost::from(Arc::clone(&link)))
                    .map_err(|fault| AbiError::new(AbiError::INVALID, fault.message))?,
            };
            let object = JobObject { loaded: self.loaded, link, job: Some(job) };
            Ok(MergeJob_TO::from_value(object, TD_Opaque))
        })
        .into()
    }
}

impl Drop for MergeObject {
    fn drop(&mut self) {
        guard::drop_quietly(self.merge.take());
    }
}

/// A merge as its host has it.
struct JobObject {
    loaded: &'static Loaded,
    link: Arc<Link>,
    /// None once it has answered, failed or been finished.
    job: Option<Box<dyn MergeJob>>,
}

impl AbiMergeJob for JobObject {
    fn push(
        &mut self,
        index: u32,
        meta_json: RStr<'_>,
        result_json: RStr<'_>,
    ) -> RResult<ROption<RString>, AbiError> {
        let pushed = guard::answer(|| {
            let job = self.job.as_mut().ok_or_else(|| failed(over()))?;
            let executor = self.loaded.executor.handle()?;
            let _entered = executor.enter();
            probe::answer(meta_json.as_str());
            let wire::Meta { key, status, file } = wire::decode(meta_json.as_str())?;
            let value = match file {
                Some(wire::File { path, kind, size }) => MergeValue::File { path, kind, size },
                None => value(result_json.as_str())?,
            };
            job.push(index, MergeInput { key, status, value }).map_err(failed)
        });
        if !matches!(pushed, Ok(None)) {
            // It has answered, or its state can no longer be trusted.
            guard::drop_quietly(self.job.take());
        }
        pushed.map(|early| early.map(|json| json.as_str().into()).into()).into()
    }

    fn finish(&mut self) -> Later {
        let (job, link) = (self.job.take(), Arc::clone(&self.link));
        let finish = async move {
            let answer = job.ok_or_else(over).map_err(failed)?.finish().await;
            link.close();
            answer.map(|json| json.as_str().into()).map_err(failed)
        };
        self.loaded.later(finish).map(Into::into).into_ffi()
    }
}

impl Drop for JobObject {
    fn drop(&mut self) {
        // A merge that is being finished still has its host.
        if let Some(job) = self.job.take() {
            self.link.close();
            guard::drop_quietly(job);
        }
    }
}

/// A string is text, as it was before it crossed.
fn value(text: &str) -> Result<MergeValue, AbiError> {
    if text.trim_start().starts_with('"') {
        let text: Arc<str> = serde_json::from_str(text)
            .map_err(|error| AbiError::new(AbiError::INVALID, format!("result: {error}")))?;
        return Ok(MergeValue::Text(text));
    }
    json(text, "result").map(MergeValue::Json)
}

fn json(text: &str, what: &str) -> Result<JsonText, AbiError> {
    JsonText::parse(text.to_owned())
        .map_err(|error| AbiError::new(AbiError::INVALID, format!("{what}: {error}")))
}

fn failed(fault: MergeFault) -> AbiError {
    let code = if fault.panicked { AbiError::PANICKED } else { AbiError::FAILED };
    AbiError::new(code, fault.message)
}
