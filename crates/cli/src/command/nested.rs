//! `run`, `map` and `fanout` inside an agent: no trees of their own, but children of that agent, under its limits.

mod many;
mod shares;
mod told;

use std::collections::HashMap;
use std::sync::Arc;

use offshoot_config::Config;
use offshoot_door::{Client, ContextGrant, Spawn, SpawnInput, Status};
use offshoot_host::runtimes::EXEC;
use offshoot_model::{BudgetRequest, InputRange, Need};
use offshoot_policy::is_reserved_label;
use offshoot_runtime::OutputFormat;
use offshoot_split::{self as split, InputFile};

use self::many::Order;
use self::shares::share;
use super::fanout::FanoutArguments;
use super::map::{MapArguments, misplaced_command, no_task};
use super::run::RunArguments;
use super::spawn::{child, hand_in};
use crate::arguments::{ContextArgument, PluginPathArguments, WorkArguments};
use crate::code::FailureCode;
use crate::door::{inside, is_inside};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::load;
use crate::wording;
use crate::work::dry_run::{DryRun, PlannedAgent};
use crate::work::input::{self, Spool};
use crate::work::plan::Plan;
use crate::work::preflight::Prepared;
use crate::work::schema;
use crate::work::stages;
use crate::work::task::Task;

/// Asks for the child, where this process runs inside an agent, and waits for its answer. None where it does not.
pub(super) fn run(arguments: &RunArguments, cx: &Invocation) -> Result<Option<Exit>, Failure> {
    let RunArguments { task, work, command } = arguments;
    // A plan that is only printed starts nothing.
    if work.dry_run {
        return Ok(None);
    }
    inside(cx, async |supervisor| {
        let spawn = Spawn { command: Some(command.clone()), ..request(task, work, cx)? };
        child(&supervisor, spawn, &work.context, true, cx).await
    })
}

/// Asks for a child for each task, where this process runs inside an agent, and prints what their answers make.
pub(super) fn fanout(
    arguments: &FanoutArguments,
    tasks: impl FnOnce() -> Result<Vec<Task>, Failure>,
    cx: &Invocation,
) -> Result<Option<Exit>, Failure> {
    let FanoutArguments { pieces, work, command, .. } = arguments;
    if work.dry_run {
        return Ok(None);
    }
    inside(cx, async |supervisor| {
        let mut order = Order::of(pieces, cx)?;
        let template = template(&supervisor, work, command, cx).await?;
        let mut children = Vec::new();
        for (place, task) in (1..).zip(tasks()?) {
            if task.runtime.is_some_and(|runtime| *runtime != *EXEC.name) {
                return Err(of_the_root("the `runtime` of a task"));
            }
            let mut context = template.context.clone();
            for id in &task.needs {
                let answer = Need::variable(id);
                context.retain(|grant| grant.name != answer);
            }
            for ContextArgument { name, path } in task.files {
                // Values of the session have one name each; the children may know several by the same. That of no other fanout.
                let own = format!("fanout {}, task {place}: {name}", std::process::id());
                supervisor.put_file(&own, None, &cx.absolute(path)).await?;
                context.retain(|grant| grant.name != name);
                context.push(ContextGrant { name, from: Some(own) });
            }
            children.push(Spawn {
                task: task.task,
                label: task.label,
                task_type: task.task_type,
                agent: task.agent.or_else(|| template.agent.clone()),
                run_timeout_seconds: task.timeout.or(template.run_timeout_seconds),
                context,
                model: task.model,
                thinking: task.thinking,
                budget: task.budget,
                weight: task.weight,
                schema: task.schema.or_else(|| template.schema.clone()),
                isolation: task.isolation.or_else(|| template.isolation.clone()),
                tools: task.tools,
                id: task.id,
                needs: task.needs,
                on_need_failed: task.on_need_failed,
                cwd: task.cwd.map(|folder| cx.absolute(folder)).or_else(|| template.cwd.clone()),
                ..Spawn { budget: None, ..template.clone() }
            });
        }
        share(template.budget, &mut children)?;
        order.expect(children.iter().map(|child| child.task.len() as u64), command);
        order.run(&supervisor, children, cx).await
    })
}

/// Cuts the input and asks for a child for each piece, where this process runs inside an agent; prints what their answers make.
pub(super) fn map(
    arguments: &MapArguments,
    how: split::Cut,
    cx: &Invocation,
) -> Result<Option<Exit>, Failure> {
    let MapArguments { inputs, task, pieces, work, command, .. } = arguments;
    if work.dry_run {
        return Ok(None);
    }
    inside(cx, async |supervisor| {
        if !stages::split(command)?.1.is_empty() {
            return Err(no_stages());
        }
        let mut order = Order::of(pieces, cx)?;
        let template = template(&supervisor, work, command, cx).await?;
        let task = match task {
            Some(task) => task.clone(),
            None if !command.is_empty() => wording::command_line(command),
            None => return Err(misplaced_command(arguments, cx).unwrap_or_else(no_task)),
        };
        let spool = match input::has_standard_input(inputs)? {
            true => Some(Spool::unkept()?),
            false => None,
        };
        let cut = input::cut(inputs, how, spool.as_ref())?;
        // Each file is a value of the session, of which the children read parts. The name is that of no other map.
        let mut names = HashMap::new();
        for (number, file) in (1..).zip(&cut.files) {
            let name = format!("map {}, input {number}", std::process::id());
            match spool.as_ref().filter(|spool| *file.path == spool.path()) {
                Some(spool) => {
                    let title = "standard input";
                    supervisor.put_open_file(&name, None, title, spool.reader()?).await?;
                }
                None => drop(supervisor.put_file(&name, None, file.resolved()).await?),
            }
            names.insert(Arc::clone(file.resolved()), name);
        }
        let child = |piece: &split::Piece| {
            let InputRange { path, offset, length, header, .. } = &piece.range;
            let (name, offset, length, header) = (names[path].clone(), *offset, *length, *header);
            Spawn {
                task: task.clone(),
                label: Some(match is_reserved_label(&piece.label) {
                    // A file may be called `main`.
                    true => format!("{} (piece)", piece.label),
                    false => piece.label.to_string(),
                }),
                input: Some(SpawnInput { name, offset, length, header }),
                ..template.clone()
            }
        };
        let mut children: Vec<Spawn> = cut.pieces.iter().map(child).collect();
        children.iter_mut().for_each(|child| child.budget = None);
        share(template.budget, &mut children)?;
        order.expect(cut.pieces.iter().map(|piece| piece.range.size()), command);
        // What was handed in is what was cut. From now on the children may write to the files.
        let is_file = |file: &InputFile| spool.as_ref().is_none_or(|it| *file.path != it.path());
        let files = cut.files.into_iter().filter(is_file).collect();
        let ranges = cut.pieces.into_iter().map(|piece| piece.range).collect();
        if let Some(changed) = input::changed(files, ranges).await {
            return Err(Failure::of(Exit::AgentFailed, &changed));
        }
        order.run(&supervisor, children, cx).await
    })
}

