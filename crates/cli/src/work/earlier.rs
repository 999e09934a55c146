//! Results of earlier runs, as a merge takes them.

use std::sync::Arc;

use offshoot_model::{Ending, Payload, RootId, RunId};
use offshoot_store::Store;

use super::plan::EarlierResult;
use crate::code::FailureCode;
use crate::failure::Failure;
use crate::record;

/// Strategies that look into values need those that are small at hand.
const SMALL: u64 = 64 * 1024;

/// Reads these results, with their names.
pub(crate) fn results(
    store: &dyn Store,
    earlier: &[EarlierResult],
) -> Result<Vec<(Arc<str>, Payload)>, Failure> {
    let read = |it: &EarlierResult| Ok((Arc::clone(&it.key), result(store, it.root, it.run)?));
    earlier.iter().map(read).collect()
}

/// Reads the result of a run that is over.
pub(crate) fn result(store: &dyn Store, root: RootId, run: RunId) -> Result<Payload, Failure> {
    match store.ending(root, run)? {
        Some(Ending { output: Some(output), .. }) => {
            record::must_be_there(store, run, &output)?;
            match output.size() <= SMALL {
                true => record::at_hand(store, &output),
                false => Ok(output),
            }
        }
        Some(_) => {
            Err(Failure::input(FailureCode::NoResult, format_args!("run {run} has no result"))
                .hint(format_args!("`offshoot show {run}` says why")))
        }
        None => Err(Failure::input(FailureCode::RunNotOver, format_args!("run {run} is not over"))
            .hint(format_args!("`offshoot show {run}` says what it waits for"))),
    }
}
