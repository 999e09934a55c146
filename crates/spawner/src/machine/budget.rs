//! Spending: what runs report is charged up the tree, and a run that reaches its limit is stopped.

use offshoot_model::{
    BudgetGrant, BudgetRequest, CancelledBy, Cost, CostKnowledge, Ending, EventKind, MicroUsd,
    Origin, Reason, Refusal, RefusalCode, SpawnRequest, Timestamp, Usage,
};
use offshoot_policy::RuntimeFacts;
use offshoot_policy::budget::{Claim, Mark, Notice, Unit, parts};

use super::run::{Live, RunIndex};
use super::{Effect, Machine, Reach};

/// A child that is asked for together with others.
pub(crate) type Wanted<'a> = (&'a mut SpawnRequest, Origin, &'a RuntimeFacts);

impl Machine {
    /// Divides what a caller has left, less the part that it keeps, by weight among children that are asked for together.
    /// What some of them ask for by themselves goes off first; those that cost nothing and cannot pass anything on need
    /// none. The caller asks for all of them before anything else happens.
    pub(crate) fn divide(&self, now: Timestamp, caller: RunIndex, mut wanted: Vec<Wanted<'_>>) {
        let left = self.books.ledger.left(self.id(caller));
        let Some(live) = self.runs.live(caller) else { return };
        if left.usd.is_none() {
            self.divide_default(now, caller, live, &mut wanted);
        }
        if left == BudgetGrant::default() {
            return;
        }
        // A weight says how much of the whole each is worth, which a pool would not ask.
        let weighted = wanted.iter().any(|(request, ..)| request.weight.is_some());
        let pools = live.terms.pools_pieces() && !weighted;
        let spends = |(request, origin, facts): &Wanted<'_>| {
            if pools && *origin == Origin::Piece {
                return false;
            }
            let passes_on = || self.ask_policy(now, caller, request, *origin, facts);
            facts.cost != CostKnowledge::None
                || passes_on().is_ok_and(|child| child.grant.may_spawn)
        };
        let claim = |it: &Wanted<'_>| Claim {
            own: own_budget(it.0),
            weight: it.0.weight,
            spends: spends(it),
        };
        let claims: Vec<Claim> = wanted.iter().map(claim).collect();
        hand_out(&parts(left, live.terms.budget.keep(), &claims), &mut wanted);
    }

    /// Divides what is left of the dollars that the tree may cost by default, among the children that would get a part of them.
    fn divide_default(
        &self,
        now: Timestamp,
        caller: RunIndex,
        live: &Live,
        wanted: &mut [Wanted<'_>],
    ) {
        let default = |(request, origin, facts): &Wanted<'_>| {
            // Most runtimes have none, and policy need not be asked.
            let asks_for_usd = request.budget.is_some_and(|budget| budget.usd.is_some());
            facts.default_of_paid().or(facts.default_usd.filter(|_| asks_for_usd))?;
            let admitted = self.ask_policy(now, caller, request, *origin, facts);
            admitted.ok().and_then(|child| child.grant.default_usd)
        };
        let defaults: Vec<Option<MicroUsd>> = wanted.iter().map(default).collect();
        let Some(most) = defaults.iter().flatten().min() else { return };
        let usd = Some(MicroUsd::from_micros(self.books.ledger.left_by_default(*most)));
        let claim = |((request, ..), default): (&Wanted<'_>, &Option<MicroUsd>)| match default {
            None => Claim::default(),
            Some(_) => Claim { own: own_budget(request), weight: request.weight, spends: true },
        };
        let claims: Vec<Claim> = wanted.iter().zip(&defaults).map(claim).collect();
        let left = BudgetGrant { tokens: None, usd };
        hand_out(&parts(left, live.terms.budget.keep(), &claims), wanted);
    }

    /// A run reports what it has used so far.
    pub(super) fn charge(&mut self, run: RunIndex, usage: Usage, cost: Cost) {
        let applied = self.record(run, EventKind::Used { usage, cost });
        self.apply_notices(&applied.notices);
    }

    /// Checks that the run has a budget that can be raised.
    ///
    /// # Errors
    ///
    /// Fails if the run is over or is being stopped, has no budget in a unit, nothing would be added, or the budget of the tree would be
    /// more than a ceiling of the configuration allows.
    pub(crate) fn may_raise(&self, run: RunIndex, more: BudgetGrant) -> Result<(), Refusal> {
        let id = self.id(run);
        let Some(live) = self.runs.live(run) else {
            return Err(Refusal::invalid("run", format!("the run {id} is over")).with_hint(
                "a tree that is over is given more when it goes on: `offshoot resume RUN --budget-usd USD`",
            ));
        };
        if let Some(reason) = &live.stopping {
            let message = format!("the run {id} is being stopped: {reason}");
            return Err(Refusal::invalid("run", message));
        }
        let wanted = |unit: &Unit| unit.of(more).is_some_and(|amount| amount > 0);
        if !Unit::ALL.iter().any(wanted) {
            return Err(Refusal::invalid("add", "nothing would be added")
                .with_hint("name an amount above zero"));
        }
        match Unit::ALL
            .into_iter()
            .filter(wanted)
            .find(|&unit| !self.books.ledger.is_bounded(id, unit))
        {
            Some(unit) => {
                let message = format!("no budget of {} bounds the run {id}", unit.as_str());
                Err(Refusal::invalid("add", message).with_hint(
                    "a budget is set when the tree begins: --budget-usd or --budget-tokens",
                ))
            }
            None => self.is_below_ceiling(more),
        }
    }

    /// Checks that the budget of the tree, with this more, is no more than the configuration allows: all budgets above a run are raised with
    /// its own.
    fn is_below_ceiling(&self, more: BudgetGrant) -> Result<(), Refusal> {
        let Some(live) = self.runs.live(RunIndex::ROOT) else { return Ok(()) };
        let most = self.most(RunIndex::ROOT, live);
        let usd = self.config.ceiling_usd().map(|usd| (usd.value.as_micros(), &usd.origin));
        let tokens = self.config.ceiling_tokens().map(|tokens| (tokens.value, &tokens.origin));
        for (unit, ceiling) in [(Unit::Usd, usd), (Unit::Tokens, tokens)] {
            let (Some((ceiling, origin)), Some(had)) = (ceiling, unit.of(most)) else { continue };
            let more = unit.of(more).unwrap_or(0);
            if more == 0 || had.saturating_add(more) <= ceiling {
                continue;
            }
            let [had, left] = [had, ceiling.saturating_sub(had)].map(|amount| unit.show(amount));
            let key = unit.as_str();
            let message = format!(
                "the budget of the tree is {had}, and budget.{key} of [ceiling] ({origin}) leaves {left} to add"
            );
            return Err(Refusal::new(RefusalCode::BudgetExhausted, message)
                .with_hint("add no more than that; a ceiling that is raised holds for trees that are opened or resumed later"));
        }
        Ok(())
    }

    /// Adds to a budget and to all above it.
    pub(super) fn raise(&mut self, run: RunIndex, more: BudgetGrant) {
        let [tokens, micro_usd] = Unit::ALL.map(|unit| unit.of(more).unwrap_or(0));
        self.record(run, EventKind::BudgetRaised { tokens, micro_usd });
        self.reconsider();
        self.out.push(Effect::Recorded { at: self.now });
    }

    /// Returns the amounts that were added, since the tree began, to the budget that the terms of a run say: to its own, or to that
    /// of the run above from which its terms have it.
    pub(super) fn raised(&self, run: RunIndex) -> BudgetGrant {
        let raised = |unit: Unit| {
            let mut at = run;
            while let entry = &self.runs[at]
                && let (Some(parent), Some(live)) = (entry.parent, entry.live())
                && unit.of(live.terms.budget()) == unit.of(live.under.budget())
            {
                at = parent;
            }
            self.books.ledger.added(self.id(at), unit)
        };
        Unit::grant(|unit| Some(raised(unit)))
    }

    /// Returns the most that a run that lives may ever have by its terms; none in a unit in which they say nothing.
    pub(super) fn most(&self, run: RunIndex, live: &Live) -> BudgetGrant {
        let (own, raised) = (live.terms.budget(), self.raised(run));
        Unit::grant(|unit| Some(unit.of(own)?.saturating_add(unit.of(raised)?)))
    }

    /// Records what a run that ends has used beyond its reservation.
    pub(super) fn record_overrun(&mut self, run: RunIndex, ending: &Ending) {
        let (tokens, usd) = self.books.ledger.overrun(self.id(run), ending);
        let micro_usd = usd.as_micros();
        if tokens > 0 || micro_usd > 0 {
            self.record(run, EventKind::Overrun { tokens, micro_usd });
        }
    }

    /// Tells who is near its limit, and stops who has reached it together with what is below.
    pub(super) fn apply_notices(&mut self, notices: &[Notice]) {
        for notice in notices {
            let Some(run) = self.find(notice.run) else { continue };
            if self.runs.live(run).is_none() {
                continue;
            }
            if self.draws_more(run, *notice) {
                continue;
            }
            match notice.mark {
                Mark::Near => drop(self.record(run, EventKind::BudgetNotice)),
                Mark::Limit => {
                    self.cancel(run, Reach::Below, CancelledBy::Budget);
                    let unit = notice.unit.as_str().to_owned();
                    self.stop(run, Reason::Budget { unit, request: None });
                }
            }
        }
    }
}

/// Returns what a request asks for by itself.
pub(super) fn own_budget(request: &SpawnRequest) -> BudgetGrant {
    let BudgetRequest { tokens, usd } = request.budget.unwrap_or_default();
    BudgetGrant { tokens, usd }
}

/// Puts their parts of a budget into requests, where they have one.
fn hand_out(parts: &[BudgetGrant], wanted: &mut [Wanted<'_>]) {
    for ((request, ..), BudgetGrant { tokens, usd }) in wanted.iter_mut().zip(parts) {
        if tokens.is_some() || usd.is_some() {
            let budget = request.budget.get_or_insert_default();
            (budget.tokens, budget.usd) = (tokens.or(budget.tokens), usd.or(budget.usd));
        }
    }
}
