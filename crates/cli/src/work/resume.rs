//! Going on with a tree that lost its supervisor or was stopped: what it was opened with is read from its record, what it read is
//! compared with what is there now, and whatever holds it more strictly today holds it.

use std::sync::Arc;

use offshoot_config::{Config, Origin};
use offshoot_display::number::count;
use offshoot_host::runtimes::EXEC;
use offshoot_host::{Abandoned, HostError};
use offshoot_merge::OnFailure;
use offshoot_model::{
    Admitted, AgentId, BudgetGrant, ContextEntry, EventKind, Payload, PiecesAgain, RootId,
};
use offshoot_policy::budget::Unit;
use offshoot_spawner::{NewLimits, NotReopened, Piece, RootSpec, RunSpec, SpawnerError};
use offshoot_split::{Cut, Split};
use offshoot_store::Store;

use super::earlier;
use super::engine::{self, Engine};
use super::input;
use super::interrupt::Interrupts;
use super::larger_budget::{enough, option};
use super::outcomes::Outcomes;
use super::pieces::{self, AnswerRules, PieceRun};
use super::plan::Plan;
use super::preflight::{self, Prepared};
use super::recorded_settings;
use super::report::Unanswered;
use super::resume_dry_run::{nothing_would_run, would_go_on, would_run};
use super::single;
use super::task;
use crate::arguments::{LimitArguments, ResumeChoice, WorkArguments};
use crate::code::{FailureCode, NoteCode};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::load;
use crate::record::{self, Record};
use crate::wording;

/// Goes on with this tree, or says what came of it where nothing of it is left to run.
pub(crate) fn resume(
    root: RootId,
    choice: &ResumeChoice,
    dry_run: bool,
    cx: &Invocation,
) -> Result<Exit, Failure> {
    let record = Record::open_for(cx, &root.to_string())?;
    let store = Arc::clone(record.store());
    let admitted = store.admitted(root, root.run())?;
    let admitted = admitted.ok_or_else(|| no_record(root))?;
    if !record.is_abandoned(root)? {
        return Err(Failure::input(
            FailureCode::TreeHeld,
            format_args!("tree {root} is held by a supervisor"),
        )
        .hint("it goes on by itself, and what failed can run again once it is over: `offshoot list --status running --sort silent --tree last` shows what it waits for, `offshoot cancel RUN` ends one run"));
    }
    let mut plan = plan(&record, root, &admitted)?;
    let given = TimeLimits::given(&record, root, choice)?;
    given.set(&mut plan.limits);
    let task = text(&*store, &admitted.task)?;
    let results = earlier::results(&*store, &plan.results)?;
    drop(record);

    let cx = &cx.in_folder((*plan.opened_in).clone(), plan.config.as_deref());
    // A ceiling bounds what a tree is given now as it bounds what one is opened with.
    let mut given_now = with_new_budget(&plan.limits, choice);
    given_now.deadline = choice.deadline.map(|it| it.to_string()).or(given_now.deadline);
    load::config(cx, &given_now)?;
    let (config, prepared) = preflight::prepare_again(&plan, cx)?;
    let (config, prepared) = as_it_was(config, prepared, &plan, given, cx)?;
    let terms = plan.terms()?;
    let merging = terms.as_ref().map(|terms| &terms.merging);
    let external = merging
        .map(|merging| merging.load(|name| prepared.plugins.merge(name)))
        .transpose()?
        .flatten();
    engine::block_on(async {
        let interrupts = Interrupts::listen()?;
        let engine = Engine::start(config, &prepared, cx).await?;
        let is_plain = *choice == ResumeChoice::default();
        let abandoned = match engine.host.abandoned(root).await {
            Ok(_) if !is_plain => return Err(not_reopened(&NotReopened::Alive, root, 0)),
            Ok(tree) => Some(tree),
            Err(HostError::Spawner(SpawnerError::Over)) => None,
            Err(error) => return Err(error.into()),
        };
        let label = admitted.label.clone();
        let Some(terms) = terms else {
            let Some(tree) = abandoned else {
                let status = engine.store.ending(root, root.run())?.map(|ending| ending.status());
                return match status.filter(|status| !is_plain || !status.is_success()) {
                    None => finished(&engine, root, Rest::default(), dry_run, interrupts, cx),
                    Some(status) => {
                        let (agent, runtime) = (plan.agent.clone(), Arc::clone(&plan.runtime));
                        plan.limits = with_new_budget(&plan.limits, choice);
                        let why = NotReopened::Agent { agent, runtime, status };
                        Err(not_reopened(&why, root, 0).hint(format_args!(
                            "`offshoot show {root}` shows its answer and what it did; to begin anew: {}",
                            anew(&plan, &task)
                        )))
                    }
                };
            };
            if dry_run {
                return would_go_on(&plan, &tree, cx);
            }
            cx.output.note(NoteCode::Resuming, format_args!("resuming tree {root}"));
            let spec = RootSpec { context: plan.context.clone(), ..prepared.root(task, label) };
            return single::run(&engine, spec, Some(tree), interrupts, cx).await;
        };
        let pieces = match plan.split.as_deref() {
            Some(split) => {
                let split =
                    Split::recorded(split).map_err(|error| Failure::of(Exit::BadInput, &error))?;
                let header_lines = plan.header_lines.unwrap_or(0);
                cut_again(&mut plan, Cut { split, header_lines }, &task, &prepared.run_spec, cx)?
            }
            None => task::pieces(&plan, &prepared.run_spec)
                .map_err(|error| Failure::of(Exit::BadInput, &error))?,
        };
        if let Some(only) = &choice.only {
            check_label(only, &pieces)?;
        }
        let tree = match abandoned {
            Some(tree) => tree,
            None => match reopened(&engine, root, choice, &terms, &pieces).await? {
                Ok(tree) => tree,
                Err(rest) => return finished(&engine, root, rest, dry_run, interrupts, cx),
            },
        };
        if dry_run {
            tree.check_inputs(&pieces).map_err(|error| engine::broken(&error))?;
            return would_run(&tree, root, &pieces, cx);
        }
        cx.output.note(NoteCode::Resuming, format_args!("resuming tree {root}"));
        let outcomes = Outcomes::default();
        let order =
            PieceRun { prepared, label, task, plan, pieces, results, terms, external, outcomes };
        pieces::run(&engine, order, Some(tree), interrupts, cx).await
    })
}

