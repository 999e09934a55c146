//! Questions of the meter to the owner of the budgets, and messages to it.

use offshoot_model::RunId;
use tokio::sync::oneshot;

use crate::bound::Bound;
use crate::protocol::{Protocol, Provider};
use crate::refusal::Refusal;
use crate::settle::{Charge, Ending};
use crate::window::WindowState;

/// A request of a run. No two of one meter have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A message to the owner of the budgets.
///
/// The channel has no bound: there is at most one open [`Ask::Reserve`] for each connection, whose number has one, and an
/// [`Ask::Settle`] is sent where nothing can be waited for.
#[derive(Debug)]
pub enum Ask {
    /// May this request leave?
    Reserve(Reserve),
    /// A request is over. There is exactly one for each reservation that was granted, and one where the program did not wait for the
    /// answer; of a request that holds nothing it means nothing.
    Settle(Settle),
    /// A request of a run was refused, and did not leave.
    Refused(Refused),
    /// A provider has said something of the limits of its account.
    Seen(Seen),
    /// To be answered once all that was told before is taken. The meter never asks it: it is for code that ends a run.
    Taken(oneshot::Sender<()>),
}

/// A question for a reservation.
#[derive(Debug)]
pub struct Reserve {
    /// The run that asks.
    pub run: RunId,
    /// The request. The same one may ask twice: see [`Verdict::TooMuch`].
    pub request: RequestId,
    /// The words that it speaks.
    pub protocol: Protocol,
    /// The model that it asks.
    pub model: String,
    /// The most that it can cost.
    pub bound: Bound,
    /// True if it does not come again with a smaller bound.
    pub is_last: bool,
    /// True if its answer may be shorter than it was to be, because the longer one was too much.
    pub is_shortened: bool,
    /// For the verdict. It may come later, once others have settled: until then the request is held, and whatever is reserved for it has to be
    /// given back when its [`Ask::Settle`] comes.
    pub answer: oneshot::Sender<Verdict>,
}

/// The verdict about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The request is reserved, and may leave.
    Granted,
    /// The request is more than all that there is. One that is not the last comes again: with a smaller bound where the provider counts tokens
    /// or the request names no limit of its answer, else with the same.
    TooMuch(Refusal),
    /// The request may not leave, whatever its size.
    Refused(Refusal),
}

/// The end of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settle {
    /// The run that asked.
    pub run: RunId,
    /// The request.
    pub request: RequestId,
    /// The model that it asked.
    pub model: String,
    /// The way it ended.
    pub ending: Ending,
    /// The charge. All else that was reserved is free again.
    pub charge: Charge,
    /// True if the answer has reached a limit that was shortened because a longer one was too much.
    pub is_cut: bool,
}

/// A refusal that a run was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The run that asked.
    pub run: RunId,
    /// The refusal.
    pub refusal: Refusal,
}

/// Something that a provider has said of its limits.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// The run whose request was answered.
    pub run: RunId,
    /// The provider that has said it.
    pub provider: Provider,
    /// The limits that it spoke of.
    pub state: WindowState,
}
