//! Results on their way into one answer: by a fold of ours, or by an external merge or one that asks, beside a fold that counts.

use std::collections::HashSet;
use std::sync::Arc;

use offshoot_merge::{Answer, Asking, Fold, MergeError, OnFailure, Step, Strategy};
use offshoot_model::{Chosen, Envelope, Payload, RunId};
use offshoot_runtime::MergeFault;

use super::agents::Agents;
use super::asked_merge::{AskedMerge, Session};
use super::external_merge::{ExternalMerge, ExternalMergeJob, MergeHost};
use crate::stored_values::StoredValues;
use crate::tree_context::MergeThreads;

/// A merge that takes results in any order, for an answer that keeps the order of the request.
#[derive(derive_more::Debug)]
#[debug("Gathering({strategy})")]
pub struct Gathering {
    strategy: String,
    fold: Fold,
    may_end_early: bool,
    external: Option<External>,
    /// A merge that asks; none once it was made or given up.
    asked: Option<AskedMerge>,
    /// The choice of a judge, once it was made.
    chosen: Option<Chosen>,
    values: StoredValues,
}

/// An external merge under way.
struct External {
    /// None once the merge has answered or was given up.
    job: Option<ExternalMergeJob>,
    /// The places whose results the merge has got.
    handed: HashSet<u32>,
    /// True if the merge has given its answer at the end.
    has_answered: bool,
}

impl Gathering {
    /// Gathers by a strategy of ours. Results that are stored are read from `values` where the strategy compares them.
    pub fn by_strategy(strategy: Strategy, on_failure: OnFailure, values: StoredValues) -> Self {
        let fold = Fold::new(strategy, on_failure);
        Self::of(strategy.to_string(), fold, strategy.may_end_early(), values)
    }

    fn of(strategy: String, fold: Fold, may_end_early: bool, values: StoredValues) -> Self {
        Self { strategy, fold, may_end_early, external: None, asked: None, chosen: None, values }
    }

    /// Gathers by an external merge, which may ask for children of `caller`.
    ///
    /// # Errors
    ///
    /// Fails if the merge cannot use its parameters, or panicked over them.
    pub async fn by_external(
        external: &ExternalMerge,
        on_failure: OnFailure,
        agents: &Agents,
        caller: RunId,
    ) -> Result<Self, MergeFault> {
        let (store, threads) = (Arc::clone(agents.store()), agents.tree.merging.clone());
        let host = MergeHost::Run { agents: agents.clone(), caller };
        let job = ExternalMergeJob::begin(external, Arc::clone(&store), threads, host).await?;
        Ok(Self::by_job(external, job, on_failure, StoredValues::new(store)))
    }

    /// Gathers by an external merge outside of any tree, where the merge cannot ask for agents.
    ///
    /// # Errors
    ///
    /// Fails if the merge cannot use its parameters, or panicked over them.
    pub async fn outside(
        external: &ExternalMerge,
        on_failure: OnFailure,
        values: StoredValues,
    ) -> Result<Self, MergeFault> {
        let (store, threads) = (Arc::clone(values.store()), MergeThreads::default());
        let job = ExternalMergeJob::begin(external, store, threads, MergeHost::NoAgents).await?;
        Ok(Self::by_job(external, job, on_failure, values))
    }

    pub(super) fn by_job(
        external: &ExternalMerge,
        job: ExternalMergeJob,
        on_failure: OnFailure,
        values: StoredValues,
    ) -> Self {
        let fold = Fold::elsewhere(on_failure);
        let job = External { job: Some(job), handed: HashSet::new(), has_answered: false };
        Self { external: Some(job), ..Self::of(external.to_string(), fold, true, values) }
    }

    /// Gathers by a merge that asks for children of `caller`.
    pub fn by_asking(
        asking: Asking,
        on_failure: OnFailure,
        agents: &Agents,
        caller: RunId,
    ) -> Self {
        let values = StoredValues::new(Arc::clone(agents.store()));
        let asker = Box::new(Session { agents: agents.clone(), caller });
        Self::by_asked(AskedMerge::new(asking, asker, &agents.tree), on_failure, values)
    }

    pub(super) fn by_asked(asked: AskedMerge, on_failure: OnFailure, values: StoredValues) -> Self {
        let (strategy, fold) = (asked.asking.to_string(), Fold::elsewhere(on_failure));
        Self { asked: Some(asked), ..Self::of(strategy, fold, false, values) }
    }

