//! Going on with a tree that lost its supervisor: what it was opened with is read from its record, what it read is
//! compared with what is there now, and whatever holds it more strictly today holds it.

use std::sync::Arc;

use offshoot_config::{Config, Origin};
use offshoot_host::{Abandoned, HostError};
use offshoot_model::{Admitted, Payload, RootId, RunStatus};
use offshoot_spawner::{Piece, RootKind, RootSpec, SpawnerError};
use offshoot_split::Split;
use offshoot_store::Store;

use super::engine::{self, Engine};
use super::input;
use super::interrupt::Interrupts;
use super::pieces::{self, PieceRun};
use super::plan::Plan;
use super::preflight::{self, Prepared};
use super::recorded_settings;
use super::single;
use super::task;
use crate::arguments::WorkArguments;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::{self, Record};

/// Goes on with this tree, or says what came of it where it is over.
pub(crate) fn resume(root: RootId, cx: &Invocation) -> Result<Exit, Failure> {
    let record = Record::open_for(cx, &root.to_string())?;
    let store = Arc::clone(record.store());
    let admitted = store.admitted(root, root.run())?;
    let admitted =
        admitted.ok_or_else(|| Failure::input(format_args!("tree {root} has no record")))?;
    if !record.is_abandoned(root)? {
        return Err(Failure::input(format_args!("tree {root} is held by a supervisor"))
            .hint("it goes on by itself: `offshoot tree` shows it"));
    }
    let mut plan = plan(&record, root, &admitted)?;
    let task = text(&*store, &admitted.task)?;
    drop(record);

    let cx = &cx.in_folder((*plan.opened_in).clone(), plan.config.as_deref());
    let (config, prepared) = preflight::prepare(&plan.arguments(), plan.command(), cx)?;
    let (config, prepared) = as_it_was(config, prepared, &plan, cx)?;
    let terms = plan.terms()?;
    let merging = terms.as_ref().map(|terms| &terms.merging);
    let external = merging
        .map(|merging| merging.load(|name| prepared.plugins.merge(name)))
        .transpose()?
        .flatten();
    engine::block_on(async {
        let interrupts = Interrupts::listen()?;
        let engine = Engine::start(config, engine::data_folder(cx)?, &prepared, cx).await?;
        let tree = match engine.host.abandoned(root).await {
            Ok(tree) => tree,
            Err(HostError::Spawner(SpawnerError::Over)) => {
                return finished(&engine, root, interrupts, cx);
            }
            Err(error) => return Err(error.into()),
        };
        cx.output.note(format_args!("resuming tree {root}"));
        let label = admitted.label.clone();
        let Some(terms) = terms else {
            let spec = RootSpec {
                kind: RootKind::Run,
                agent: prepared.agent,
                task,
                label,
                context: plan.context.clone(),
                run_spec: prepared.run_spec,
                plan: None,
            };
            return single::run(&engine, spec, Some(tree), interrupts, cx).await;
        };
        let pieces = match plan.split.as_deref() {
            Some(split) => {
                let split = split.parse().map_err(|error| Failure::of(Exit::BadInput, &error))?;
                cut_again(&mut plan, split, &task, cx)?
            }
            None => task::pieces(&plan),
        };
        let order = PieceRun { prepared, label, task, plan, pieces, terms, external };
        pieces::run(&engine, order, Some(tree), interrupts, cx).await
    })
}

/// The tree of the very same plan that lost its supervisor, where the command line asks for it.
pub(crate) async fn same(
    engine: &Engine,
    plan: &Plan,
    work: &WorkArguments,
    cx: &Invocation,
) -> Result<Option<Abandoned>, Failure> {
    if !work.auto_resume {
        return Ok(None);
    }
    let Some(record) = Record::open(cx)? else { return Ok(None) };
    for root in record.abandoned()? {
        let admitted = engine.store.admitted(root, root.run())?;
        let recorded = admitted.and_then(|admitted| admitted.plan);
        if recorded.is_some_and(|recorded| plan.is_same(&recorded)) {
            cx.output.note(format_args!("resuming tree {root}"));
            return Ok(Some(engine.host.abandoned(root).await?));
        }
    }
    Ok(None)
}

