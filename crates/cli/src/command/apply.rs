//! `offshoot apply`.

use clap::Args;
use offshoot_display::neutral;
use offshoot_host::{Bring, Brought, PATCH, bring};
use offshoot_model::{Ending, JsonText, Payload, RootId, RunId};
use offshoot_store::FoundRun;
use serde::Deserialize;
use serde_json::json;

use crate::code::{FailureCode, NoteCode};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::record::{self, Record};
use crate::work::engine::block_on;
use crate::work::plan::Plan;

/// Bring the changes of a run, or the branch of many, to the files here
///
/// Nothing is staged or committed. All changes are brought, or none: where a file has changes that are not committed, or others
/// have changed the same lines since, the files are named and nothing is touched.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  offshoot apply last
  offshoot apply 0198c7 && git diff")]
pub(crate) struct ApplyArguments {
    /// A run id, its unique beginning, a session key, a label, `last`, `main` or `@N`
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
}

/// The answer of a merge of patches, as far as it is brought.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Branch {
    branch: Option<String>,
    base: String,
    commit: String,
    #[serde(default)]
    conflicts: Vec<NotOnBranch>,
    #[serde(default)]
    left_out: Vec<NotOnBranch>,
    check: Option<CheckVerdict>,
}

/// The outcome of the check of a branch.
#[derive(Deserialize)]
struct CheckVerdict {
    command: String,
    passes: bool,
    #[serde(default)]
    why: String,
}

/// A run whose patch is not on the branch.
#[derive(Deserialize)]
struct NotOnBranch {
    run: String,
    why: String,
}

/// Brings what a run has changed to the files of the current folder.
pub(crate) fn run(arguments: &ApplyArguments, cx: &Invocation) -> Result<Exit, Failure> {
    let (record, found) = Record::open_own_to_act(cx, &arguments.run)?;
    let run = found.run;
    let Some(ending) = record.ending(found.root, run)? else {
        return Err(record::not_over(&record, &found)?);
    };
    let (what, failed) = what(&record, &found, ending)?;
    if let Some(CheckVerdict { command, why, .. }) = failed {
        cx.output.warning(
            NoteCode::CheckFailed,
            format_args!("this branch has not passed its check: `{command}` {why}"),
        );
    }
    if let Some(why) = why_not_on_branch(&record, &found)? {
        cx.output.warning(
            NoteCode::PatchNotOnBranch,
            format_args!("--merge patch has left this patch out: {why}"),
        );
    }
    let folder = &cx.environment.working_folder;
    let brought = block_on(async {
        Ok(bring(record.folder(), &cx.environment.of_host(), folder, &what).await?)
    })?;
    // An agent chooses the names of its files.
    let named = |files: &[String]| {
        files.iter().map(|file| neutral::line(file)).collect::<Vec<_>>().join(", ")
    };
    match brought {
        Brought::Done(files) => {
            if files.is_empty() {
                let text = "nothing changed: the files here have these changes already";
                cx.output.note(NoteCode::NothingToApply, text);
            }
            cx.output.result(&json!({ "status": "applied", "files": files }), || {
                files.iter().try_for_each(|file| cx.output.line(neutral::line(file)))
            })?;
            Ok(Exit::Done)
        }
        Brought::Dirty(files) => Err(Failure::new(FailureCode::UncommittedChanges,
            Exit::AgentFailed,
            format_args!("these files have changes that are not committed: {}", named(&files)),
        )
        .hint("commit or stash them, and apply it again; nothing was changed")),
        Brought::Conflict(files) => Err(Failure::new(FailureCode::ChangesConflict,
            Exit::AgentFailed,
            format_args!("others have changed the same lines since: {}", named(&files)),
        )
        .hint(match &what {
            Bring::Patch { base: Some(_), .. } => format!(
                "nothing was changed; `offshoot show {run} --patch | git apply --3way` leaves both in the files, for you to choose; or run it again on these files"
            ),
            Bring::Commits { tip, .. } => format!(
                "nothing was changed; `git merge {tip}` leaves both in the files, for you to choose; or run it again on these files"
            ),
            Bring::Patch { base: None, .. } => "nothing was changed; run it again on these files".to_owned(),
        })),
        Brought::Unfit(said) => {
            let message = format_args!("the patch does not fit here: {said}");
            Err(Failure::new(FailureCode::PatchDoesNotFit, Exit::AgentFailed, message).hint("nothing was changed"))
        }
    }
}

