//! Requests, and the resolution of what they leave open: runtime, command, model, and the task as the record keeps it.

pub(crate) mod inherited_model;

use std::path::PathBuf;
use std::sync::Arc;

use offshoot_config::{AgentDefinition, nearest};
use offshoot_model::{
    AgentId, ContextEntry, InputRange, Isolation, JsonText, OnNeedFailed, Origin, Payload, Refusal,
    RunId, SpawnRequest, error_chain,
};
use offshoot_policy::{Fallback, RuntimeFacts};
use offshoot_runtime::{EXEC, Runtime};
use offshoot_schema::check_schema;
use thin_vec::ThinVec;

use crate::machine::{NeededPiece, RunIndex};
use crate::run_spec::{RunSpec, priced};
use crate::runtimes::Known;
use crate::tree_context::{Chosen, TreeContext};
use inherited_model::InheritedModel;

/// A request on its way to the supervisor.
pub(crate) struct Unresolved<'a> {
    /// The session that asks.
    pub(crate) caller: RunIndex,
    /// The agent of that session, which is meant where the request names none.
    pub(crate) agent: &'a AgentId,
    pub(crate) origin: Origin,
    pub(crate) request: SpawnRequest,
    pub(crate) run_spec: Arc<RunSpec>,
    /// True if these settings are those of this one run, and say more than the definition of its agent.
    pub(crate) decides: bool,
}

/// Data that a run needs to start once it was admitted. Small, because queues hold many.
#[derive(Clone)]
pub(crate) struct Prepared {
    pub(crate) task: Arc<str>,
    pub(crate) context: ThinVec<ContextEntry>,
    pub(crate) command: Option<Arc<[String]>>,
    pub(crate) input: Option<Box<InputRange>>,
    /// True if the answer of the only run that it needs is its input, and no value of its context.
    pub(crate) reads_need: bool,
    /// The form that the answer must have.
    pub(crate) schema: Option<JsonText>,
    /// The folder in which it works; that of its settings where absent.
    pub(crate) isolation: Option<Box<Isolation>>,
    /// Absent if no model and no thinking was chosen, as for most runs of a large queue.
    pub(crate) model_choice: Option<Arc<InheritedModel>>,
    pub(crate) run_spec: Arc<RunSpec>,
    pub(crate) runtime: Arc<dyn Runtime>,
    /// True if the run was interrupted and continues where it was.
    pub(crate) continues: bool,
}

/// A request with everything that was resolved before it entered.
pub(crate) struct Ask {
    pub(crate) caller: RunIndex,
    pub(crate) request: SpawnRequest,
    /// The program and its arguments, for a runtime that starts one.
    pub(crate) command: Option<Arc<[String]>>,
    /// The task as the record keeps it.
    pub(crate) task: Payload,
    pub(crate) input: Option<InputRange>,
    /// True if the answer of the only piece that it needs is its input.
    pub(crate) reads_need: bool,
    pub(crate) origin: Origin,
    pub(crate) run_spec: Arc<RunSpec>,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) facts: Arc<RuntimeFacts>,
    /// Other runtimes that may take over.
    pub(crate) fallbacks: Option<Arc<[Fallback]>>,
    /// The place in the request, for a piece.
    pub(crate) place: u32,
    /// The number among all pieces that the owner has asked for; none for a request that is no piece.
    pub(crate) number: Option<u32>,
    /// The others that it needs, which are asked for before: of a piece by their numbers, of a child by their places in the request.
    pub(crate) needs: Vec<NeededPiece>,
    /// The fate of the run when one of them does not complete.
    pub(crate) on_need_failed: OnNeedFailed,
}

impl Prepared {
    /// Sets the runtime that takes the run over, and its model.
    pub(crate) fn fall_back(&mut self, runtime: Arc<dyn Runtime>, model: Option<&str>) {
        let request = SpawnRequest { model: model.map(str::to_owned), ..SpawnRequest::default() };
        self.model_choice = InheritedModel::of(&request, runtime.name());
        // A command was written for the runtime that has failed.
        (self.command, self.runtime) = (None, runtime);
    }
}

impl Ask {
    /// Returns the data that the supervisor keeps until the run starts. The request itself goes to the machine.
    pub(crate) fn prepared(&self) -> Box<Prepared> {
        Box::new(Prepared {
            task: Arc::clone(&self.request.task),
            context: self.request.context.iter().cloned().collect(),
            command: self.command.clone(),
            input: self.input.clone().map(Box::new),
            reads_need: self.reads_need,
            schema: self.request.schema.clone(),
            isolation: self.request.isolation.clone().map(Box::new),
            model_choice: InheritedModel::of(&self.request, self.runtime.name()),
            run_spec: Arc::clone(&self.run_spec),
            runtime: Arc::clone(&self.runtime),
            continues: false,
        })
    }
}

