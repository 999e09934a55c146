//! Taking away what runs of a tree have left, while the events of the tree stay.
//!
//! Events are chained by their hashes: one that was taken out would leave a record that proves nothing. So the events of the runs
//! stay, with the short texts that stand in them; their values, folders and output go.
//!
//! Promise: no value goes that an event of another run names.

use std::collections::HashSet;

use offshoot_model::{RootId, RunId, Timestamp};

use crate::output::remove_said;
use crate::sweep::Sweep;
use crate::{SqliteStore, StoreError, Swept};

impl SqliteStore {
    /// Removes values, folders and output of these runs of a tree that is over, or only counts them. While another tree runs in the
    /// data folder, values that were made or used within the last hour stay, for it may be about to name them.
    ///
    /// # Errors
    ///
    /// [`StoreError::Held`] where the tree is run; a folder that cannot be read or a file that cannot be removed. What went before
    /// is gone, and another call removes the rest.
    pub fn remove_left_by(
        &self,
        root: RootId,
        runs: &HashSet<RunId>,
        now: Timestamp,
        dry: bool,
    ) -> Result<Swept, StoreError> {
        let folder = self.folder();
        // While no tree runs, none can be about to name anything.
        let alone = folder.alone()?;
        let held = match &alone {
            Some(_) => None,
            None => Some(folder.hold(root)?),
        };
        let (theirs, others) = self.named_by(runs)?;
        let values = theirs.values.difference(&others.values).copied().collect();
        let mut sweep = Sweep::new(folder, now, dry);
        sweep.values_of(&values, alone.is_some())?;
        sweep.run_folders(runs)?;
        sweep.contexts_of(root)?;
        let mut swept = sweep.swept;
        swept.busy = alone.is_none();
        let (files, bytes) = remove_said(folder, root, |run| runs.contains(&run), dry)?;
        (swept.files, swept.bytes) = (swept.files + files, swept.bytes + bytes);
        if !dry {
            folder.remove_output_of(|run| runs.contains(&run))?;
        }
        drop((alone, held));
        Ok(swept)
    }
}
