//! The trees of probes.

use std::collections::BTreeSet;
use std::sync::Arc;

use offshoot_audit::Audit;
use offshoot_config::{AgentId, Config, Loader, Source, SourceKind, SubagentSettings};
use offshoot_model::{Ending, Event, Reason};
use offshoot_runtime::EXEC;
use offshoot_spawner::{RootSpec, RunSpec, Session, Spawner};
use offshoot_store::{MemoryStore, Store};
use serde_json::Value;

use crate::agent::{Agent, Body};
use crate::error::{NoProbe, ProofError};
use crate::probe::{Probe, Verdict};

/// The name of the runtime of agents that name none.
const PROBE: &str = "probe";

/// The configuration under which all probes are made.
pub(crate) struct Trial {
    loader: Loader,
    /// The settings that hold for a tree of the default agent.
    pub(crate) settings: SubagentSettings,
}

/// A tree of one probe.
pub(crate) struct ProbeTree {
    pub(crate) session: Session,
    store: Arc<MemoryStore>,
    with: Vec<String>,
}

/// The result of a probe without its limit.
pub(crate) struct Finding {
    pub(crate) asked: String,
    pub(crate) got: String,
    /// The code of the answer to more.
    pub(crate) answer: Option<String>,
    pub(crate) verdict: Verdict,
}

impl Trial {
    pub(crate) fn new(loader: &Loader) -> Result<Self, ProofError> {
        let config = loader.clone().load()?;
        let settings = config.root_settings(config.default_agent());
        Ok(Self { loader: loader.clone(), settings })
    }

    /// The agents that are defined.
    pub(crate) fn config(&self) -> Result<Config, ProofError> {
        Ok(self.loader.clone().load()?)
    }

    /// Returns the same with one more agent, and its id.
    pub(crate) fn with_another_agent(&self) -> Result<(Self, AgentId), ProofError> {
        let id = AgentId::parse("probe-other").expect("it is an id");
        let text = format!("[[agents.list]]\nid = \"{id}\"\n");
        let loader = self.loader.clone().file(Source::new(SourceKind::File, "probe", text));
        Ok((Self::new(&loader)?, id))
    }

    /// Opens a tree with these settings changed, whose agents all have this body. Where a ceiling forbids the change, the limit
    /// cannot be tried.
    pub(crate) async fn open(
        &self,
        with: &[(&str, Value)],
        body: Body,
    ) -> Result<ProbeTree, NoProbe> {
        let mut loader = self.loader.clone();
        for (key, value) in with {
            loader = loader.set(format!("agents.defaults.subagents.{key}"), value.clone());
        }
        let config =
            loader.load().map_err(|errors| Verdict::NotTried { why: errors.to_string() })?;
        let store = Arc::new(MemoryStore::new());
        let agent = config.default_agent().clone();
        let mut names: BTreeSet<String> = config
            .agents()
            .filter_map(|agent| agent.runtime.as_ref())
            .map(|it| it.value.clone())
            .collect();
        // A program that an agent names is run by this one.
        names.insert(EXEC.to_owned());
        names.remove(PROBE);
        let mut builder = Spawner::builder().runtime(Agent::in_place_of(PROBE, &body));
        for name in names {
            builder = builder.runtime(Agent::in_place_of(&name, &body));
        }
        let shared: Arc<dyn Store> = Arc::<MemoryStore>::clone(&store);
        let spawner = builder.config(config).store(shared).build()?;
        let run_spec = RunSpec { runtime: Some(PROBE.into()), ..RunSpec::in_folder("/") };
        let spec = RootSpec { agent, run_spec, ..RootSpec::new("asks for more than it may have") };
        let session = spawner.open(spec).await?;
        let with = with.iter().map(|(key, value)| format!("{key}={value}")).collect();
        Ok(ProbeTree { session, store, with })
    }

    /// A probe that opened no tree.
    pub(crate) fn untried(&self, limit: &'static str, verdict: Verdict) -> Probe {
        let nothing = || "–".to_owned();
        let finding = Finding { asked: nothing(), got: nothing(), answer: None, verdict };
        self.probe(limit, Vec::new(), finding)
    }

    /// Ends a tree, audits its record and returns the probe.
    pub(crate) async fn close(
        &self,
        limit: &'static str,
        tree: ProbeTree,
        finding: Finding,
    ) -> Result<Probe, NoProbe> {
        let ProbeTree { session, store, with } = tree;
        session.cascade();
        session.close(Ending::of(Reason::Completed { exit_code: None })).await?;
        let events: Vec<Event> = store.all_events().collect::<Result<_, _>>()?;
        let findings = Audit::of(&events);
        let mut probe = self.probe(limit, with, finding);
        if let Some(breach) = findings.breaches.first() {
            probe.verdict = Verdict::Broken { why: format!("the audit of its record: {breach}") };
        }
        Ok(probe)
    }

    fn probe(&self, limit: &'static str, with: Vec<String>, finding: Finding) -> Probe {
        let Finding { asked, got, answer, verdict } = finding;
        let set = self.settings.value(limit);
        let value = set.as_ref().map(|set| set.value.to_string());
        let origin = set.map(|set| set.origin.to_string());
        Probe { limit, value, origin, with, asked, got, answer, verdict }
    }
}

impl Finding {
    /// Judges a count: as many as the limit allows, or fewer because another limit was reached.
    pub(crate) fn counted(
        unit: &str,
        limit: u64,
        asked: u64,
        got: u64,
        answer: Option<String>,
        own_code: &str,
    ) -> Self {
        let verdict = match &answer {
            _ if got > limit => Verdict::Broken { why: format!("{got} instead of {limit}") },
            Some(code) if code == own_code && got == limit => Verdict::Holds,
            Some(code) if code == own_code => {
                Verdict::Broken { why: format!("refused at {got}, before {limit}") }
            }
            Some(code) => Verdict::Before { by: code.clone() },
            None => {
                Verdict::Broken { why: "more was asked for, and nothing was refused".to_owned() }
            }
        };
        let plural = match unit {
            "child" => "children".to_owned(),
            unit => format!("{unit}s"),
        };
        let amount = |number: u64| match number {
            1 => format!("1 {unit}"),
            many => format!("{many} {plural}"),
        };
        Self { asked: amount(asked), got: amount(got), answer, verdict }
    }
}