/// Returns the limits of a tree, with the budget in place of theirs that it is given now.
fn with_new_budget(limits: &LimitArguments, choice: &ResumeChoice) -> LimitArguments {
    let &ResumeChoice { budget_usd, budget_tokens, .. } = choice;
    let mut limits = limits.clone();
    limits.budget_usd = budget_usd.map(|it| it.to_string()).or(limits.budget_usd);
    limits.budget_tokens = budget_tokens.map(|it| it.to_string()).or(limits.budget_tokens);
    limits
}

fn no_record(root: RootId) -> Failure {
    Failure::input(FailureCode::NoTreeRecord, format_args!("tree {root} has no record"))
        .hint("`offshoot list --all` shows what is recorded")
}

/// The line that runs an agent once more with the same limits and options, in another tree. A long task is left to the user, and so are the
/// files that it was given.
fn anew(plan: &Plan, task: &str) -> String {
    /// More of a task does not fit on a line that is to be read.
    const TASK_CHARACTERS: usize = 200;
    let task = match task.chars().count() <= TASK_CHARACTERS && !task.contains('\n') {
        true => task,
        false => "TASK",
    };
    let mut words = vec!["offshoot".to_owned(), "run".to_owned()];
    if let Some(config) = &plan.config {
        words.extend(["--config".to_owned(), config.display().to_string()]);
    }
    if plan.agent != AgentId::main() {
        words.extend(["--agent".to_owned(), plan.agent.to_string()]);
    }
    if !plan.program_given && *plan.runtime != *EXEC.name {
        words.extend(["--runtime".to_owned(), plan.runtime.to_string()]);
    }
    for given in plan.limits.flags() {
        words.push(given.flag.to_owned());
        words.extend((given.flag != "--allow-recursive-spawn").then(|| given.value.to_owned()));
    }
    if let Some(isolation) = &plan.isolation {
        words.extend(["--isolation".to_owned(), isolation.to_string()]);
    }
    if *plan.ok_exit != [0] && !plan.ok_exit.is_empty() {
        let codes: Vec<_> = plan.ok_exit.iter().map(ToString::to_string).collect();
        words.extend(["--ok-exit".to_owned(), codes.join(",")]);
    }
    if plan.output != "text" {
        words.extend(["--output".to_owned(), plan.output.to_string()]);
    }
    if plan.schema.is_some() {
        words.extend(["--schema", "FILE"].map(str::to_owned));
    }
    for ContextEntry { name, .. } in &plan.context {
        words.extend(["--context".to_owned(), format!("{name}=FILE")]);
    }
    words.push(task.to_owned());
    if plan.program_given && !plan.program_configured {
        words.push("--".to_owned());
        words.extend(plan.program.iter().cloned());
    }
    wording::command_line(&words)
}