/// Finds the changes to bring: the branch of a merge of patches, or the patch of a run.
///
/// With the check of that branch, where it has failed.
fn what(
    record: &Record,
    found: &FoundRun,
    ending: Ending,
) -> Result<(Bring, Option<CheckVerdict>), Failure> {
    let run = found.run;
    let nothing = |why: &str| {
        Failure::input(FailureCode::NothingToApply, format_args!("run {run} {why}")).hint(
            "--isolation gives a run a folder of its own, and --merge patch makes a branch of many",
        )
    };
    if let Some(changes) = ending.changes {
        let value = changes.patch.ok_or_else(|| nothing("has changed nothing"))?;
        record.store().verify(&value)?;
        let patch = record.store().path(&value)?;
        let base = changes.base.map(|base| base.to_string());
        return Ok((Bring::Patch { patch, base }, None));
    }
    let (true, Some(output)) = (makes_a_branch(record, found.root, run)?, ending.output) else {
        return Err(nothing("had no folder of its own"));
    };
    match branch(record, &output)? {
        Some(Branch { branch: Some(_), base, commit, check, .. }) => {
            Ok((Bring::Commits { base, tip: commit }, check.filter(|check| !check.passes)))
        }
        Some(_) => Err(nothing("has made no branch: there was no change to put on one")),
        None => Err(Failure::input(
            FailureCode::NothingToApply,
            format_args!("run {run} has made no branch: a piece of it did not complete"),
        )
        .hint("`--on-failure skip` makes a branch of those that did; `offshoot apply RUN` brings the changes of one run, and `offshoot list --tree last` names the runs")),
    }
}

/// True of the root of a map or a fanout that merges patches.
fn makes_a_branch(record: &Record, root: RootId, run: RunId) -> Result<bool, Failure> {
    let admitted = record.store().admitted(root, run)?;
    let plan = admitted.and_then(|admitted| admitted.plan);
    let plan = plan.and_then(|plan: JsonText| serde_json::from_str::<Plan>(plan.as_str()).ok());
    Ok(plan.is_some_and(|plan| plan.merge.as_deref() == Some(PATCH)))
}

/// Reads the answer of a merge of patches; none where it is another one.
fn branch(record: &Record, output: &Payload) -> Result<Option<Branch>, Failure> {
    Ok(match record::at_hand(&**record.store(), output)? {
        Payload::Json(json) => serde_json::from_str(json.as_str()).ok(),
        Payload::Text(_) | Payload::Stored(_) => None,
    })
}

/// Returns why the merge of its tree has left the patch of this run out, where it has.
fn why_not_on_branch(record: &Record, found: &FoundRun) -> Result<Option<String>, Failure> {
    let root = found.root.run();
    if found.run == root || !makes_a_branch(record, found.root, root)? {
        return Ok(None);
    }
    let ending = record.ending(found.root, root)?;
    let Some(output) = ending.and_then(|ending| ending.output) else { return Ok(None) };
    let Some(Branch { conflicts, left_out, .. }) = branch(record, &output)? else {
        return Ok(None);
    };
    let run = found.run.to_string();
    let of = |listed: Vec<NotOnBranch>| listed.into_iter().find(|it| it.run == run);
    Ok(match (of(left_out), of(conflicts)) {
        (Some(left), _) => Some(format!("with it the check {}", left.why)),
        (None, Some(conflict)) => Some(conflict.why),
        (None, None) => None,
    })
}
