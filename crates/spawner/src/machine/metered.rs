//! Requests to models that go through the meter: what each can cost is reserved out of what its run has left before it leaves, and what it
//! has cost is charged when it is over.
//!
//! ```text
//!   asked ──▶ fits ─────────────▶ reserved, and leaves ──▶ settled: charged, the rest is free again
//!        ├──▶ fits once others are over ──▶ gives back what the run has not used of its pool, and waits ──▶ …
//!        └──▶ fits never ───────▶ refused; with `budget.onCap: pause` held ──▶ waits for more budget ──▶ …
//!                                   └──▶ the program gives up ──▶ its run stands in line until there is more, where its session goes on
//! ```
//!
//! What a run holds for its requests is a part of its own budget, so that no other run has less for it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use offshoot_config::OnCap;
use offshoot_model::{
    BudgetGrant, Cost, CostKnowledge, Ending, EventKind, MicroUsd, Reason, Refusal, RefusalCode,
    RequestEnding, RequestShortage, Timestamp, TokenCount, Usage,
};
use offshoot_policy::budget::Unit;

use super::run::{Live, RunIndex, never_started};
use super::wall::Parking;
use super::{Effect, Machine};
use crate::model_request::{ModelCharge, ModelRequest, WallReset};

/// The code with which the meter refuses a request that has waited for as long as its program may wait.
const HELD_TOO_LONG: &str = "held_too_long";

/// The requests of one attempt of a run.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// Requests that have left or may leave, with what is held for each, by their numbers.
    open: BTreeMap<u64, Open>,
    /// Requests that wait until others are over, in the order in which they came.
    waiting: VecDeque<RequestAsk>,
    /// The number of the last one that was reserved.
    last: u64,
    /// The charges of those that are over.
    charged: (Usage, Cost),
    /// The unit in which the last refused request was too much, with the amounts where it was refused at once; none where one was granted since.
    too_much: Option<(Unit, Option<RequestShortage>)>,
    /// The unit for which the last request that had to wait for others has waited.
    waits_for: Option<Unit>,
    /// The number of refusals of each code that are not on record; zero where the first one is.
    refused: BTreeMap<Arc<str>, u64>,
    /// The last request that waits for room, and is on record as that; true if it waits for others, and not for more budget.
    held: Option<(u64, bool)>,
    /// True if a request has left, has waited for room, or was refused for its budget: the program asks through the meter.
    pub(super) has_asked: bool,
    /// The quota that was used up, and its reset, where the last answer said so.
    wall: Option<(Option<Arc<str>>, Timestamp)>,
}

#[derive(Clone, Debug)]
struct Open {
    model: Arc<str>,
    held: BudgetGrant,
    /// The longer request that was too much, where this one was shortened.
    instead_of: Option<(Unit, Option<RequestShortage>)>,
}

/// A request to a model that wants to leave.
pub(crate) type RequestAsk = ModelRequest<RunIndex>;

/// A request to a model that is over.
pub(crate) type RequestOver = ModelCharge<RunIndex>;

/// The answer to a request that wants to leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestVerdict {
    /// The request is reserved, and may leave.
    Granted,
    /// The request is more than the run has for all its requests.
    TooMuch(Box<Refusal>),
    /// The request may not leave, whatever its size.
    Refused(Box<Refusal>),
}

/// The room for a request.
enum Room {
    /// There is room now.
    Now,
    /// There is room once others are over.
    Later(Unit),
    /// There is never room.
    Never(Unit, RequestShortage),
}

impl RequestAsk {
    /// The amount in a unit; zero dollars where the cost is not known, which the meter lets pass only where that is allowed.
    fn amount(&self, unit: Unit) -> u64 {
        match unit {
            Unit::Tokens => self.tokens,
            Unit::Usd => self.usd.map_or(0, MicroUsd::as_micros),
        }
    }
}

impl Requests {
    /// Returns the number of the last request that was reserved; 0 before the first.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Returns the charges of the requests that are over.
    pub(super) fn charged(&self) -> (Usage, Cost) {
        self.charged
    }

    /// Returns true if the last answer said that a quota is used up.
    pub(super) fn met_wall(&self) -> bool {
        self.wall.is_some()
    }

