//! A merge function of a program and its merges, as objects of the interface.

use std::sync::Arc;

use offshoot_plugin_abi::abi_stable::sabi_trait::TD_Opaque;
use offshoot_plugin_abi::abi_stable::std_types::{ROption, RResult, RStr, RString};
use offshoot_plugin_abi::async_ffi::FutureExt;
use offshoot_plugin_abi::wire::line::{Request, op};
use offshoot_plugin_abi::{
    AbiError, Later, Merge, Merge_TO, MergeJob, MergeJob_TO, MergeJobRef, MergeRef, RunHostRef,
};
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::link::Link;
use super::run::EXIT;
use super::{Inner, json};
use crate::package::Per;

/// A merge function of a program.
pub(super) fn merge(plugin: Arc<Inner>, name: &str, config: Box<RawValue>) -> MergeRef {
    Merge_TO::from_value(MergeObject { plugin, name: name.to_owned(), config }, TD_Opaque)
}

struct MergeObject {
    plugin: Arc<Inner>,
    name: String,
    config: Box<RawValue>,
}

impl Merge for MergeObject {
    fn begin(&self, params_json: RStr<'_>, host: RunHostRef) -> RResult<MergeJobRef, AbiError> {
        let begun = self.begun(params_json.as_str(), host);
        begun.map(|job| MergeJob_TO::from_value(job, TD_Opaque)).into()
    }
}

impl MergeObject {
    fn begun(&self, params: &str, host: RunHostRef) -> Result<JobObject, AbiError> {
        let params = json(params, "parameters")?;
        let link = self.plugin.link_for_one()?;
        let failing = Arc::downgrade(&link);
        let made = Box::new(move |answer: Result<_, AbiError>| {
            if let (Err(error), Some(link)) = (answer, failing.upgrade()) {
                link.fail(error);
            }
        });
        let of = link.object(op::MERGE, &self.name, &self.config, made);
        let request = Request { params: Some(&params), ..Request::new(op::BEGIN) }.of(of);
        let mut id = 0;
        let begun =
            self.plugin.wait(&link, op::BEGIN, |then| id = link.ask_with(&request, host, then));
        // Where it did not begin, this ends what there is of it.
        let job = JobObject { link, id };
        begun.map(|_| job)
    }
}

struct JobObject {
    link: Arc<Link>,
    id: u64,
}

impl MergeJob for JobObject {
    fn push(
        &mut self,
        index: u32,
        meta_json: RStr<'_>,
        result_json: RStr<'_>,
    ) -> RResult<ROption<RString>, AbiError> {
        let pushed = self.pushed(index, meta_json.as_str(), result_json.as_str());
        pushed.map(|early| early.map(RString::from).into()).into()
    }

    fn finish(&mut self) -> Later {
        let (tx, rx) = oneshot::channel();
        // A caller that gave the answer up is not told.
        let then = Box::new(|answer| drop(tx.send(answer)));
        self.link.ask(&Request::new(op::FINISH).of(self.id), then);
        async move {
            let gone = || Err(AbiError::new(AbiError::CANCELLED, "this merge is over"));
            let answer = rx.await.unwrap_or_else(|_| gone());
            RResult::from(answer.map(|reply| RString::from(reply.ok)))
        }
        .into_ffi()
    }
}

impl JobObject {
    fn pushed(&self, index: u32, meta: &str, result: &str) -> Result<Option<String>, AbiError> {
        let (meta, result) = (json(meta, "result")?, json(result, "result")?);
        let request = Request {
            index: Some(index),
            meta: Some(&meta),
            result: Some(&result),
            ..Request::new(op::PUSH)
        };
        let request = request.of(self.id);
        let plugin = self.link.plugin();
        let reply = plugin.wait(&self.link, op::PUSH, |then| self.link.ask_push(&request, then))?;
        reply.early.expect("it was a push")
    }
}

impl Drop for JobObject {
    fn drop(&mut self) {
        self.link.forget(self.id);
        match self.link.plugin().per {
            Per::Plugin => self.link.tell(&Request::new(op::DROP).of(self.id)),
            Per::Run => {
                let link = Arc::clone(&self.link);
                let home = link.plugin().home.clone();
                home.spawn(async move { link.retire(EXIT).await });
            }
        }
    }
}
