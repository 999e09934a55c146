//! The checks before anything starts: the agent, its runtime, and that its program is there. A mistyped program is one error
//! here, and a thousand failed pieces later.

mod programs;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use offshoot_config::{AgentDefinition, Config, Loader};
use offshoot_host::Plugins;
use offshoot_host::runtimes::{
    BuiltInRuntime, CLAUDE, EXEC, default_usd, is_said_to_be_free, runtime_of,
};
use offshoot_model::{AgentId, Isolation, JsonText};
use offshoot_policy::Terms;
use offshoot_process::make_room;
use offshoot_runtime::CostKnowledge;
use offshoot_spawner::{RootKind, RootSpec, RunSpec};

use programs::{Programs, Run};

use super::plan::Plan;
use super::schema;
use super::task::Task;
use crate::arguments::{LimitArguments, WorkArguments};
use crate::code::{FailureCode, NoteCode};
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::load;
use crate::plugins;
use crate::wording;

/// The runs that were checked.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    /// The name of the agent.
    pub(crate) agent: AgentId,
    /// The settings of the runs.
    pub(crate) run_spec: RunSpec,
    /// The name of the runtime.
    pub(crate) runtime: Arc<str>,
    /// The program and its arguments, for people and for the record.
    pub(crate) command: Arc<[String]>,
    /// True if the runs may cost money.
    pub(crate) is_paid: bool,
    /// The plugins that can be found, and those that were loaded for it.
    pub(crate) plugins: Plugins,
    /// The folders of plugins that the command line names. Absolute.
    pub(crate) plugin_path: Vec<PathBuf>,
    /// The form that an answer must have.
    pub(crate) schema: Option<JsonText>,
    /// The folder in which each run works.
    pub(crate) isolation: Option<Isolation>,
}

impl Prepared {
    /// Returns the command line of the runs, as a user would type it.
    pub(crate) fn command_line(&self) -> String {
        wording::command_line(&self.command)
    }

    /// Returns the root of a tree of this command, with this task.
    pub(crate) fn root(&self, task: Arc<str>, label: Option<Arc<str>>) -> RootSpec {
        RootSpec {
            kind: RootKind::Run,
            agent: self.agent.clone(),
            task,
            label,
            context: Vec::new(),
            schema: self.schema.clone(),
            isolation: self.isolation.clone(),
            run_spec: self.run_spec.clone(),
            plan: None,
        }
    }
}

/// Reads the configuration, chooses agent and runtime, and looks for the program.
pub(crate) fn prepare(
    arguments: &WorkArguments,
    command: &[String],
    cx: &Invocation,
) -> Result<(Config, Prepared), Failure> {
    prepare_tasks(arguments, command, &mut [], cx)
}

/// The same for a plan on record. Fails where a runtime of its tasks is there no longer; their agents need not be.
pub(crate) fn prepare_again(plan: &Plan, cx: &Invocation) -> Result<(Config, Prepared), Failure> {
    prepare_tasks(&plan.arguments(), plan.command(), &mut plan.tasks.clone(), cx)
}