    /// Holds so many bytes of results and no more, see [`Fold::hold_at_most`].
    #[must_use]
    pub(super) fn hold_at_most(self, bytes: u64) -> Self {
        Self { fold: self.fold.hold_at_most(bytes), ..self }
    }

    /// Puts this text between two results, see [`Fold::separate_by`].
    #[must_use]
    pub fn separate_by(self, separator: &str) -> Self {
        Self { fold: self.fold.separate_by(separator), ..self }
    }

    /// Returns the name of the merge.
    pub fn strategy(&self) -> &str {
        &self.strategy
    }

    /// Returns true if the answer can stand before all results are in.
    pub fn may_end_early(&self) -> bool {
        self.may_end_early
    }

    /// Takes the result at one place of the request. A second one for the same place changes nothing.
    pub async fn push(
        &mut self,
        place: u32,
        key: Arc<str>,
        result: Result<Payload, Box<Envelope>>,
    ) -> Step {
        let Self { fold, external, asked, values, .. } = self;
        if let Some(asked) = asked
            && (result.is_ok() || fold.includes_failures())
        {
            asked.push(place, Arc::clone(&key), result.clone()).await;
        }
        if let Some(External { job: Some(job), handed, .. }) = external
            && (result.is_ok() || fold.includes_failures())
            && handed.insert(place)
        {
            job.push(place, Arc::clone(&key), result.clone(), fold).await;
        }
        if let Ok(value) = &result {
            values.learn(fold, value).await;
        }
        fold.push(place, key, result)
    }

    /// Returns true if the answer stands whatever the remaining results say.
    pub fn stands(&self) -> bool {
        self.fold.stands()
    }

    /// Returns true if there will be no answer, because the external merge has failed.
    pub fn has_failed(&self) -> bool {
        let job = self.external.as_ref().and_then(|external| external.job.as_ref());
        job.is_some_and(ExternalMergeJob::has_failed)
    }

    /// Gives a merge up that asks: a part of the results is not worth a run.
    pub(super) fn ask_nothing(&mut self) {
        self.asked = None;
    }

    /// Gives an external merge up, or one that asks: not all results that it should merge will come.
    pub fn give_up(&mut self) {
        self.asked = None;
        if let Some(external) = &mut self.external {
            external.job = None;
        }
    }

    /// Returns the answer so far. An external merge and one that asks have the whole answer or none.
    pub fn partial(&self) -> Option<&Answer> {
        let has_none = |external: &External| !external.has_answered && !self.stands();
        let answer = Some(self.fold.partial()).filter(|answer| answer.is_made());
        answer.filter(|_| !self.external.as_ref().is_some_and(has_none))
    }

    /// Returns the choice of a judge, once it was made.
    pub fn chosen(&self) -> Option<&Chosen> {
        self.chosen.as_ref()
    }

    /// Returns the places of the results that did not complete.
    pub fn failed(&self) -> impl Iterator<Item = u32> {
        self.fold.partial().failed()
    }

    /// Asks an external merge for its answer, where all of `expected` results are in: a merge that asks an agent would do so
    /// for a part as for the whole. One that asks by itself does so only where each result counts.
    ///
    /// # Errors
    ///
    /// Fails if what was gathered is not the answer to the request.
    pub async fn conclude(&mut self, expected: u32) -> Result<(), MergeError> {
        let verdict = self.fold.check(expected);
        if let Some(asked) = self.asked.take_if(|_| verdict.is_ok()) {
            let made = asked.finish().await?;
            self.fold.give(made.answer, false);
            self.chosen = made.chosen;
            return Ok(());
        }
        let Some(external) = &mut self.external else { return verdict };
        let is_missing = matches!(verdict, Err(MergeError::Missing { .. }));
        let is_due = |job: &mut ExternalMergeJob| !is_missing || job.has_failed();
        let Some(job) = external.job.take_if(is_due) else { return verdict };
        job.finish(&mut self.fold).await?;
        external.has_answered = true;
        self.fold.check(expected)
    }

    /// Returns the answer, or what there is of it.
    pub fn into_answer(self) -> Answer {
        self.fold.into_partial()
    }
}