    /// A request is reserved, in a live step or as the record says.
    pub(super) fn reserved(&mut self, request: u64, model: &Arc<str>, held: BudgetGrant) {
        (self.too_much, self.has_asked) = (None, true);
        self.last = self.last.max(request);
        self.open.insert(request, Open { model: Arc::clone(model), held, instead_of: None });
    }

    /// A request is charged. Returns what was held for it.
    pub(super) fn settled(&mut self, request: u64, usage: Usage, cost: Cost) -> BudgetGrant {
        self.charged = with_request(self.charged, (usage, cost));
        self.open.remove(&request).map(|open| open.held).unwrap_or_default()
    }
}

impl Machine {
    /// A run wants to ask a model.
    pub(super) fn request_asked(&mut self, ask: RequestAsk) {
        let is_over = self.runs.running(ask.run).is_none_or(|live| live.stopping.is_some());
        if is_over {
            return self.answer_request(ask.request, RequestVerdict::Refused(Box::new(over())));
        }
        self.gives_sign(ask.run);
        if let Some(ask) = self.try_request(ask) {
            let (run, waiting) = (ask.run, &mut self.requests_of(ask.run).waiting);
            waiting.push_back(ask);
            let first = waiting.front().map(|ask| ask.request);
            self.waiting_requests.extend(first.map(|first| (first, run)));
        }
    }

    /// A request is over, or its sender has gone before it was answered.
    pub(super) fn request_over(&mut self, over: RequestOver) {
        let RequestOver { run, request, model, ending, usage, cost, is_pressure, is_cut } = over;
        let Some(live) = self.runs.live_mut(run) else { return };
        live.clock.sign(self.now);
        let Some(requests) = &mut live.requests else { return };
        requests.waiting.retain(|waits| waits.request != request);
        // One that was never granted held nothing; one of an attempt that is over was charged with its end.
        let Some(Open { instead_of, .. }) = requests.open.get(&request) else { return };
        let instead_of = *instead_of;
        self.settle_request(run, request, model, ending, usage, cost);
        if let Some(requests) = self.requests_mut(run) {
            if is_cut {
                // A run that fails over an answer that was cut for want of budget has failed for its budget.
                requests.too_much = instead_of.or(requests.too_much);
            }
            if ending.is_answered() {
                requests.wall = None;
            }
        }
        if ending.is_answered() {
            self.shows_success(run);
        }
        // Its runtime tells of calls that it makes again.
        let is_news = |live: &Live| !live.met_wall() && !live.backs_off();
        if is_pressure && self.runs.running(run).is_some_and(is_news) {
            self.meets_pressure(run);
        }
    }

    /// A request was refused. The first of each code is recorded, and further ones are counted, so that a program that asks in a loop
    /// does not fill the disk.
    pub(super) fn request_refused(&mut self, run: RunIndex, code: Arc<str>, message: Arc<str>) {
        if self.runs.running(run).is_none() {
            return;
        }
        let requests = self.requests_of(run);
        if *code == *HELD_TOO_LONG {
            let waits_for = requests.waits_for.map(|unit| (unit, None));
            requests.too_much = waits_for.or(requests.too_much);
        }
        if let Some(times) = requests.refused.get_mut(&code) {
            *times += 1;
            return;
        }
        requests.refused.insert(Arc::clone(&code), 0);
        self.record(run, EventKind::RequestRefused { code, message, times: None });
    }

    /// Records the number of refusals of an attempt that is over.
    fn record_refused_requests(&mut self, run: RunIndex) {
        let refused = self.requests_mut(run).map(|requests| std::mem::take(&mut requests.refused));
        for (code, times) in refused.into_iter().flatten() {
            if times > 0 {
                let (message, times) = ("".into(), Some(times));
                self.record(run, EventKind::RequestRefused { code, message, times });
            }
        }
    }

    /// Requests that wait are tried again, in the order in which they came: something may have come free since.
    pub(super) fn retry_requests(&mut self) {
        for (_, run) in std::mem::take(&mut self.waiting_requests) {
            let mut asks = self.take_waiting(run);
            while let Some(ask) = asks.pop_front() {
                // The others keep their order behind one that still waits.
                if let Some(ask) = self.try_request(ask) {
                    asks.push_front(ask);
                    break;
                }
            }
            if let (Some(live), Some(first)) = (self.runs.live_mut(run), asks.front()) {
                self.waiting_requests.insert(first.request, run);
                live.requests.get_or_insert_default().waiting = asks;
            }
        }
    }

