//! Requests of running agents to models, as the meter tells of them.

use std::sync::Arc;
use std::time::Duration;

use offshoot_model::{Cost, MicroUsd, RequestEnding, RunId, Timestamp, Usage};

/// A request to a model that wants to leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelRequest<Run = RunId> {
    /// The run that sends it.
    pub run: Run,
    /// The number of the request. No two that are open in a tree have the same.
    pub request: u64,
    /// The model.
    pub model: Arc<str>,
    /// The most tokens that it reads and writes.
    pub tokens: u64,
    /// The most that it costs; none where that is not known.
    pub usd: Option<MicroUsd>,
    /// True if it does not come again with a smaller bound where it is too much: then it may wait for more budget.
    pub is_last: bool,
    /// True if its answer may be shorter than it was to be, because the run has too little left for the longer one.
    pub is_shortened: bool,
}

/// The charge of a request that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelCharge<Run = RunId> {
    /// The run that has sent it.
    pub run: Run,
    /// The number of the request.
    pub request: u64,
    /// The model.
    pub model: Arc<str>,
    /// The way it ended.
    pub ending: RequestEnding,
    /// The tokens that are charged.
    pub usage: Usage,
    /// The dollars that are charged.
    pub cost: Cost,
    /// True if the provider declined it with the status of one that has too much to do. Where a quota is used up, that is told before.
    pub is_pressure: bool,
    /// True if the answer was cut at a limit that was shortened because the run had too little left.
    pub is_cut: bool,
}

impl ModelRequest {
    /// Returns the same request of the run at this place.
    pub(crate) fn of<Place>(self, run: Place) -> ModelRequest<Place> {
        let Self { run: _, request, model, tokens, usd, is_last, is_shortened } = self;
        ModelRequest { run, request, model, tokens, usd, is_last, is_shortened }
    }
}

impl ModelCharge {
    /// Returns the same charge of the run at this place.
    pub(crate) fn of<Place>(self, run: Place) -> ModelCharge<Place> {
        let Self { run: _, request, model, ending, usage, cost, is_pressure, is_cut } = self;
        ModelCharge { run, request, model, ending, usage, cost, is_pressure, is_cut }
    }
}

/// A request that the meter has refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedRequest {
    /// The run that has sent it.
    pub run: RunId,
    /// The rule, for programs.
    pub code: Arc<str>,
    /// The rule, for people.
    pub message: Arc<str>,
}

/// A quota, as the answer to a request says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenQuota {
    /// The run whose request was answered.
    pub run: RunId,
    /// The quota in the words of the service; none where the service does not name it.
    pub window: Option<Arc<str>>,
    /// The reset.
    pub reset: WallReset,
    /// The part that is left, in millionths; none where the request was refused because it is used up.
    pub left: Option<u32>,
}

/// The time at which a quota is there again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WallReset {
    /// At this moment.
    At(Timestamp),
    /// So long after the answer.
    In(Duration),
}