/// Refuses a label that no piece has, and names those that have it in them.
fn check_label(only: &str, pieces: &[Piece]) -> Result<(), Failure> {
    const NAMED: usize = 5;
    let mut labels = pieces.iter().filter_map(|piece| piece.request.label.as_deref());
    if labels.clone().any(|label| label == only) {
        return Ok(());
    }
    let similar = labels.clone().filter(|label| label.contains(only)).take(NAMED);
    let similar: Vec<String> = similar.map(|label| format!("`{label}`")).collect();
    let hint = match (similar.is_empty(), labels.next()) {
        (false, _) => Some(format!("pieces with this in their label: {}", similar.join(", "))),
        (true, Some(first)) => Some(format!("the label of the first piece is `{first}`")),
        (true, None) => None,
    };
    let message = format_args!("no piece of this tree has the label `{only}`");
    Err(Failure::input(FailureCode::NoSuchLabel, message).maybe_hint(hint))
}

/// The limits of time, in seconds, that the operator gave to the pieces of a tree that went on.
#[derive(Clone, Copy)]
struct TimeLimits {
    timeout: Option<u64>,
    idle_timeout: Option<u64>,
}

impl TimeLimits {
    /// Returns those of this command, and in place of each that is left out the last one on record.
    fn given(record: &Record, root: RootId, choice: &ResumeChoice) -> Result<Self, Failure> {
        let (mut timeout, mut idle_timeout) = (None, None);
        for event in record.store().events(root, 0) {
            if let EventKind::RootReopened(reopened) = event?.kind {
                timeout = reopened.run_timeout_seconds.or(timeout);
                idle_timeout = reopened.idle_timeout_seconds.or(idle_timeout);
            }
        }
        let timeout = choice.timeout.or(timeout);
        Ok(Self { timeout, idle_timeout: choice.idle_timeout.or(idle_timeout) })
    }

    /// Sets them in place of those that the tree was opened with.
    fn set(self, limits: &mut LimitArguments) {
        let text = |seconds: Option<u64>| seconds.map(|seconds| seconds.to_string());
        limits.timeout = text(self.timeout).or(limits.timeout.take());
        limits.idle_timeout = text(self.idle_timeout).or(limits.idle_timeout.take());
    }

    /// True if such a limit stands in place of the recorded setting with this key.
    fn replaces(self, key: &str) -> bool {
        match key {
            "runTimeoutSeconds" => self.timeout.is_some(),
            "idleTimeoutSeconds" => self.idle_timeout.is_some(),
            _ => false,
        }
    }
}

/// The pieces of a tree that have no answer, where nothing of what was chosen runs.
#[derive(Default)]
struct Rest {
    /// The number of those that failed.
    failed: usize,
    /// The number of those that were cancelled.
    cancelled: usize,
    /// The label that was chosen: others were not counted.
    only: Option<String>,
}

/// A tree that is over and goes on as chosen. Where nothing of it would run, its pieces that have no answer.
async fn reopened(
    engine: &Engine,
    root: RootId,
    choice: &ResumeChoice,
    terms: &AnswerRules,
    pieces: &[Piece],
) -> Result<Result<Abandoned, Rest>, Failure> {
    let &ResumeChoice { failed, cancelled, ref only, deadline, .. } = choice;
    let &ResumeChoice { timeout, idle_timeout, budget_usd, budget_tokens, .. } = choice;
    let again = PiecesAgain {
        failed,
        cancelled: cancelled || !failed,
        only: only.as_deref().map(Into::into),
    };
    let ended = engine.host.ended(root, again).await;
    let mut tree = ended.map_err(|error| match error {
        HostError::Spawner(SpawnerError::NotReopened(why)) => not_reopened(&why, root, 0),
        error => error.into(),
    })?;
    let unanswered = tree.unanswered(pieces.len());
    let again = unanswered.again;
    let ending = engine.store.ending(root, root.run())?;
    // Where the answer stands, only what is asked for runs again: by its end, or by what it lacked.
    let stands = ending.is_some_and(|ending| ending.status().is_success());
    // A merge that was refused its runs has left none on record that would run again. It is made where no piece is missing for it.
    let is_whole =
        unanswered.failed + unanswered.cancelled == 0 || terms.on_failure != OnFailure::Fail;
    let only_merges = again == 0 && is_whole && !stands && terms.merging.asking().is_some();
    if again == 0 && !only_merges || stands && *choice == ResumeChoice::default() {
        // What runs again without an option are those that were cancelled.
        let (mut rest_failed, mut rest_cancelled) =
            (unanswered.failed, unanswered.cancelled + again);
        if let Some(only) = only {
            let stays = tree.staying().into_iter().filter(|(_, has_answer)| !has_answer);
            let label = |place: u32| pieces.get(place as usize)?.request.label.as_deref();
            let stay = stays.filter(|(place, _)| label(*place) == Some(only)).count();
            (rest_failed, rest_cancelled) = if failed { (0, stay) } else { (stay, 0) };
        }
        let only = only.clone();
        return Ok(Err(Rest { failed: rest_failed, cancelled: rest_cancelled, only }));
    }
    let limits = NewLimits {
        deadline_seconds: deadline,
        run_timeout_seconds: timeout,
        idle_timeout_seconds: idle_timeout,
        budget: BudgetGrant { tokens: budget_tokens, usd: budget_usd },
    };
    tree.give(limits).map_err(|error| match error {
        SpawnerError::NotReopened(why) => not_reopened(&why, root, again),
        error => engine::broken(&error),
    })?;
    Ok(Ok(tree))
}

