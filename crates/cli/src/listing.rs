//! The runs that the last listing in this terminal printed: `@1` is the first of them.

use offshoot_model::RunId;
use offshoot_process::own_session;
use offshoot_spawner::{Clock, SystemClock};

use crate::code::FailureCode;
use crate::failure::Failure;
use crate::record::Record;

/// Remembers what was printed. Where that fails, `@1` names nothing, which the command that is given it says.
pub(crate) fn keep(record: &Record, runs: impl Iterator<Item = RunId>) {
    let text: String = runs.map(|run| format!("{run}\n")).collect();
    let kept = record.folder().keep_listing(own_session(), SystemClock.now(), &text);
    if let Err(error) = kept {
        tracing::debug!(%error, "listing not kept");
    }
}

/// Returns the run of this number, counted from 1.
pub(crate) fn run(record: &Record, number: usize) -> Result<RunId, Failure> {
    let kept = record.folder().listing(own_session()).unwrap_or_default();
    let run = number.checked_sub(1).and_then(|at| kept.lines().nth(at)?.parse().ok());
    run.ok_or_else(|| {
        let message = match kept.lines().count() {
            0 => format!("there is no run `@{number}`: nothing was listed in this terminal"),
            most => format!("there is no run `@{number}`: the last listing had {most}"),
        };
        Failure::input(FailureCode::NoSuchNumber, message)
            .hint("`offshoot list` numbers the runs that it prints")
    })
}
