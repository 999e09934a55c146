//! Merge functions: many results into one answer.

use std::borrow::Cow;
use std::marker::PhantomData;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use offshoot_model::{JsonText, ValueKind};
use offshoot_runtime::{Merge, MergeFault, MergeInput, MergeJob, MergeValue, RunHost};
use serde::Serialize;
use serde::de::{DeserializeOwned, IntoDeserializer};

use crate::{Config, Error};

/// A way to merge: takes results as runs end, in any order, and answers at the end or as soon as it can.
///
/// The value is one merge. Dropped, it is abandoned.
pub trait MergeFn: Send + Sized + 'static {
    /// Begins one merge. Parameters that it cannot use are refused here.
    ///
    /// # Errors
    /// What is wrong with its parameters or settings.
    fn begin(setup: MergeSetup) -> Result<Self, Error>;

    /// One result, with its place in the request, from 0. With an answer the merge is over: it stands, and the rest need
    /// not come. It must not block for long.
    ///
    /// # Errors
    /// Why no answer can come of this merge any more.
    fn push(&mut self, index: u32, result: MergeInput) -> Result<Option<JsonText>, Error>;

    /// The answer to what was pushed. A JSON string is shown as the text that it is.
    ///
    /// # Errors
    /// Why there is none.
    fn finish(self) -> impl Future<Output = Result<JsonText, Error>> + Send + 'static;
}

/// The start of a merge: its parameters and settings.
#[derive(Debug)]
pub struct MergeSetup {
    /// The parameters that stand behind the name, `--merge plugin:NAME=params`, or what the caller of an interface gave.
    pub params: Config,
    /// The settings of this merge function.
    pub config: Config,
    /// The settings of the whole plugin.
    pub plugin_config: Config,
    /// For merges that ask agents: children are asked for as a run asks for them.
    pub host: RunHost,
}

/// A merge function as the contract has it: for use without a plugin, and for tests.
#[derive(Debug)]
pub struct MergeOf<M> {
    name: String,
    config: Config,
    plugin_config: Config,
    function: PhantomData<fn() -> M>,
}

impl<M: MergeFn> MergeOf<M> {
    /// Under this name, with these settings of its own and of its plugin.
    pub fn new(name: &str, config: Config, plugin_config: Config) -> Self {
        Self { name: name.to_owned(), config, plugin_config, function: PhantomData }
    }
}

impl<M: MergeFn> Merge for MergeOf<M> {
    fn name(&self) -> &str {
        &self.name
    }

    fn begin(&self, params: &JsonText, host: RunHost) -> Result<Box<dyn MergeJob>, MergeFault> {
        let params = Config::new(params.as_str());
        let (config, plugin_config) = (self.config.clone(), self.plugin_config.clone());
        let function = M::begin(MergeSetup { params, config, plugin_config, host })?;
        Ok(Box::new(Job(Some(function))))
    }
}

/// None once it has been finished.
struct Job<M>(Option<M>);

impl<M: MergeFn> MergeJob for Job<M> {
    fn push(&mut self, index: u32, result: MergeInput) -> Result<Option<JsonText>, MergeFault> {
        let function = self.0.as_mut().ok_or_else(over)?;
        Ok(function.push(index, result)?)
    }

    fn finish(&mut self) -> BoxFuture<'static, Result<JsonText, MergeFault>> {
        match self.0.take() {
            Some(function) => function.finish().map(|answer| answer.map_err(Into::into)).boxed(),
            None => ready(Err(over())).boxed(),
        }
    }
}

pub(crate) fn over() -> MergeFault {
    MergeFault::new("this merge is over")
}

/// Reads a result as a type of yours, such as `serde_json::Value`. Reads its file, where it is in one.
///
/// # Errors
/// Fails if it is of another type, or the file cannot be read.
pub fn value_of<T: DeserializeOwned>(result: &MergeInput) -> Result<T, Error> {
    let error = |error: serde_json::Error| {
        Error::failed(format!("the result of `{}`: {error}", result.key))
    };
    match &result.value {
        MergeValue::Text(text) => T::deserialize((&**text).into_deserializer()).map_err(error),
        MergeValue::Json(json) => serde_json::from_str(json.as_str()).map_err(error),
        MergeValue::File { kind: ValueKind::Json | ValueKind::Result, .. } => {
            serde_json::from_str(&text_of(result)?).map_err(error)
        }
        MergeValue::File { .. } => {
            T::deserialize((&*text_of(result)?).into_deserializer()).map_err(error)
        }
    }
}

/// Reads a result as text: the string itself for strings, compact JSON otherwise. Reads its file, where it is in one.
///
/// # Errors
/// Fails if the file cannot be read, or holds no text.
pub fn text_of(result: &MergeInput) -> Result<Cow<'_, str>, Error> {
    match &result.value {
        MergeValue::Text(text) => Ok(Cow::Borrowed(text)),
        MergeValue::Json(json) => Ok(Cow::Borrowed(json.as_str())),
        MergeValue::File { path, .. } => {
            std::fs::read_to_string(path).map(Cow::Owned).map_err(|error| {
                let (key, path) = (&result.key, path.display());
                Error::failed(format!("the result of `{key}` in {path}: {error}"))
            })
        }
    }
}

/// Anything that serialises, as an answer.
///
/// # Errors
/// Fails if it cannot be JSON.
pub fn json_of(value: &impl Serialize) -> Result<JsonText, Error> {
    JsonText::of(value)
        .map_err(|error| Error::failed(format!("an answer that is no JSON: {error}")))
}