/// A tree of which `open` pieces would run again and that does not go on in this way, with what to type.
fn not_reopened(why: &NotReopened, root: RootId, open: usize) -> Failure {
    let amount = |unit: Unit, amount: u64| match unit {
        Unit::Tokens => option(offshoot_audit::Unit::Tokens, amount),
        Unit::Usd => option(offshoot_audit::Unit::MicroUsd, amount),
    };
    let hint = match *why {
        NotReopened::Alive => {
            format!(
                "`offshoot resume {root}` goes on with it, within the limits that it has; while it runs, `offshoot budget {root} --add AMOUNT` adds to its budget. These options are for a tree that is over"
            )
        }
        NotReopened::Agent { .. } => {
            format!("`offshoot show {root}` shows its answer and what it did")
        }
        NotReopened::OutOfTime => {
            format!("`offshoot resume {root} --deadline 2h` gives it two hours from now on")
        }
        NotReopened::OutOfBudget { unit, granted, used, each } => {
            let more = amount(unit, enough(granted, used, each.unwrap_or(used), open));
            format!(
                "`offshoot resume {root} {more}` gives it so much in all, with what it has used"
            )
        }
        NotReopened::NotMore { unit, granted, .. } => {
            let twice = amount(unit, granted.saturating_mul(2));
            format!(
                "an amount is that of the whole tree, with what it has used: `offshoot resume {root} {twice}`"
            )
        }
        NotReopened::Unbounded(_) => "leave this option out".to_owned(),
        _ => String::new(),
    };
    Failure::input(FailureCode::NotResumable, format_args!("tree {root}: {why}")).hint(hint)
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
            cx.output.note(NoteCode::Resuming, format_args!("resuming tree {root}"));
            return Ok(Some(engine.host.abandoned(root).await?));
        }
    }
    Ok(None)
}

/// Reads the plan of the tree that is to go on.
fn plan(record: &Record, root: RootId, admitted: &Admitted) -> Result<Plan, Failure> {
    let Some(plan) = &admitted.plan else { return Err(unplanned(record, root)?) };
    serde_json::from_str(plan.as_str()).map_err(|error| {
        Failure::input(
            FailureCode::PlanUnreadable,
            format_args!("the plan of tree {root} cannot be read"),
        )
        .caused_by(Some(&error))
        .hint(format_args!(
            "resume it with the version of offshoot that opened it; `offshoot show {root}` and `offshoot merge --children {root}` read what it has done"
        ))
    })
}

/// A tree that only its client could go on with: that of `offshoot mcp`. What it has not finished is named.
fn unplanned(record: &Record, root: RootId) -> Result<Failure, Failure> {
    const NAMED: usize = 5;
    let tree = record.tree(root)?;
    let left = tree.nodes().filter(|node| node.is_without_supervisor() && node.parent.is_some());
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
    Ok(Failure::input(FailureCode::ClientTree, message)
        .hint("what it has done is kept: `offshoot show` and `offshoot merge --children` read it"))
}

/// Prepares the run in its folder, under the stricter limits: those on record, or those of today.
fn as_it_was(
    config: Config,
    prepared: Prepared,
    plan: &Plan,
    given: TimeLimits,
    cx: &Invocation,
) -> Result<(Config, Prepared), Failure> {
    let mut prepared = prepared;
    prepared.run_spec.working_folder = Arc::clone(&plan.working_folder);
    let Some(was) = &plan.held else { return Ok((config, prepared)) };
    let mut changes = recorded_settings::changes(was, &config, &prepared.agent)?;
    changes.retain(|change| !given.replaces(&change.key));
    changes.iter().for_each(|change| cx.output.note(NoteCode::StricterLimit, change));
    let stricter: Vec<_> =
        changes.into_iter().filter_map(|change| Some((change.key, change.holds?))).collect();
    if stricter.is_empty() {
        return Ok((config, prepared));
    }
    let mut layers = load::layers(cx, &plan.limits)?;
    // Values that the command itself has set, such as the cap of a paid runtime, stand in no layer.
    for (key, set) in config.resolve(&prepared.agent) {
        if set.origin == Origin::Programmatic {
            layers = layers.set(recorded_settings::name(&key), set.value);
        }
    }
    for (key, value) in stricter {
        layers = layers.flag(recorded_settings::name(&key), value, "the record of the tree");
    }
    Ok((load::finish(layers)?, prepared))
}