fn plan(record: &Record, root: RootId, admitted: &Admitted) -> Result<Plan, Failure> {
    let Some(plan) = &admitted.plan else { return Err(unplanned(record, root)?) };
    serde_json::from_str(plan.as_str()).map_err(|error| {
        Failure::input(format_args!("the plan of tree {root} cannot be read"))
            .caused_by(Some(&error))
    })
}

/// A tree that only its client could go on with: that of `offshoot mcp`. What it has not finished is named.
fn unplanned(record: &Record, root: RootId) -> Result<Failure, Failure> {
    const NAMED: usize = 5;
    let tree = record.tree(root)?;
    let left = tree.nodes().filter(|node| node.status == RunStatus::Lost && node.parent.is_some());
    let mut left: Vec<String> = left.map(|node| node.run.to_string()).collect();
    let many = left.len();
    left.truncate(NAMED);
    if many > NAMED {
        left.push(format!("{} more", many - NAMED));
    }
    let unfinished = match many {
        0 => String::new(),
        _ => format!("; unfinished in it: {}", left.join(", ")),
    };
    let message =
        format!("tree {root} was not opened by a command that can be resumed{unfinished}");
    Ok(Failure::input(message)
        .hint("what it has done is kept: `offshoot show` and `offshoot merge --children` read it"))
}

/// Prepares the run in its folder, under the stricter limits: those on record, or those of today.
fn as_it_was(
    config: Config,
    prepared: Prepared,
    plan: &Plan,
    cx: &Invocation,
) -> Result<(Config, Prepared), Failure> {
    let mut prepared = prepared;
    prepared.run_spec.working_folder = Arc::clone(&plan.working_folder);
    let Some(was) = &plan.held else { return Ok((config, prepared)) };
    let changes = recorded_settings::changes(was, &config, &prepared.agent)?;
    changes.iter().for_each(|change| cx.output.note(change));
    let stricter: Vec<_> =
        changes.into_iter().filter_map(|change| Some((change.key, change.holds?))).collect();
    if stricter.is_empty() {
        return Ok((config, prepared));
    }
    let mut layers = crate::load::layers(cx, &plan.limits)?;
    // Values that the command itself has set, such as the cap of a paid runtime, stand in no layer.
    for (key, set) in config.resolve(&prepared.agent) {
        if set.origin == Origin::Programmatic {
            layers = layers.set(recorded_settings::name(&key), set.value);
        }
    }
    for (key, value) in stricter {
        layers = layers.flag(recorded_settings::name(&key), value, "the record of the tree");
    }
    Ok((crate::load::finish(layers)?, prepared))
}

/// Says what came of a tree that is over, as the command that ran it would have.
fn finished(
    engine: &Engine,
    root: RootId,
    interrupts: Interrupts,
    cx: &Invocation,
) -> Result<Exit, Failure> {
    cx.output.note(format_args!("tree {root} is over: nothing is left to resume"));
    let envelope = single::recorded(engine, root)?
        .ok_or_else(|| Failure::input(format_args!("tree {root} has no record")))?;
    super::report::run(engine, root, &envelope, false, interrupts.interrupted(), cx)
}

fn cut_again(
    plan: &mut Plan,
    split: Split,
    task: &Arc<str>,
    cx: &Invocation,
) -> Result<Vec<Piece>, Failure> {
    // Standard input of the first command is a value of the store by now, and has no other name.
    let spool = plan.inputs.iter().find(|file| file.path.starts_with(cx.data_folder()));
    let spool = spool.map(|file| file.path.as_path());
    let cut = input::cut_again(&plan.inputs, split, spool)?;
    // An earlier version has not recorded where links led; from now on they lead nowhere else.
    for (was, now) in plan.inputs.iter_mut().zip(&cut.files) {
        was.resolved = Some(Arc::clone(now.resolved()));
    }
    Ok(input::pieces(cut, task, plan))
}

fn text(store: &dyn Store, task: &Payload) -> Result<Arc<str>, Failure> {
    Ok(match record::at_hand(store, task)? {
        Payload::Text(text) => text,
        Payload::Json(json) => json.as_str().into(),
        Payload::Stored(_) => Arc::default(),
    })
}
