//! The folder of a run that works apart from others: made before it starts, brought back when nothing of it works any more.

use std::path::PathBuf;
use std::sync::Arc;

use offshoot_model::{Changes, Isolation, Reason, RunId};

use crate::machine::Outcome;
use crate::request::Prepared;
use crate::tree_context::TreeContext;
use crate::workspaces::{WorkspaceOrder, Workspaces};

/// Has a run work in a folder of its own, where it is to have one.
pub(super) async fn take(
    tree: &TreeContext,
    run: RunId,
    prepared: &mut Prepared,
) -> Result<(), Reason> {
    let folder = Arc::clone(&prepared.run_spec.working_folder);
    let isolation = prepared.isolation.as_deref().filter(|isolation| !isolation.is_none());
    let (Some(isolation), Some(workspaces)) = (isolation, &tree.workspaces) else {
        if folder != tree.run_spec.working_folder {
            tree.workplaces.enter(run, &folder);
        }
        return Ok(());
    };
    let (isolation, continues): (Isolation, bool) = (isolation.clone(), prepared.continues);
    let order = WorkspaceOrder { run, root: tree.root, isolation, folder, continues };
    let made: PathBuf =
        workspaces.make(order).await.map_err(|message| Reason::Isolation { message })?;
    let made = Arc::new(made);
    tree.workplaces.own(run, Arc::clone(&made));
    prepared.run_spec = prepared.run_spec.moved_to(Some(made));
    Ok(())
}

/// Brings back what was changed in the folder of a run, with how it ended. A run whose changes are not safe did not complete.
pub(super) async fn bring_back(tree: &TreeContext, run: RunId, mut outcome: Outcome) -> Outcome {
    let Some(workspaces) = &tree.workspaces else { return outcome };
    let gathered = match tree.workplaces.over_in(run) {
        Some(over) => {
            let gathered = gather_own(tree, &**workspaces, run, over).await;
            tree.workplaces.leave(run);
            gathered
        }
        None => match tree.workplaces.leave(run) {
            Some(owner) => workspaces.gather(owner, true).await,
            None => return outcome,
        },
    };
    match gathered {
        Ok(changes) => outcome.ending.changes = changes,
        Err(message) => {
            tree.workplaces.keep(run);
            outcome.ending.reason = Reason::NotRecorded { message };
        }
    }
    outcome
}

/// Brings back what was changed in the folder that a run owns: again, while others end in it meanwhile.
async fn gather_own(
    tree: &TreeContext,
    workspaces: &dyn Workspaces,
    run: RunId,
    mut over: u32,
) -> Result<Option<Box<Changes>>, String> {
    let mut again = false;
    loop {
        let gathered = workspaces.gather(run, again).await?;
        match tree.workplaces.over_in(run) {
            Some(now) if now != over => (over, again) = (now, true),
            _ => return Ok(gathered),
        }
    }
}
