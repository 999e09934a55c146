//! The adapter between the contract and the service.

use std::ffi::OsString;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use offshoot_model::{JsonText, Reason};
use offshoot_runtime::{
    Abilities, CostKnowledge, Credential, Finished, Launch, Pressure, RunContext, Runtime, Secrets,
    SharedPrompt, system_prompt_in_parts,
};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::compaction::Due;
use crate::endpoint::EndpointError;
use crate::history::History;
use crate::meter::{Meter, Pricing};
use crate::service::Service;
use crate::session::{RESPONSE_FORMAT, Session};
use crate::{CostOption, OpenAiOptions, context, tools};

/// Runs models behind a chat endpoint. Cheap to clone; all runs share what its connections and its service's requests to
/// slow down are.
#[derive(Clone, derive_more::Debug)]
#[debug("OpenAiRuntime({})", inner.name)]
pub struct OpenAiRuntime {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    options: OpenAiOptions,
    /// The service, or the fault in the options, which each run reports, and each check before.
    service: Result<Service, EndpointError>,
    pressure: Pressure,
}

impl OpenAiRuntime {
    /// A runtime of this name for this endpoint. The key and the proxies come from the environment, which is not kept.
    pub fn new(
        name: impl Into<String>,
        options: OpenAiOptions,
        environment: &[(OsString, OsString)],
    ) -> Self {
        let service = Service::new(&options, environment);
        let inner = Inner { name: name.into(), options, service, pressure: Pressure::default() };
        Self { inner: Arc::new(inner) }
    }

    /// The same, which waits with all trees of its account where the service has too much to do. Asked of a runtime that was just made.
    #[must_use]
    pub fn with_pressure(mut self, pressure: Pressure) -> Self {
        let inner = Arc::get_mut(&mut self.inner).expect("no run of it has begun");
        inner.pressure = pressure;
        self
    }

    /// Checks that the options are complete: the address is usable, and the key is there. Makes no call.
    pub fn check(&self) -> Result<(), EndpointError> {
        self.inner.service.as_ref().map(drop).map_err(Clone::clone)
    }

    /// One run; an error is the reason why nothing was asked.
    async fn run(&self, launch: Launch, cx: RunContext) -> Result<Finished, Reason> {
        let Inner { options, service, pressure, .. } = &*self.inner;
        let metered =
            launch.meter.as_ref().map(|meter| Service::metered(options, meter)).transpose();
        let metered = metered.map_err(|error| cannot_start(error.to_string()))?;
        let service =
            service.as_ref().map_err(|error| cannot_start(format!("{error}; {}", error.hint())))?;
        let service = metered.as_ref().unwrap_or(service);
        let Some(model) = launch.model.as_deref().or(options.model.as_deref()) else {
            return Err(cannot_start(
                "no model is chosen, for the agent or in the options".to_owned(),
            ));
        };
        let may_spawn = launch.may_spawn();
        let (system, to_spend) = system_prompt_in_parts(&launch, may_spawn);
        let (prompt, sources) = context::first(&launch, options.inline_bytes, to_spend.as_deref())
            .map_err(|error| cannot_start(format!("its input cannot be read: {error}")))?;
        let RunContext { host, mut stop, turns, .. } = cx;
        host.started(None);
        let compaction = options.compaction(&launch.agent);
        let mut session = Session {
            options,
            service,
            pressure,
            host,
            secrets: Secrets::new(service.secret().into_iter().chain(launch.tickets())),
            turns,
            fields: fields(options, model, launch.thinking.as_deref()),
            response_format: response_format(options, launch.schema.as_ref()),
            tools: tools::offer(may_spawn, !sources.is_empty()),
            tools_of_host: Vec::new(),
            sources,
            history: History::new(system, prompt),
            max_rounds: options.max_rounds(&launch.agent),
            compaction,
            pruning: options.pruning(&launch.agent),
            due: Due::new(compaction.limit()),
            meter: Meter::new(options.pricing(model)),
            models: options.fallback_models(&launch.agent).iter().cloned().collect(),
            stand_in: None,
            chance: Pressure::chance(launch.run),
            said: String::new(),
            has_answered: false,
            counted: None,
            came: 0,
            told: Instant::now(),
            retry_after: None,
        };
        let reason = tokio::select! {
            biased;
            reason = session.run() => reason,
            // Nothing was started that would have to end in order: a connection that is dropped is closed, whatever the
            // grace.
            _ = stop.heard() => session.stopped(),
        };
        Ok(session.finish(reason, launch.output))
    }
}

impl Runtime for OpenAiRuntime {
    fn name(&self) -> &str {
        &self.inner.name
    }

    /// Returns the room of a conversation, which the supervisor keeps: no process is started.
    fn memory(&self) -> u64 {
        4 << 20
    }

    fn shared_prompt(&self) -> Option<SharedPrompt> {
        Some(self.inner.options.shared_prompt())
    }

    fn abilities(&self) -> Abilities {
        let options = &self.inner.options;
        let cost = match options.model.as_deref().map(|model| options.pricing(model)) {
            Some(Pricing::Known(_)) => CostKnowledge::Reported,
            // It costs no dollars, and its tokens count.
            _ if options.cost == CostOption::None => CostKnowledge::Reported,
            _ => CostKnowledge::Unknown,
        };
        Abilities { cost, turns: true, resumes: false, enforces: None }
    }

    fn credential(&self) -> Option<Credential> {
        let key = self.inner.service.as_ref().ok()?.secret().unwrap_or_default();
        Some(Credential::of([self.inner.options.base_url.as_bytes(), key.as_bytes()]))
    }

    fn start(&self, launch: Launch, cx: RunContext) -> BoxFuture<'static, Finished> {
        let runtime = self.clone();
        async move { runtime.run(launch, cx).await.unwrap_or_else(Finished::of) }.boxed()
    }
}

/// Returns the fields that do not change from one request of a run to the next.
fn fields(options: &OpenAiOptions, model: &str, thinking: Option<&str>) -> Map<String, Value> {
    let mut fields = options.request.clone();
    fields.insert("model".to_owned(), model.into());
    match thinking {
        // Some models cannot do without, and endpoints have no common word for it.
        None | Some("off") => {}
        Some(level) => {
            fields.insert("reasoning_effort".to_owned(), level.into());
        }
    }
    fields
}

/// Returns the form of answers as the service is asked for it; none where the options say another one.
fn response_format(options: &OpenAiOptions, schema: Option<&JsonText>) -> Option<Value> {
    let schema: Value = serde_json::from_str(schema?.as_str()).ok()?;
    let is_set = options.request.contains_key(RESPONSE_FORMAT);
    let format =
        json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}});
    (!is_set).then_some(format)
}

fn cannot_start(message: String) -> Reason {
    Reason::CannotStart { message }
}