/// Prints a plan of which each agent is told `task`, under the limits of the tree that would be opened, or inside an agent of its own tree.
pub(super) fn dry_run(
    plan: &Plan,
    agents: &[PlannedAgent],
    task: &str,
    config: &Config,
    prepared: &Prepared,
    cx: &Invocation,
) -> Result<Exit, Failure> {
    let status = inside(cx, async |supervisor| Ok(supervisor.call(Status {}).await?))?;
    let (inside, is_paid) = (status.as_ref(), prepared.is_paid);
    DryRun { plan, agents, task, config, is_paid, inside }.print(cx)
}

/// Returns what all children of a map or a fanout have in common. The budget is that of all of them.
async fn template(
    supervisor: &Client,
    work: &WorkArguments,
    command: &[String],
    cx: &Invocation,
) -> Result<Spawn, Failure> {
    Ok(Spawn {
        context: hand_in(supervisor, &work.context, cx).await?,
        command: (!command.is_empty()).then(|| command.to_owned()),
        cwd: Some(cx.environment.working_folder.clone()),
        ..request("", work, cx)?
    })
}

/// Refuses inside an agent what is the operator's to do.
pub(super) fn only_for_the_operator(command: &str, cx: &Invocation) -> Result<(), Failure> {
    if !is_inside(cx)? {
        return Ok(());
    }
    let message = format!("`{command}` is for the operator, and this process runs inside an agent");
    Err(Failure::new(FailureCode::OperatorOnly, Exit::Refused, message)
        .hint("run it from a terminal that no agent has started"))
}

/// Returns the request to a supervisor: limits may be lower than those of the tree, and never others.
fn request(task: &str, work: &WorkArguments, cx: &Invocation) -> Result<Spawn, Failure> {
    let agent = work.agent.as_deref().map(load::agent_id).transpose()?;
    let mut spawn = Spawn { agent, label: work.label.clone(), ..Spawn::task(task) };
    if work.runtime.as_deref().is_some_and(|runtime| runtime != EXEC.name) {
        return Err(of_the_root("--runtime"));
    }
    only_of_the_tree(&work.plugins)?;
    spawn.ok_exit = (work.ok_exit != [0]).then(|| work.ok_exit.clone());
    spawn.schema = schema::of(work, cx)?;
    spawn.isolation.clone_from(&work.isolation);
    spawn.output = (work.output != OutputFormat::Text).then_some(work.output);
    let mut budget = BudgetRequest::default();
    for limit in work.limits.flags() {
        let (flag, value) = (limit.flag, limit.value);
        let wrong = || {
            Failure::input(FailureCode::BadLimit, format_args!("`{value}` is no value for {flag}"))
                .hint("`offshoot spawn --help` says what each limit takes")
        };
        match flag {
            "--timeout" => spawn.run_timeout_seconds = Some(value.parse().map_err(|_| wrong())?),
            "--budget-usd" => budget.usd = Some(value.parse().map_err(|_| wrong())?),
            "--max-depth" => spawn.max_depth = Some(value.parse().map_err(|_| wrong())?),
            "--budget-tokens" => budget.tokens = Some(value.parse().map_err(|_| wrong())?),
            // Nothing to ask for: the limits of the tree decide.
            "--allow-recursive-spawn" => {}
            "--cleanup" => spawn.cleanup = work.limits.cleanup,
            other => return Err(of_the_root(other)),
        }
    }
    spawn.budget = (budget != BudgetRequest::default()).then_some(budget);
    Ok(spawn)
}

/// Plugins are those that the tree found when it began.
pub(super) fn only_of_the_tree(plugins: &PluginPathArguments) -> Result<(), Failure> {
    if plugins.plugin_path.is_empty() { Ok(()) } else { Err(of_the_root("--plugin-path")) }
}

fn no_stages() -> Failure {
    Failure::input(
        FailureCode::NoOrderInside,
        "--then is for the root of a tree, and this process runs inside one",
    )
    .hint("stages of one piece fit into one command: `sh -c '...'`; tasks of a `fanout --tasks` may need the answers of others")
}

/// Inside an agent: an option of `run`, `map` or `fanout` that only the root of a tree can follow.
fn of_the_root(flag: &str) -> Failure {
    Failure::input(
        FailureCode::RootOnly,
        format_args!("{flag} is for the root of a tree, and this process runs inside one"),
    )
    .hint("leave it out: what is asked for here has the limits and the plugins of its tree")
}