    /// A run is to stop, or its attempt is over: none of its requests that wait may leave any more.
    pub(super) fn refuse_waiting(&mut self, run: RunIndex) {
        for ask in self.take_waiting(run) {
            self.answer_request(ask.request, RequestVerdict::Refused(Box::new(over())));
        }
    }

    /// The attempt of a run is over, and so are its requests: what is open is charged at its bound. Returns the sum of that.
    pub(super) fn lose_requests(&mut self, run: RunIndex) -> Option<(Usage, Cost)> {
        self.refuse_waiting(run);
        self.record_refused_requests(run);
        let open = self.runs.live(run)?.requests.as_ref()?.open.clone();
        let mut sum: Option<(Usage, Cost)> = None;
        for (request, Open { model, held, .. }) in open {
            let tokens = TokenCount::Known(held.tokens.unwrap_or(0));
            let usage = Usage { input: tokens, ..Usage::default() };
            let cost = held.usd.map_or_else(Cost::unknown, Cost::estimated);
            self.settle_request(run, request, model, RequestEnding::Lost, usage, cost);
            sum = Some(with_request(sum.unwrap_or_default(), (usage, cost)));
        }
        sum
    }

    /// An attempt was interrupted that does not go through the meter, and has told nothing of its use in a unit. A request of it may have been
    /// answered, and what is unknown is not free: it is charged all that its run had drawn of a pool. Of a budget of its own it is charged half of
    /// what is left and at least a quarter of the whole, so that the run can go on, and the third such attempt uses the budget up. Returns the charge.
    pub(super) fn lose_untold(
        &mut self,
        run: RunIndex,
        model: &str,
        told: impl Fn(Unit) -> bool,
    ) -> Option<(Usage, Cost)> {
        let id = self.id(run);
        let left = self.books.ledger.left(id);
        let [tokens, micro_usd] = Unit::ALL.map(|unit| {
            let left = unit.of(left).filter(|_| !told(unit)).unwrap_or(0);
            if self.books.ledger.is_pooled(id, unit) {
                return left;
            }
            let granted = self.books.ledger.balance(id, unit).and_then(|balance| balance.granted);
            left.div_ceil(2).max(granted.unwrap_or(0).div_ceil(4)).min(left)
        });
        if tokens == 0 && micro_usd == 0 {
            return None;
        }
        let request = self.runs.live(run)?.requests.as_ref().map_or(0, |it| it.last()) + 1;
        let model: Arc<str> = model.into();
        let kind = EventKind::RequestReserved {
            request,
            model: Arc::clone(&model),
            tokens,
            micro_usd: Some(micro_usd),
        };
        self.record(run, kind);
        let input = if tokens > 0 { TokenCount::Estimated(tokens) } else { TokenCount::default() };
        let usage = Usage { input, ..Usage::default() };
        let cost = Cost::estimated(MicroUsd::from_micros(micro_usd));
        self.settle_request(run, request, model, RequestEnding::Lost, usage, cost);
        Some((usage, cost))
    }

    /// Returns the part of the charge for a lost attempt after which nothing is unknown: of a pool all that the run had drawn is charged. Of a
    /// budget of its own only a part is, and the attempt may have used more; a metered run is charged its bounds.
    pub(super) fn charged_in_full(
        &self,
        run: RunIndex,
        (usage, cost): (Usage, Cost),
    ) -> Option<(Usage, Cost)> {
        let live = self.runs.live(run)?;
        if live.cost == CostKnowledge::Metered {
            return None;
        }
        let [tokens, usd] = Unit::ALL.map(|unit| self.books.ledger.is_pooled(self.id(run), unit));
        let usage = if tokens { usage } else { Usage::default() };
        Some((usage, if usd { cost } else { Cost::NONE }))
    }

