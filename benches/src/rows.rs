//! The rows that are measured: one file for each, with the same rooms in each. What is set up, what our side does, what the
//! peers do, what the numbers should be.

mod admission;
mod append;
mod choose;
mod concatenate;
mod cut;
mod first_start;
mod growth;
mod hand_over;
mod in_process;
mod key;
mod logging;
mod logs;
mod memory;
mod meter;
mod needs;
mod plugin_event;
mod plugin_load;
mod plugin_process;
mod plugin_run;
mod process;
mod recursion;
mod reopen;
mod resume;
mod start_up;
mod structured;
mod variable;
mod vote;
mod waiting;
mod watch;
mod worktrees;

use crate::Result;
use crate::outcome::Outcome;
use crate::setting::Setting;

/// Something to measure.
pub(crate) struct Row {
    /// One word, for the command line.
    pub(crate) name: &'static str,
    /// In a few words.
    pub(crate) what: &'static str,
    pub(crate) measure: fn(&Setting) -> Result<Outcome>,
}

/// From the whole to its parts.
pub(crate) const ALL: &[Row] = &[
    process::ROW,
    in_process::ROW,
    admission::ROW,
    hand_over::ROW,
    recursion::ROW,
    memory::ROW,
    growth::ROW,
    waiting::ROW,
    first_start::ROW,
    needs::ROW,
    needs::START,
    choose::ROW,
    worktrees::ROW,
    meter::ROW,
    meter::STREAMS,
    meter::LONG_STREAMS,
    variable::ROW,
    concatenate::ROW,
    cut::ROW,
    append::ROW,
    reopen::ROW,
    resume::ROW,
    resume::MEMORY,
    vote::ROW,
    structured::ROW,
    key::ROW,
    plugin_load::ROW,
    plugin_event::ROW,
    plugin_run::ROW,
    plugin_process::ROW,
    start_up::ROW,
    watch::ROW,
    logging::ROW,
    logging::OFF,
    logs::ROW,
    logs::KEPT,
];