/// The same for tasks, of which each may have an agent, a runtime and a folder of its own: what they have is looked for, and
/// filled in. Where each has its own, nothing else needs to be said.
pub(crate) fn prepare_tasks(
    arguments: &WorkArguments,
    command: &[String],
    tasks: &mut [Task],
    cx: &Invocation,
) -> Result<(Config, Prepared), Failure> {
    let layers = load::layers(cx, &arguments.limits)?;
    let config = load::finish(layers.clone())?;
    if !arguments.recorded {
        let slips = load::undefined_children(&config, None).into_iter();
        for slip in slips.filter(|slip| slip.has_near) {
            cx.output.warning(NoteCode::ChildNotDefined, slip.text);
        }
    }
    let agent = match &arguments.agent {
        None => config.default_agent().clone(),
        // A tree goes on with what it was opened with, by the limits of the defaults.
        Some(id) if arguments.recorded => load::agent_id(id)?,
        Some(id) => load::agent(&config, id)?,
    };
    if !arguments.recorded {
        for agent in tasks.iter().filter_map(|task| task.agent.as_ref()) {
            load::defined(&config, agent)?;
        }
    }
    let (layers, config) = within_open_files(layers, config, &agent, cx)?;
    let definition = config.agent(&agent);
    let folder = working_folder(None, definition, cx)?;
    let named = &arguments.plugins.plugin_path;
    let plugins = plugins::plugins(named, &config, cx)?;
    let mut programs = Programs::new(plugins, &config, arguments.dry_run, cx);
    let is_own = |task: &Task| {
        let other = task.agent.as_ref().filter(|id| **id != agent);
        task.runtime.is_some() || other.is_some_and(|id| says_what_runs(config.agent(id)))
    };
    let says_all = arguments.runtime.is_some() || !command.is_empty();
    let general = if tasks.is_empty() || says_all || !tasks.iter().all(is_own) {
        // Where each task names an agent, none is for the agent of the tree: what cannot run is one that a task names.
        let named = tasks.iter().find(|task| !is_own(task)).and_then(|task| task.agent.clone());
        let named = named.filter(|_| tasks.iter().all(|task| task.agent.is_some()));
        let agent = named.as_ref().unwrap_or(&agent);
        let definition = config.agent(agent);
        let runtime = choose(arguments, command, definition)?;
        let plain = !command.is_empty() && !arguments.program_configured;
        let chosen = says_all || says_what_runs(definition);
        let run = Run { command, plain, chosen, ..Run::bare(agent, &runtime, &folder) };
        let program = programs.find(&run)?;
        let given = *runtime == *EXEC.name || !command.is_empty();
        Some(General { runtime, program, given, plain })
    } else {
        None
    };
    let mut known: HashMap<Asked, Own> = HashMap::new();
    for task in tasks.iter_mut() {
        // On record a task has its runtime, program and folder already. A program that is gone ends its own run alone.
        if arguments.recorded {
            let runtime = task.runtime.as_deref().filter(|name| *name != EXEC.name);
            if let Some(runtime) = runtime.filter(|name| !programs.has(name)) {
                programs.find(&Run::bare(&agent, runtime, &folder))?;
            }
            continue;
        }
        let other = task.agent.clone().filter(|id| *id != agent);
        // A dry run shows them; a run is told when it starts.
        let is_shown = |_: &String| arguments.dry_run;
        let model = task.model.clone().filter(is_shown);
        let thinking = task.thinking.clone().filter(is_shown);
        let has_own_model = model.is_some() || thinking.is_some();
        let is_as_all = other.is_none() && task.runtime.is_none() && task.cwd.is_none();
        if is_as_all && !has_own_model {
            continue;
        }
        let key = (other, task.runtime.clone(), task.cwd.clone(), model, thinking);
        let own = match known.get(&key) {
            Some(own) => own,
            None => {
                let (other, runtime, cwd, model, thinking) = &key;
                let definition = config.agent(other.as_ref().unwrap_or(&agent));
                let of_agent = definition.filter(|_| other.is_some());
                let works_in = match (cwd, of_agent) {
                    (None, None) => folder.clone(),
                    _ => working_folder(cwd.as_deref(), of_agent, cx)?,
                };
                let of_agent = of_agent.and_then(runtime_of).map(Into::into);
                let own_command = definition.is_some_and(|agent| agent.command.is_some());
                let runtime = runtime.clone().or(of_agent);
                let is_own = runtime.is_some() || has_own_model;
                let general = general.as_ref();
                let all = general.map(|general| Arc::clone(&general.runtime));
                let runtime =
                    runtime.or(all).expect("what has no runtime of its own has that of all");
                let has_that_of_all =
                    general.is_some_and(|all| all.runtime == runtime) && !own_command;
                let run = Run {
                    command: if has_that_of_all { command } else { &[] },
                    plain: has_that_of_all && general.is_some_and(|all| all.plain),
                    model: model.as_deref(),
                    thinking: thinking.as_deref(),
                    ..Run::bare(other.as_ref().unwrap_or(&agent), &runtime, &works_in)
                };
                let program = programs.find(&run)?;
                let cwd = (works_in != folder).then_some(works_in);
                let own = Own { runtime: is_own.then_some((runtime, program)), cwd };
                known.entry(key).or_insert(own)
            }
        };
        task.cwd.clone_from(&own.cwd);
        let (runtime, program) = own.runtime.clone().unzip();
        (task.runtime, task.program) = (runtime, program);
    }
    let General { runtime, program, given, plain } = general.unwrap_or_else(|| {
        let first = tasks.first().expect("a command without tasks runs what it says");
        let (runtime, program) = (first.runtime.clone(), first.program.clone());
        let (runtime, program) = runtime.zip(program).expect("each task has its own");
        let given = *runtime == *EXEC.name;
        General { runtime, program, given, plain: false }
    });
    let Programs { mut plugins, costs, fallbacks, .. } = programs;
    if !arguments.dry_run {
        plugins.load_for_agents(&costs.keys().map(|name| &**name).collect::<Vec<_>>());
    }
    let run_spec = RunSpec {
        runtime: Some(Arc::clone(&runtime)),
        command: given.then(|| Arc::clone(&program)),
        ok_exit: arguments.ok_exit.as_slice().into(),
        output: arguments.output,
        plain,
        ..RunSpec::in_folder(folder)
    };
    // A run that costs nothing may go over to a runtime that does.
    let is_paid = costs.values().any(|cost| *cost != CostKnowledge::None) || !fallbacks.is_empty();
    let mut config = config;
    for (runtime, cost) in costs {
        match cost {
            CostKnowledge::None if is_uncounted(&config, &runtime, &arguments.limits) => {
                cx.output.note(NoteCode::ProgramUncounted, UNCOUNTED);
            }
            CostKnowledge::None => {}
            _ if is_said_to_be_free(&config, &runtime) => {}
            CostKnowledge::Metered | CostKnowledge::Reported | CostKnowledge::Bounded => {
                config = capped(config, layers.clone(), &agent, &runtime, cx)?;
            }
            CostKnowledge::Unknown => cx.output.note(NoteCode::CostUnknown, format_args!(
                "what this costs is not known; say it with runtimes.{runtime}.cost = \"none\" or with prices of the model"
            )),
        }
    }
    for fallback in fallbacks {
        config = capped(config, layers.clone(), &agent, &fallback, cx)?;
    }
    if !is_paid {
        config = of_the_day(config, layers, &agent)?;
    }
    let prepared = Prepared {
        agent,
        run_spec,
        runtime,
        command: program,
        is_paid,
        plugins,
        schema: schema::of(arguments, cx)?,
        isolation: arguments.isolation.clone(),
        plugin_path: named.iter().map(|folder| cx.absolute(folder)).collect(),
    };
    Ok((config, prepared))
}