    /// Returns the use of a metered attempt that is over. Where its runtime has reported more tokens than went through the meter, some
    /// requests went another way: then the report counts, and what they cost is not known. A runtime that estimates what a request may have used
    /// knows less than the meter does. Where a program has asked nothing, its cost is what the configuration says of such programs, and
    /// else not known.
    pub(super) fn metered_use(
        &self,
        run: RunIndex,
        reason: &Reason,
        reported: Option<(Usage, Cost)>,
    ) -> Option<(Usage, Cost)> {
        let live = self.runs.live(run).filter(|live| live.cost == CostKnowledge::Metered)?;
        let is_silent = reported.is_none_or(|(usage, _)| usage.reported() == 0);
        if !live.has_asked() && is_silent && !never_started(reason) {
            return Some(live.unasked());
        }
        let (usage, cost) =
            live.requests.as_ref().map(|requests| requests.charged()).unwrap_or_default();
        // Without a price a program's own word about its cost is all there is.
        let cost = match reported {
            Some((_, said)) if cost.unknown_runs > 0 && said.unknown_runs == 0 => said,
            _ => cost,
        };
        let beside = reported.filter(|(reported, _)| reported.reported() > usage.reported());
        Some(match beside {
            None => (usage, cost),
            Some((reported, _)) => (usage.at_least(reported.believed()), cost.cut_off()),
        })
    }

    /// Returns true if a run whose last request was more than it has left goes on once the operator has given more: its terms say so, and
    /// its session goes on where it was.
    pub(super) fn waits_for_budget(&self, live: &Live, ending: &Ending) -> bool {
        let was_held = |requests: &Requests| {
            requests.too_much.is_some() && requests.held.is_some_and(|(_, for_others)| !for_others)
        };
        let is_held = live.requests.as_deref().is_some_and(was_held);
        let is_capped = matches!(ending.reason, Reason::Budget { .. }) && is_held;
        let pauses = live.under.budget.on_cap() == OnCap::Pause;
        is_capped && pauses && live.resumes && live.stopping.is_none()
    }

    /// Returns true if a run that stands in line may not start before the operator has given more budget. It is held back until then.
    pub(super) fn waits_at_cap(&mut self, run: RunIndex) -> bool {
        let waits = self.at_cap.contains(&run);
        if waits {
            self.held_back.push(run);
        }
        waits
    }

    /// The answer to a request of a run says what is left of a quota of its account. Where that is nothing, none starts before the reset.
    pub(super) fn sees_wall(
        &mut self,
        run: RunIndex,
        window: Option<Arc<str>>,
        reset: WallReset,
        left: Option<u32>,
    ) {
        let until = match reset {
            WallReset::At(until) => until,
            WallReset::In(length) => self.now.plus(length),
        };
        if let Some(left) = left {
            return self.sees_quota(run, window.unwrap_or_default(), left, until);
        }
        let Some(live) = self.runs.live_mut(run) else { return };
        let account = live.account.clone();
        live.requests.get_or_insert_default().wall = Some((window.clone(), until));
        if let Some(account) = account {
            self.park(run, &account, window, until, Parking::Refused);
        }
    }

    /// Returns the reason of a failed run as the meter knows it: its last answer met the wall of a quota, or its program was told that a
    /// request was too much, and gave up.
    pub(super) fn gave_up_for(&self, run: RunIndex, ending: &Ending) -> Option<Reason> {
        if !matches!(ending.reason, Reason::ExitCode { .. } | Reason::RuntimeError { .. }) {
            return None;
        }
        let requests = self.runs.live(run)?.requests.as_ref()?;
        if let Some((window, until)) = &requests.wall {
            let (window, until) = (window.as_deref().map(str::to_owned), Some(*until));
            return Some(Reason::Quota { window, until });
        }
        let (unit, request) = requests.too_much?;
        Some(Reason::Budget { unit: unit.as_str().to_owned(), request })
    }

    /// Reserves, or refuses. Returns a request that has to wait.
    fn try_request(&mut self, ask: RequestAsk) -> Option<RequestAsk> {
        let verdict = match self.room_for(&ask) {
            Room::Later(unit) => {
                let requests = self.requests_of(ask.run);
                requests.waits_for = Some(unit);
                // What the run gives back to its pool may be enough: at the end of the step all that wait are tried again, in their order. The first
                // one of a run is on record.
                if requests.waiting.is_empty() {
                    self.hold_request(&ask, true);
                }
                return Some(ask);
            }
            Room::Now => {
                let micro_usd = ask.usd.map(MicroUsd::as_micros);
                let RequestAsk { run, request, model, tokens, is_shortened, .. } = ask;
                let too_much = self.requests_of(run).too_much.filter(|_| is_shortened);
                self.record(run, EventKind::RequestReserved { request, model, tokens, micro_usd });
                if let Some(open) = self.requests_of(run).open.get_mut(&request) {
                    open.instead_of = too_much;
                }
                self.answer_request(request, RequestVerdict::Granted);
                return None;
            }
            Room::Never(unit, shortage) => {
                let live = self.runs.live_mut(ask.run).expect("it runs");
                let pauses = ask.is_last && live.under.budget.on_cap() == OnCap::Pause;
                live.requests.get_or_insert_default().too_much = Some((unit, Some(shortage)));
                if pauses {
                    // It waits for the operator, and no longer for others.
                    self.requests_of(ask.run).waits_for = None;
                    self.hold_request(&ask, false);
                    return Some(ask);
                }
                RequestVerdict::TooMuch(Box::new(too_much(unit, shortage)))
            }
        };
        self.answer_request(ask.request, verdict);
        None
    }

