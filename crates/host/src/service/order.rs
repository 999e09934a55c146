//! How results become one, as it was asked for and before there is any.

use std::sync::Arc;

use offshoot_door::{CallError, MergeOrder};
use offshoot_merge::{Fold, OnFailure, ParseOnFailureError};
use offshoot_model::{Refusal, RefusalCode, RunId};
use offshoot_runtime::MergeFault;
use offshoot_spawner::ExternalMergeJob;

use super::{TreeService, blocking, invalid};
use crate::error::HostError;
use crate::merging::{Merging, ParseMergingError};
use crate::wording::chain;

/// The field that names the strategy.
const STRATEGY: &str = "merge.strategy";

/// A merge that can take results.
pub(super) struct Order {
    /// As it was asked for.
    pub(super) strategy: String,
    /// Takes the results; where a plugin merges, it counts them.
    pub(super) fold: Fold,
    /// The plugin's merge.
    pub(super) job: Option<ExternalMergeJob>,
    /// Whether the answer can stand before all results are in.
    pub(super) may_end_early: bool,
}

impl TreeService {
    /// Reads what was asked for. A plugin's merge is loaded and begun, so that one which cannot be used costs no child.
    pub(super) async fn order(
        &self,
        caller: RunId,
        order: &MergeOrder,
    ) -> Result<Order, CallError> {
        let merging: Merging = order.strategy.parse().map_err(|error: ParseMergingError| {
            let refusal = Refusal::invalid(STRATEGY, error.to_string());
            CallError::from(refusal.with_hint(error.hint()))
        })?;
        let on_failure = order.on_failure.as_deref().map_or(Ok(OnFailure::default()), str::parse);
        let on_failure = on_failure
            .map_err(|error: ParseOnFailureError| invalid("merge.onFailure", error.to_string()))?;
        let strategy = merging.to_string();
        if let Merging::Strategy(ours) = merging {
            let (fold, may_end_early) = (Fold::new(ours, on_failure), ours.may_end_early());
            return Ok(Order { strategy, fold, job: None, may_end_early });
        }
        let plugins = Arc::clone(&self.plugins);
        let external = blocking(move || {
            merging.load(|name| plugins.merge(name)).map_err(|error| unusable(&error))
        });
        let job = match external.await? {
            Some(external) => Some(external.begin(&self.agents, caller).await.map_err(not_begun)?),
            None => None,
        };
        let fold = Fold::elsewhere(on_failure);
        Ok(Order { strategy, fold, job, may_end_early: true })
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
    let refusal = Refusal::new(RefusalCode::PluginUnusable, chain(error));
    match error.hint() {
        Some(hint) => refusal.with_hint(hint).into(),
        None => refusal.into(),
    }
}