/// Looks for a program of the operator's, beside the one of a command that was prepared.
pub(crate) fn program(
    command: &[String],
    config: &Config,
    prepared: &Prepared,
    cx: &Invocation,
) -> Result<Arc<[String]>, Failure> {
    let Prepared { agent, run_spec, plugins, .. } = prepared;
    let run = Run::bare(agent, EXEC.name, &run_spec.working_folder);
    Programs::new(plugins.clone(), config, false, cx).find(&Run { command, plain: true, ..run })
}

/// Runtime and program of all runs that have none of their own.
struct General {
    runtime: Arc<str>,
    program: Arc<[String]>,
    /// True if the runtime is given the program.
    given: bool,
    /// True if the operator gave the command for this very tree.
    plain: bool,
}

/// Agent, runtime and folder that a task asks for.
type Asked = (Option<AgentId>, Option<Arc<str>>, Option<PathBuf>, Option<String>, Option<String>);

/// Runtime, program and folder of a task, where they are not those of all.
struct Own {
    runtime: Option<(Arc<str>, Arc<[String]>)>,
    cwd: Option<PathBuf>,
}

/// The folder that is asked for, else that of the agent, else the current one.
fn working_folder(
    asked: Option<&Path>,
    definition: Option<&AgentDefinition>,
    cx: &Invocation,
) -> Result<PathBuf, Failure> {
    let folder = match (asked, definition.and_then(|agent| agent.cwd.as_ref())) {
        (Some(folder), _) => cx.absolute(folder),
        (None, Some(folder)) => cx.configured(&folder.value, &folder.origin),
        (None, None) => cx.environment.working_folder.clone(),
    };
    match folder.is_dir() {
        true => Ok(folder),
        false => Err(Failure::input(
            FailureCode::NoSuchFolder,
            format_args!("there is no folder {} to work in", folder.display()),
        )
        .hint("make it with `mkdir -p`, or name another one")),
    }
}