    /// A request waits for room, which is recorded once.
    fn hold_request(&mut self, ask: &RequestAsk, for_others: bool) {
        let held = Some((ask.request, for_others));
        if std::mem::replace(&mut self.requests_of(ask.run).held, held) == held {
            return;
        }
        let RequestAsk { run, request, model, tokens, usd, .. } = ask.clone();
        let micro_usd = usd.map(MicroUsd::as_micros);
        self.record(run, EventKind::RequestHeld { request, model, tokens, micro_usd, for_others });
    }

    fn requests_mut(&mut self, run: RunIndex) -> Option<&mut Requests> {
        self.runs.live_mut(run)?.requests.as_deref_mut()
    }

    /// Takes the requests of a run that wait.
    fn take_waiting(&mut self, run: RunIndex) -> VecDeque<RequestAsk> {
        let requests = self.requests_mut(run);
        requests.map(|requests| std::mem::take(&mut requests.waiting)).unwrap_or_default()
    }

    /// Returns the requests of a run that works.
    fn requests_of(&mut self, run: RunIndex) -> &mut Requests {
        let live = self.runs.live_mut(run).expect("it runs");
        live.requests.get_or_insert_default()
    }

    fn room_for(&mut self, ask: &RequestAsk) -> Room {
        let id = self.id(ask.run);
        self.draws(ask.run, Unit::grant(|unit| Some(ask.amount(unit))));
        let most = self.runs.live(ask.run).map(|live| self.most(ask.run, live));
        let most = most.unwrap_or_default();
        let mut later = None;
        for unit in Unit::ALL {
            let Some(left) = unit.of(self.books.ledger.left(id)) else { continue };
            let amount = ask.amount(unit);
            if amount <= left {
                continue;
            }
            let most = unit.of(most);
            let at_most = self.books.ledger.once_others_are_over(id, unit, most);
            if u128::from(amount) <= at_most {
                later.get_or_insert(unit);
                continue;
            }
            // A piece has little of its pool by itself, and more is not given for less than the request needs.
            let left = left.max(u64::try_from(at_most).unwrap_or(u64::MAX));
            return Room::Never(unit, RequestShortage { bound: amount, left });
        }
        later.map_or(Room::Now, Room::Later)
    }

    fn settle_request(
        &mut self,
        run: RunIndex,
        request: u64,
        model: Arc<str>,
        ending: RequestEnding,
        usage: Usage,
        cost: Cost,
    ) {
        let event = EventKind::RequestSettled { request, model, ending, usage, cost };
        let applied = self.record(run, event);
        self.apply_notices(&applied.notices);
    }

    fn answer_request(&mut self, request: u64, verdict: RequestVerdict) {
        self.out.push(Effect::AnswerRequest { request, verdict });
    }
}

/// Returns the use of a run with that of one more of its requests.
pub(super) fn with_request(
    (usage, cost): (Usage, Cost),
    (more_usage, more_cost): (Usage, Cost),
) -> (Usage, Cost) {
    (usage + more_usage, cost.with_request(more_cost))
}

fn over() -> Refusal {
    Refusal::new(RefusalCode::CallerEnded, "the agent that sent it is over, or is to stop")
}

fn too_much(unit: Unit, RequestShortage { bound, left }: RequestShortage) -> Refusal {
    let [bound, left] = [bound, left].map(|amount| unit.show(amount));
    let message =
        format!("this request to the model may cost up to {bound}, and the agent has {left} left");
    Refusal::new(RefusalCode::BudgetExhausted, message).with_hint(
        "end with what you have; the operator can give more with `offshoot budget RUN --add`",
    )
}