impl<'a> Unresolved<'a> {
    /// A request of the owner of a tree, whose root has this agent.
    pub(crate) fn of_root(
        agent: &'a AgentId,
        origin: Origin,
        request: SpawnRequest,
        run_spec: Arc<RunSpec>,
    ) -> Self {
        Self { caller: RunIndex::ROOT, agent, origin, request, run_spec, decides: false }
    }

    /// A request of a session for a child, in this folder where one is named.
    pub(crate) fn of_session(
        tree: &TreeContext,
        run: RunId,
        caller: RunIndex,
        agent: &'a AgentId,
        request: SpawnRequest,
        folder: Option<PathBuf>,
    ) -> Self {
        let runs = request.agent.as_ref().unwrap_or(agent);
        let run_spec = tree.run_spec_for(run, runs, folder);
        Self { caller, agent, origin: Origin::Agent, request, run_spec, decides: false }
    }

    /// Fills in what is open, and keeps the task.
    ///
    /// # Errors
    ///
    /// A request that names a runtime that is not here, and a task that cannot be kept.
    pub(crate) async fn resolve(self, tree: &TreeContext) -> Result<Ask, Refusal> {
        let task = tree.task_for_record(&self.request.task).await.map_err(|error| {
            Refusal::invalid(
                "task",
                format!("the task cannot be recorded: {}", error_chain(&error)),
            )
        })?;
        self.resolve_as(None, task, tree)
    }

    /// Fills in what is open, for a task that is kept. Of a run that stands in the record, nothing that was chosen is chosen again.
    ///
    /// # Errors
    ///
    /// A runtime that is not here.
    pub(crate) fn resolve_as(
        self,
        chosen: Option<&Chosen>,
        task: Payload,
        tree: &TreeContext,
    ) -> Result<Ask, Refusal> {
        let Self { caller, agent, origin, mut request, run_spec, decides } = self;
        let run_spec = run_spec.asked_by(&request);
        let runs = request.agent.as_ref().unwrap_or(agent);
        let definition = tree.config.agent(runs);
        // A task for another agent than that of the whole tree says more than the command line, which is about all of them.
        let decides = decides || origin != Origin::Agent && runs == agent;
        if request.schema.is_none() {
            request.schema = definition.and_then(of_definition);
        }
        if let Some(schema) = &request.schema {
            usable(schema)?;
        }
        request.isolation = isolation(&request, definition, origin);
        if request.isolation.is_some() && tree.workspaces.is_none() {
            let message = "nothing here makes folders of their own for runs";
            return Err(Refusal::invalid("isolation", message));
        }
        let known = match chosen {
            Some(chosen) => named(tree, Some(&chosen.runtime)),
            None => choose(tree, decides, &request, definition, &run_spec),
        };
        let Known { runtime, facts } = known?.clone();
        let fallbacks = tree.runtimes.fallbacks(runs, &facts.name);
        // A run that stands in the record goes on without it.
        if let (Some(missing), None) = (tree.runtimes.missing_fallback(runs, &facts.name), chosen) {
            return Err(unfit(missing, tree));
        }
        // A command that the operator gives for this tree runs in place of that which the agent has in the configuration.
        let is_given = decides && run_spec.plain && run_spec.command.is_some();
        let own = definition.filter(|_| !is_given);
        let command = command(&request, own, &run_spec, &facts.name);
        let has_own = own.is_some_and(|agent| agent.command.is_some());
        let plain = run_spec.plain && !has_own && request.command.is_none();
        let facts = priced(facts, plain, &tree.config);
        match chosen {
            Some(Chosen { model, thinking, .. }) => {
                (request.model, request.thinking) = (model.clone(), thinking.clone());
            }
            None => {
                inherited_model::configured(&mut request, definition, agent, origin, &tree.config)
            }
        }
        if origin != Origin::Agent {
            // A command of the operator is the operator's choice, which the policy has to know.
            request.command = command.clone();
        }
        Ok(Ask {
            caller,
            request,
            command,
            task,
            input: None,
            reads_need: false,
            origin,
            run_spec,
            runtime,
            facts,
            fallbacks,
            place: 0,
            number: None,
            needs: Vec::new(),
            on_need_failed: OnNeedFailed::Skip,
        })
    }
}

/// The isolation of a run, where it has one. An agent may ask for one for its child, and not for less than the definition of the
/// child's agent has.
fn isolation(
    request: &SpawnRequest,
    definition: Option<&AgentDefinition>,
    origin: Origin,
) -> Option<Isolation> {
    let own = definition.and_then(|agent| Some(&agent.isolation.as_ref()?.value));
    let asked = request.isolation.as_ref();
    let asked = asked.filter(|asked| origin != Origin::Agent || !asked.is_none());
    asked.or(own).filter(|isolation| !isolation.is_none()).cloned()
}

/// Returns the form of the answers of an agent.
fn of_definition(agent: &AgentDefinition) -> Option<JsonText> {
    let schema = agent.schema.as_ref()?;
    Some(JsonText::of(&schema.value).expect("settings are plain data"))
}