/// Says what came of a tree that is over, as the command that ran it would have, and how many of its pieces could run again.
fn finished(
    engine: &Engine,
    root: RootId,
    rest: Rest,
    dry_run: bool,
    interrupts: Interrupts,
    cx: &Invocation,
) -> Result<Exit, Failure> {
    let Rest { failed, cancelled, only } = rest;
    let of = match &only {
        Some(label) => format!("with the label `{label}`"),
        None => "of it".to_owned(),
    };
    let missing = match failed + cancelled {
        0 => String::new(),
        1 => format!(", although 1 run {of} did not complete"),
        many => format!(", although {} runs {of} did not complete", count(many as u64)),
    };
    let answered = only.as_ref().filter(|_| missing.is_empty());
    let answered = answered.map(|label| format!(": `{label}` has its answer")).unwrap_or_default();
    cx.output.name_tree(root);
    cx.output.note(
        NoteCode::NothingToResume,
        format_args!("tree {root} is over: nothing is left to resume{missing}{answered}"),
    );
    // A root that runs something itself has an end of its own.
    let admitted = engine.store.admitted(root, root.run())?;
    let holds_pieces = admitted.is_some_and(|admitted| admitted.runtime.is_none());
    let unanswered = match holds_pieces && !missing.is_empty() {
        true => super::report::unanswered(engine, root, only.as_deref())?,
        false => Unanswered::default(),
    };
    if !missing.is_empty() {
        let choice = ResumeChoice {
            failed: failed > 0,
            cancelled: cancelled > 0,
            only,
            ..ResumeChoice::default()
        };
        let mut options = choice.typed();
        options.extend(unanswered.larger.iter().flat_map(|larger| [" ", larger]));
        let pieces = if failed + cancelled == 1 { "it" } else { "them" };
        cx.output.hint(
            NoteCode::RunMissing,
            format_args!("`offshoot resume {root}{options}` runs {pieces} again"),
        );
    }
    if dry_run {
        return nothing_would_run(root, failed + cancelled, cx);
    }
    let mut envelope = single::recorded(engine, root)?.ok_or_else(|| no_record(root))?;
    let is_of_pieces = envelope.error.as_ref().is_some_and(|error| error.code == "pieces_failed");
    if is_of_pieces && unanswered.exit.is_some() && !cx.output.wants_json() {
        // What to type was said, with what it needs.
        envelope.error.iter_mut().for_each(|error| error.recovery_suggestion = None);
    }
    // A part of an answer that could not be made is none, as at the end of the map itself.
    let has_none = holds_pieces && envelope.error.is_some();
    let interrupted = interrupts.interrupted();
    let exit = super::report::run(engine, root, &envelope, has_none, interrupted, cx)?;
    // The end of the whole tree does not say why its pieces have no answer.
    Ok(unanswered.exit.filter(|_| exit == Exit::AgentFailed).unwrap_or(exit))
}

fn cut_again(
    plan: &mut Plan,
    how: Cut,
    task: &Arc<str>,
    all: &RunSpec,
    cx: &Invocation,
) -> Result<Vec<Piece>, Failure> {
    // Standard input of the first command is a value of the store by now, and has no other name.
    let spool = plan.inputs.iter().find(|file| file.path.starts_with(cx.data_folder()));
    let spool = spool.map(|file| file.path.as_path());
    let cut = input::cut_again(&plan.inputs, how, spool)?;
    // An earlier version has not recorded where links led; from now on they lead nowhere else.
    for (was, now) in plan.inputs.iter_mut().zip(&cut.files) {
        was.resolved = Some(Arc::clone(now.resolved()));
    }
    Ok(input::pieces(cut, task, plan, all))
}

fn text(store: &dyn Store, task: &Payload) -> Result<Arc<str>, Failure> {
    Ok(match record::at_hand(store, task)? {
        Payload::Text(text) => text,
        Payload::Json(json) => json.as_str().into(),
        Payload::Stored(_) => Arc::default(),
    })
}
