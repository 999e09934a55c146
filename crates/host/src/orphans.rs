//! Processes that an earlier supervisor has left running in this data folder, although its keeper should have ended them.
//!
//! A supervisor that was killed leaves the file by which it held its tree. So in the ordinary case no process is looked
//! at, and no caller waits for this.

use std::collections::HashSet;
use std::time::Duration;

use offshoot_model::{BootId, EventKind, ProcessIdentity, RootId, RunId};
use offshoot_process::{Identity, Leftover, Wanted, boot_id, end_leftovers, leftovers};
use offshoot_store::{DataFolder, RootLock, Store};

use crate::error::HostError;
use crate::reporter::Reporter;

/// The variable that names a run to whatever it starts.
const RUN_VARIABLE: &str = "OFFSHOOT_RUN_ID";

/// The time in which a killed process has to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// Ends the processes of trees whose supervisor has died, and says so; removes what it was about to write.
pub fn end_orphans(
    folder: &DataFolder,
    store: &dyn Store,
    reporter: &Reporter,
) -> Result<(), HostError> {
    // Held until all is done, so that two who come next do not end the same.
    let abandoned = folder.abandoned()?;
    if !abandoned.is_empty() {
        let ended = end(&abandoned, store, reporter);
        match ended {
            Ok(true) => drop(abandoned),
            // The next start looks again for processes that were not ended.
            Ok(false) | Err(_) => abandoned.into_iter().for_each(RootLock::abandon),
        }
        ended?;
    }
    folder.sweep_unfinished()?;
    Ok(())
}

/// Ends the processes that are left of these trees. True if none is left then.
fn end(abandoned: &[RootLock], store: &dyn Store, reporter: &Reporter) -> Result<bool, HostError> {
    let mut wanted = Wanted { leaders: Vec::new(), variable: RUN_VARIABLE, values: HashSet::new() };
    abandoned.iter().for_each(|lock| add(&mut wanted, store, lock.root()));
    let found = leftovers(&wanted).map_err(HostError::Orphans)?;
    if found.is_empty() {
        return Ok(true);
    }
    // Told before it is done.
    for Leftover { pid, value, .. } in &found {
        let run = value.as_ref().map(|run| format!(" of run {run}")).unwrap_or_default();
        reporter.note(format_args!("ending process {pid}{run}, which an earlier supervisor left"));
    }
    let (ended, lost) = end_leftovers(found, &wanted, PATIENCE).map_err(HostError::Orphans)?;
    let processes = if ended == 1 { "process" } else { "processes" };
    reporter.note(format_args!("ended {ended} {processes} that an earlier supervisor left"));
    if lost > 0 {
        reporter.warning(format_args!("{lost} of them do not end, even when killed"));
    }
    Ok(lost == 0)
}

/// Adds each run of a tree that had not ended. A record that cannot be read in a place says of the others what it can.
fn add(wanted: &mut Wanted, store: &dyn Store, root: RootId) {
    let boot = boot_id().map(BootId::from_u128);
    let mut live: HashSet<RunId> = HashSet::new();
    let mut leaders: Vec<(RunId, Identity)> = Vec::new();
    for event in store.events(root, 0).flatten() {
        match event.kind {
            EventKind::Admitted(_) | EventKind::RootReopened(_) => {
                live.insert(event.run);
            }
            // Of another boot nothing is left, whatever has its number now.
            EventKind::Started { process: Some(process), .. } if !process.may_be_of(boot) => {}
            EventKind::Started {
                process: Some(ProcessIdentity { pid, start_time, .. }), ..
            } => {
                leaders.push((event.run, Identity { pid, start_time }));
            }
            EventKind::Ended(_) => {
                live.remove(&event.run);
            }
            _ => {}
        }
    }
    let is_live = |(run, leader): (RunId, Identity)| live.contains(&run).then_some(leader);
    wanted.leaders.extend(leaders.into_iter().filter_map(is_live));
    wanted.values.extend(live.iter().map(RunId::to_string));
}