/// Refuses a schema with which no answer can be compared.
fn usable(schema: &JsonText) -> Result<(), Refusal> {
    check_schema(schema).map_err(|error| {
        let message = format!("the schema cannot be used: {error}");
        Refusal::invalid("schema", message).with_hint(
            "a schema is one JSON document of 64 KiB at most that refers to nothing outside of it",
        )
    })
}

/// The runtime. Where the settings of the run decide, as for the agent that the operator's command line is about, they come first;
/// else what is asked for, then what the agent's definition says.
fn choose<'a>(
    tree: &'a TreeContext,
    decides: bool,
    request: &SpawnRequest,
    definition: Option<&AgentDefinition>,
    run_spec: &RunSpec,
) -> Result<&'a Known, Refusal> {
    let of_request = request.command.is_some().then_some(EXEC);
    let of_spec = run_spec.runtime.as_deref();
    let of_agent = definition.and_then(of_agent);
    let chosen = match decides {
        true => of_spec.or(of_request).or(of_agent),
        false => of_request.or(of_agent).or(of_spec),
    };
    named(tree, chosen)
}

/// The runtime of this name, or the default one.
fn named<'a>(tree: &'a TreeContext, chosen: Option<&str>) -> Result<&'a Known, Refusal> {
    tree.runtimes.get(chosen).ok_or_else(|| {
        let wanted = chosen.unwrap_or("a default one");
        let names = tree.runtimes.names();
        let known: Vec<&str> = names.split(", ").collect();
        let nearest = nearest(wanted, &known).map(|near| format!("the nearest is `{near}`; "));
        Refusal::invalid("runtime", format!("there is no runtime `{wanted}` here"))
            .with_hint(format!("{}runtimes here: {names}", nearest.unwrap_or_default()))
    })
}

/// Refuses a run whose configuration names a runtime to take it over that cannot.
fn unfit(missing: &str, tree: &TreeContext) -> Refusal {
    if missing == EXEC {
        let message = format!("the runtime `{EXEC}` of model.fallbacks runs no model");
        return Refusal::invalid("runtime", message).with_hint("name another runtime there");
    }
    match named(tree, Some(missing)) {
        Ok(_) => unreachable!("a runtime that is here is not missing"),
        Err(refusal) => refusal,
    }
}

/// Returns the runtime that an agent's definition names. An agent with a command alone is a program.
fn of_agent(agent: &AgentDefinition) -> Option<&str> {
    let runtime = agent.runtime.as_ref().map(|runtime| runtime.value.as_str());
    runtime.or_else(|| agent.command.as_ref().map(|_| EXEC))
}

/// The command: what was asked for, else the agent's own, else that of the whole tree, which was written for the runtime
/// of the tree and would be nonsense to another.
fn command(
    request: &SpawnRequest,
    definition: Option<&AgentDefinition>,
    run_spec: &RunSpec,
    runtime: &str,
) -> Option<Arc<[String]>> {
    let asked = request.command.clone();
    let own = || Some(Arc::from(definition?.command.as_ref()?.value.to_vec()));
    let is_meant = run_spec.runtime.as_deref().is_none_or(|of_tree| of_tree == runtime);
    asked.or_else(own).or_else(|| run_spec.command.clone().filter(|_| is_meant))
}

#[cfg(test)]
mod tests {
    use offshoot_config::{Loader, Source, SourceKind};

    use super::*;

    #[test]
    fn a_command_goes_to_the_runtime_that_it_was_written_for() {
        let text = "[[agents.list]]\nid = \"own\"\ncommand = [\"own\"]\n";
        let file = Source::new(SourceKind::File, "agents.toml", text);
        let config = Loader::new().file(file).load().expect("a configuration");
        let own = config.agent(&AgentId::parse("own").expect("the text is no id"));
        let tree = |runtime: Option<&str>| RunSpec {
            runtime: runtime.map(Into::into),
            ..RunSpec::command("/", ["tree"])
        };
        let asked =
            SpawnRequest { command: Some(Arc::from(["asked".to_owned()])), ..<_>::default() };
        let silent = SpawnRequest::default();
        let check = |request, definition, run_spec, runtime, expected: Option<&str>| {
            let found = command(request, definition, &run_spec, runtime);
            assert_eq!(found.as_ref().map(|words| &*words[0]), expected, "{runtime}");
        };
        check(&asked, own, tree(Some("exec")), "exec", Some("asked"));
        check(&silent, own, tree(Some("exec")), "exec", Some("own"));
        check(&silent, None, tree(Some("exec")), "exec", Some("tree"));
        check(&silent, None, tree(Some("exec")), "claude", None);
        check(&silent, own, tree(Some("exec")), "claude", Some("own"));
        check(&silent, None, tree(None), "closure", Some("tree"));
    }
}
