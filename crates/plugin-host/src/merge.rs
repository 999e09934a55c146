//! A merge of a plugin as an ordinary one.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use offshoot_model::JsonText;
use offshoot_plugin_abi::abi_stable::std_types::{ROption, RResult, RString};
use offshoot_plugin_abi::wire::merge::{self, Meta};
use offshoot_plugin_abi::{AbiError, MergeJobRef, MergeRef};
use offshoot_runtime::{Merge, MergeFault, MergeInput, MergeJob, MergeValue, RunHost, Secrets};

use crate::host::{cross, panic_text, run_host};
use crate::plugin::{Plugin, words};

/// A merge of a plugin.
pub struct PluginMerge {
    /// The plugin that the functions belong to.
    plugin: Arc<Plugin>,
    name: String,
    merge: MergeRef,
}

impl PluginMerge {
    pub(crate) fn new(plugin: Arc<Plugin>, name: &str, merge: MergeRef) -> Self {
        Self { plugin, name: name.to_owned(), merge }
    }

    /// The plugin behind it.
    pub fn plugin(&self) -> &Arc<Plugin> {
        &self.plugin
    }
}

impl Merge for PluginMerge {
    fn name(&self) -> &str {
        &self.name
    }

    fn begin(&self, params: &JsonText, host: RunHost) -> Result<Box<dyn MergeJob>, MergeFault> {
        let host = cross(&run_host(host, Secrets::default(), None, None, self.plugin.log()));
        match self.merge.begin(params.as_str().into(), host) {
            RResult::ROk(job) => Ok(Box::new(PluginJob { job, name: self.name.clone() })),
            RResult::RErr(error) => Err(fault(&self.name, &error)),
        }
    }
}

struct PluginJob {
    job: MergeJobRef,
    name: String,
}

impl MergeJob for PluginJob {
    fn push(&mut self, index: u32, result: MergeInput) -> Result<Option<JsonText>, MergeFault> {
        let MergeInput { key, status, value } = result;
        let (value, file) = match value {
            MergeValue::Text(text) => {
                (serde_json::to_string(&*text).expect("text is always JSON"), None)
            }
            MergeValue::Json(json) => (json.as_str().to_owned(), None),
            MergeValue::File { path, kind, size } => {
                ("null".to_owned(), Some(merge::File { path, kind, size }))
            }
        };
        let meta =
            merge::encode(Meta { key, status, file }).map_err(|error| fault(&self.name, &error))?;
        match self.job.push(index, meta.as_str().into(), value.as_str().into()) {
            RResult::ROk(ROption::RNone) => Ok(None),
            RResult::ROk(ROption::RSome(answer)) => answered(&self.name, answer).map(Some),
            RResult::RErr(error) => Err(fault(&self.name, &error)),
        }
    }

    fn finish(&mut self) -> BoxFuture<'static, Result<JsonText, MergeFault>> {
        let (answer, name) = (self.job.finish(), self.name.clone());
        async move {
            match AssertUnwindSafe(answer).catch_unwind().await {
                Ok(RResult::ROk(answer)) => answered(&name, answer),
                Ok(RResult::RErr(error)) => Err(fault(&name, &error)),
                Err(panic) => {
                    let message = format!("merge `{name}`: it panicked: {}", panic_text(&*panic));
                    Err(MergeFault { message, panicked: true })
                }
            }
        }
        .boxed()
    }
}

fn answered(name: &str, answer: RString) -> Result<JsonText, MergeFault> {
    JsonText::parse(answer.into_string()).map_err(|error| {
        MergeFault::new(format!("merge `{name}`: its answer is not JSON: {error}"))
    })
}

fn fault(name: &str, error: &AbiError) -> MergeFault {
    MergeFault {
        message: format!("merge `{name}`: {}", words(error)),
        panicked: error.known_code() == AbiError::PANICKED,
    }
}

impl fmt::Debug for PluginMerge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PluginMerge")
            .field("name", &self.name)
            .field("plugin", &self.plugin)
            .finish_non_exhaustive()
    }
}
