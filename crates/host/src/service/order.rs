//! The merge of a request, made before there is any result.

use std::sync::Arc;

use offshoot_door::{CallError, MergeOrder};
use offshoot_merge::{OnFailure, ParseOnFailureError, Strategy};
use offshoot_model::{Refusal, RefusalCode, RunId, error_chain};
use offshoot_runtime::MergeFault;
use offshoot_spawner::{Gathering, StoredValues};

use super::{TreeService, blocking, invalid};
use crate::error::HostError;
use crate::merging::{Merging, ParseMergingError};

/// The field that names the strategy.
const STRATEGY: &str = "merge.strategy";

impl TreeService {
    /// Reads what was asked for. A plugin's merge is loaded and begun, so that one which cannot be used costs no child.
    pub(super) async fn order(
        &self,
        caller: RunId,
        order: &MergeOrder,
    ) -> Result<Gathering, CallError> {
        let merging: Merging = order.strategy.parse().map_err(|error: ParseMergingError| {
            let refusal = Refusal::invalid(STRATEGY, error.to_string());
            CallError::from(refusal.with_hint(error.hint()))
        })?;
        let on_failure = order.on_failure.as_deref().map_or(Ok(OnFailure::default()), str::parse);
        let on_failure = on_failure
            .map_err(|error: ParseOnFailureError| invalid("merge.onFailure", error.to_string()))?;
        let values = StoredValues::new(Arc::clone(self.agents.store()));
        let separator = order.separator.as_deref();
        if separator.is_some() && merging != Merging::Strategy(Strategy::Concatenate) {
            let message = format!("a separator is of concatenated answers, and not of `{merging}`");
            return Err(invalid("merge.separator", message));
        }
        if merging == Merging::Patch {
            let message = "`patch` is a merge of the operator's map or fanout";
            return Err(invalid("merge", message));
        }
        if let Merging::Strategy(ours) = merging {
            if !ours.takes(on_failure) {
                let message =
                    format!("`{ours}` cannot have `{on_failure}`: a failed run has no number");
                return Err(invalid("merge.onFailure", message));
            }
            let gathering = Gathering::by_strategy(ours, on_failure, values);
            return Ok(match separator {
                Some(separator) => gathering.separate_by(separator),
                None => gathering,
            });
        }
        if let Merging::Asking(asking) = merging {
            return Ok(Gathering::by_asking(asking, on_failure, &self.agents, caller));
        }
        let plugins = Arc::clone(&self.plugins);
        let external = blocking(move || {
            merging.load(|name| plugins.merge(name)).map_err(|error| unusable(&error))
        });
        let external = external.await?.expect("a merge that is no strategy was not loaded");
        let begun = Gathering::by_external(&external, on_failure, &self.agents, caller);
        begun.await.map_err(not_begun)
    }
}

/// Parameters that a merge cannot use, or that it panicked over.
fn not_begun(fault: MergeFault) -> CallError {
    match fault.panicked {
        true => Refusal::new(RefusalCode::PluginUnusable, fault.message).into(),
        false => invalid(STRATEGY, fault.message),
    }
}

/// A merge that there is not, or that cannot be used, in the words that the operator would read.
fn unusable(error: &HostError) -> CallError {
    let refusal = Refusal::new(RefusalCode::PluginUnusable, error_chain(error));
    match error.hint() {
        Some(hint) => refusal.with_hint(hint).into(),
        None => refusal.into(),
    }
}