/// The runtime: what the command line says, then the agent, then Claude Code.
fn choose(
    arguments: &WorkArguments,
    command: &[String],
    definition: Option<&AgentDefinition>,
) -> Result<Arc<str>, Failure> {
    let runs_none = |name: &str| BuiltInRuntime::of(name).is_some_and(|it| !it.runs_commands);
    let name = match (&arguments.runtime, command.is_empty()) {
        (Some(name), false) if runs_none(name) => {
            return Err(Failure::input(
                FailureCode::CommandAndRuntime,
                format_args!(
                    "a command after `--` is run by the runtime `{}`, not by `{name}`",
                    EXEC.name
                ),
            )
            .hint("leave out the command or --runtime"));
        }
        (Some(name), _) => Some(name.as_str()),
        (None, false) => Some(EXEC.name),
        (None, true) => definition.and_then(runtime_of),
    };
    Ok(name.unwrap_or(CLAUDE.name).into())
}

/// True if the definition of an agent says what runs it.
fn says_what_runs(agent: Option<&AgentDefinition>) -> bool {
    agent.is_some_and(|agent| runtime_of(agent).is_some())
}

/// Returns the configuration with no more agents at once than there are open files for. Warns where that is fewer than the
/// configuration asks for.
fn within_open_files(
    layers: Loader,
    config: Config,
    agent: &AgentId,
    cx: &Invocation,
) -> Result<(Loader, Config), Failure> {
    let wanted = Terms::root(&config, agent).max_concurrent();
    let room = make_room(wanted);
    if room >= wanted {
        return Ok((layers, config));
    }
    cx.output.warning(NoteCode::FewerAtOnce, format_args!(
        "maxConcurrent is {wanted}, but this process may open files for {room} agents only: no more run at once; raise the hard limit of open files (ulimit -Hn) for more"
    ));
    let key = "agents.defaults.subagents.maxConcurrent";
    let layers = layers.flag(key, room.to_string(), "the limit of open files");
    Ok((layers.clone(), load::finish(layers)?))
}

/// Bounds what a program of the operator's may hand on, where the trees of a day are bounded together: what it starts itself costs
/// nothing, and what it asks for needs a budget that the operator names.
fn of_the_day(config: Config, layers: Loader, agent: &AgentId) -> Result<Config, Failure> {
    let (host, budget) = (config.host(), config.root_settings(agent).budget);
    let usd = host.usd_per_day.is_some() && budget.usd.is_none();
    let tokens = host.tokens_per_day.is_some() && budget.tokens.is_none();
    if !usd && !tokens {
        return Ok(config);
    }
    let units = [("usd", usd), ("tokens", tokens)].into_iter().filter(|(_, bounded)| *bounded);
    let set = |layers: Loader, (unit, _): (&str, bool)| {
        layers.set(format!("agents.defaults.subagents.budget.{unit}"), "0")
    };
    load::finish(units.fold(layers, set))
}

/// Said of a program under a budget that counts nothing of it.
const UNCOUNTED: &str = "nothing counts what this program itself asks of models: its budget bounds the agents that it starts. With runtimes.exec.meter = \"on\" its own requests count too";

/// True if a budget is given to a program whose own use nothing counts, and of which the configuration does not say that it costs nothing.
fn is_uncounted(config: &Config, runtime: &str, limits: &LimitArguments) -> bool {
    let has_budget = limits.budget_usd.is_some() || limits.budget_tokens.is_some();
    let is_said = config.runtime(runtime).is_some_and(|settings| settings.cost.is_some());
    has_budget && runtime == EXEC.name && !is_said
}

/// The configuration with a budget in dollars: where none is set, the runtime's own, which is then reported.
fn capped(
    config: Config,
    layers: Loader,
    agent: &AgentId,
    runtime: &str,
    cx: &Invocation,
) -> Result<Config, Failure> {
    if config.root_settings(agent).budget.usd.is_some() {
        return Ok(config);
    }
    let usd = default_usd(&config, runtime);
    cx.output.note(NoteCode::CostBounded, format_args!(
        "no budget in dollars is set, so this may cost up to ${usd}; change that with --budget-usd or runtimes.{runtime}.defaultUsd"
    ));
    load::finish(layers.set("agents.defaults.subagents.budget.usd", usd.to_string()))
}
