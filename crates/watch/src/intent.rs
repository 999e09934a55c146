//! The wishes of the operator, as far as the screen cannot fulfil them itself.

use offshoot_model::{BudgetRequest, RootId, RunId};

/// Something to be done outside of the screen.
#[derive(Clone, Debug, PartialEq)]
pub enum Intent {
    /// Leave the screen.
    Quit,
    /// Hand the terminal back to the shell until this program is continued.
    Suspend,
    /// Draw everything anew: another program has written on the terminal.
    Redraw,
    /// End a run with everything below it. It was confirmed.
    Cancel {
        /// The tree of the run.
        root: RootId,
        /// The run.
        run: RunId,
        /// The number of runs that are not over, from this one down.
        alive: u64,
    },
    /// Pause a tree, or let it go on.
    Pause {
        /// The tree.
        root: RootId,
        /// True to pause it.
        paused: bool,
    },
    /// Add to the budget of a run. It was confirmed.
    Budget {
        /// The tree of the run.
        root: RootId,
        /// The run.
        run: RunId,
        /// The amount to add.
        add: BudgetRequest,
    },
    /// Write into the session of a run.
    Send {
        /// The tree of the run.
        root: RootId,
        /// The run.
        run: RunId,
        /// The letter.
        text: String,
    },
    /// Put a text on the clipboard.
    Copy(String),
}
