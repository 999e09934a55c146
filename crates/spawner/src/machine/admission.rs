//! Admission: policy is asked, and what it grants is reserved in the same step.

use std::collections::BTreeSet;
use std::sync::Arc;

use offshoot_config::built_in;
use offshoot_model::{
    Admitted, Cleanup, CostKnowledge, EventKind, OnNeedFailed, Origin, Particulars, Refusal,
    RefusalCode, Rules, RunId, Timestamp, bounded_request,
};
use offshoot_policy::budget::plausible_usd;
use offshoot_policy::prefix::PrefixId;
use offshoot_policy::{
    Admission, Caller, Fallback, LastChild, Load, RuntimeFacts, Terms, admit, open,
};
use offshoot_session_key::Segment;
use thin_vec::ThinVec;

use super::fallback::{Fallbacks, check_fallbacks};
use super::report::Allowance;
use super::run::{Body, Live, Run, RunClock, RunIndex, SlotState};
use super::slots::{Part, Position};
use super::{Effect, Machine, Opening, Spawn, caps};

/// A run that is being put into the tree.
pub(super) struct Entrant<'a> {
    pub(super) id: RunId,
    /// The admission of the run as it is recorded.
    pub(super) admitted: &'a Admitted,
    pub(super) parent: Option<RunIndex>,
    pub(super) admission: &'a Admission,
    pub(super) phase: SlotState,
    /// Facts of its runtime; none where it has none, or where that is not known any more.
    pub(super) facts: Option<&'a RuntimeFacts>,
    /// Other runtimes that may take over.
    pub(super) fallbacks: Option<&'a Arc<[Fallback]>>,
    /// The long prompt that it sends first.
    pub(super) prefix: Option<PrefixId>,
}

impl Machine {
    /// Puts the root into an empty tree. A root that runs something stands in line like any other run.
    ///
    /// # Errors
    ///
    /// As policy has it; the tree stays empty.
    pub(crate) fn open(
        &mut self,
        now: Timestamp,
        opening: Opening,
    ) -> Result<Vec<Effect>, Refusal> {
        self.now = now;
        let Opening { kind, run: id, agent, request, task, facts, fallbacks, plan } = opening;
        let admission = open(&self.config, &agent, &request, facts.as_deref())?;
        check_fallbacks(fallbacks.as_ref(), facts.as_deref(), &admission)?;
        let key = kind.key(&agent, &segment(id));
        let archive_after = self.config.root_settings(&agent).archive_after_minutes;
        let archive_after = archive_after.map_or(built_in::ARCHIVE_AFTER_MINUTES, |set| set.value);
        let archive_after_minutes = Some(archive_after).filter(|&minutes| minutes > 0);
        let admitted = Admitted {
            key,
            parent: None,
            agent,
            depth: 0,
            origin: Origin::Root,
            particulars: Particulars::of(&request, None),
            label: request.label,
            runtime: facts.as_ref().map(|facts| Arc::clone(&facts.name)),
            task,
            input: None,
            place: None,
            instead: None,
            needs: Vec::new(),
            on_need_failed: OnNeedFailed::Skip,
            rules: Some(Arc::new(admission.terms.rules())),
            cleanup: Cleanup::Keep,
            archive_after_minutes,
            grant: Arc::clone(&admission.grant),
            plan,
        };
        let root = self.admit(Entrant {
            id,
            admitted: &admitted,
            parent: None,
            admission: &admission,
            phase: if facts.is_some() { SlotState::Queued } else { SlotState::Holder },
            facts: facts.as_deref(),
            fallbacks: fallbacks.as_ref(),
            // No other run is like it.
            prefix: None,
        });
        self.record(root, EventKind::Admitted(Box::new(admitted)));
        self.record_host_bound();
        if self.is_in_line(root) {
            self.stand_in_line(root);
        }
        self.schedule();
        Ok(std::mem::take(&mut self.out))
    }

    /// A session asks for a child. Yes or no, there is exactly one answer.
    pub(super) fn spawn(&mut self, spawn: Spawn) {
        let Spawn { caller, run: id, request, task, input, place, instead, .. } = spawn;
        let Spawn { needs, on_need_failed, folder, origin, facts, fallbacks, reply, .. } = spawn;
        self.gives_sign(caller);
        self.shows_success(caller);
        let mut asked = self.ask_policy(self.now, caller, &request, origin, &facts);
        if asked.as_ref().is_err_and(|refusal| refusal.code == RefusalCode::BudgetExhausted)
            && self.draws_for_child(caller, &request)
        {
            asked = self.ask_policy(self.now, caller, &request, origin, &facts);
        }
        let fits = |admission: Admission| {
            check_fallbacks(fallbacks.as_ref(), Some(&facts), &admission).map(|()| admission)
        };
        let admission = match asked.and_then(fits) {
            Ok(admission) => admission,
            Err(refusal) => {
                self.refused(caller, &refusal);
                return self.out.push(Effect::Reply { reply, answer: Err(Box::new(refusal)) });
            }
        };
        let prefix = self.prefix_of(caller, &admission.agent, &request, &facts);
        let parent = self.runs.live_mut(caller).expect("a caller that is over is refused");
        let (agent, grant) = (admission.agent.clone(), Arc::clone(&admission.grant));
        let last = LastChild { agent, grant, named_tools: request.tools.is_some() };
        match &mut parent.last_child {
            Some(before) => **before = last,
            none => *none = Some(Box::new(last)),
        }
        let key = parent.key.child(&admission.agent, &segment(id));
        // Configured along the line of parents. The built-in value does not count.
        let configured = parent.terms.cleanup.as_ref().map(|wish| wish.value);
        let rules = other_rules(&parent.terms, &admission.terms);
        let kept_above = configured == Some(Cleanup::Keep) || self.runs[caller].keeps;
        let cleanup = match request.cleanup.or(configured) {
            Some(wish) if !kept_above => wish,
            _ => Cleanup::Keep,
        };
        let particulars = match origin {
            Origin::Agent => Particulars::of(&request, folder),
            // The rest is the same for all pieces, and stands in the root's plan.
            Origin::Root | Origin::Piece => Particulars::chosen(&request),
        };
        let admitted = Admitted {
            key,
            parent: Some(self.id(caller)),
            agent: admission.agent.clone(),
            depth: admission.depth,
            origin,
            label: request.label,
            runtime: Some(Arc::clone(&facts.name)),
            task,
            input,
            place,
            instead,
            needs,
            on_need_failed,
            particulars,
            grant: Arc::clone(&admission.grant),
            rules,
            cleanup,
            archive_after_minutes: None,
            plan: None,
        };
        let run = self.admit(Entrant {
            id,
            admitted: &admitted,
            parent: Some(caller),
            admission: &admission,
            phase: SlotState::Queued,
            facts: Some(&facts),
            fallbacks: fallbacks.as_ref(),
            prefix,
        });
        self.record(run, EventKind::Admitted(Box::new(admitted)));
        self.out.push(Effect::Reply { reply, answer: Ok((run, id)) });
        self.queued += 1;
        self.take_place_when_ready(run);
    }

    /// Puts a run into the tree, in a live step or as the record says: what it was granted is reserved, and everything that
    /// later steps want to know of it is there. It stands in no line yet.
    pub(super) fn admit(&mut self, entrant: Entrant<'_>) -> RunIndex {
        let Entrant { id, admitted, parent, admission, phase, facts, fallbacks, prefix } = entrant;
        let part = parent.map_or(Part::TREE, |parent| self.part_below(parent));
        let above = parent.map(|parent| &self.runs[parent]);
        let parent_lives = above.and_then(Run::live);
        let Admission { agent, depth, origin, terms, grant, lineage } = admission;
        let live = Live {
            key: admitted.key.clone(),
            origin: *origin,
            terms: Arc::clone(terms),
            under: Arc::clone(parent_lives.map_or(terms, |parent| &parent.terms)),
            lineage: Arc::clone(lineage),
            grant: Arc::clone(grant),
            last_child: None,
            clock: RunClock::default(),
            small_work: None,
            // A run that only holds pieces has no slot to wait for.
            started_at: (phase == SlotState::Holder).then_some(self.now),
            phase,
            idle_armed: None,
            live_children: BTreeSet::new(),
            waits: ThinVec::new(),
            watchers: ThinVec::new(),
            mail: None,
            takes_turns: facts.is_some_and(|facts| facts.turns),
            // A root that runs nothing itself reads no results: its owner follows its pieces, or waits.
            announces: *origin == Origin::Agent
                && parent_lives.is_some_and(|parent| parent.phase != SlotState::Holder),
            earlier_children: 0,
            earlier: ThinVec::new(),
            told: None,
            requests: None,
            cost: facts.map_or(CostKnowledge::Unknown, |facts| facts.cost),
            unasked_cost: facts.map_or(CostKnowledge::Unknown, |facts| facts.unasked_cost),
            costs_nothing: facts.is_some_and(RuntimeFacts::costs_nothing),
            attempt: 1,
            again_at: None,
            faults: 0,
            resumes: facts.is_some_and(|facts| facts.resumes),
            fallbacks: Fallbacks::of(fallbacks),
            memory: facts.map_or(0, |facts| facts.memory),
            account: facts.map(|facts| Arc::clone(&facts.account)),
            prefix,
            stopping: None,
            reports: Allowance::default(),
            tool_uses: Allowance::default(),
            backoff: None,
            streak: None,
            refusals: None,
            observations: None,
            cut_off: false,
            is_last_attempt: false,
        };
        let asked = admitted.particulars.as_ref().and_then(|particulars| particulars.cleanup);
        let keeps = above.is_some_and(|above| above.keeps) || asked == Some(Cleanup::Keep);
        self.books.reserve(id, above.map(|above| above.id), admission, self.now);
        if admission.grant.pooled.usd {
            let model =
                admitted.particulars.as_ref().and_then(|particulars| particulars.model.as_deref());
            let plausible = plausible_usd(&self.config, admitted.runtime.as_deref(), model);
            plausible.into_iter().for_each(|usd| self.books.ledger.expect(id, usd));
        }
        if parent.is_none() {
            self.root_request = bounded_request(lineage.task());
        }
        let run = self.insert(Run {
            id,
            agent: agent.clone(),
            parent,
            position: Position { part, depth: *depth },
            below: part,
            cleanup: admitted.cleanup,
            keeps,
            not_removed: false,
            children: ThinVec::new(),
            body: Body::Live(Box::new(live)),
        });
        self.note_needs(run, admitted.place, &admitted.needs, admitted.on_need_failed);
        if parent.is_none() {
            self.deadlines.age.go_on(self.now, self.now);
            if let Some(seconds) = terms.deadline_seconds() {
                self.set_deadline(run, seconds);
            }
        }
        run
    }

    /// The part in which the children of a run are counted. With its first child its own values begin to bind what is below
    /// it, where they are not what binds the run itself.
    fn part_below(&mut self, run: RunIndex) -> Part {
        let entry = &self.runs[run];
        let Some(live) = entry.live().filter(|_| entry.children.is_empty()) else {
            return entry.below;
        };
        let (own, here) = (Arc::clone(&live.terms), Arc::clone(&live.under));
        if caps(&own) != caps(&here) {
            let below = self.slots.add(entry.position.part, caps(&own));
            self.runs[run].below = below;
        }
        if let Some(seconds) = own.deadline_seconds()
            && here.deadline_seconds() != Some(seconds)
        {
            self.set_deadline(run, seconds);
        }
        self.runs[run].below
    }

    pub(super) fn ask_policy(
        &self,
        now: Timestamp,
        caller: RunIndex,
        request: &offshoot_model::SpawnRequest,
        origin: Origin,
        facts: &RuntimeFacts,
    ) -> Result<Admission, Refusal> {
        let entry = &self.runs[caller];
        let over =
            || Refusal::new(RefusalCode::CallerEnded, "this session is over and cannot spawn");
        let live = entry.live().ok_or_else(over)?;
        let about = Caller {
            run: entry.id,
            depth: entry.depth(),
            // A run that was asked to stop counts as over, and so does each run of a tree that is closing. What asks while
            // the run stands in line is left of an attempt that is over.
            over: self.closing || live.stopping.is_some() || live.phase == SlotState::Queued,
            out_of_time: self.is_out_of_time(caller),
            terms: &live.terms,
            under: &live.under,
            raised: self.raised(caller),
            grant: &live.grant,
            lineage: &live.lineage,
            live_children: u32::try_from(live.live_children.len()).expect("fewer than runs"),
            last_child: live.last_child.as_deref(),
        };
        let position = Position { part: entry.below, depth: entry.depth() + 1 };
        // Nothing stands in line where there is room, unless no run may start at all.
        let slot_free = self.slots.free_at(position) && (self.queue.is_empty() || !self.held);
        let slot_free = slot_free
            && self.pace_allows(&facts.account)
            && !self.account_slots.has_line(&facts.account)
            && !self.is_host_full();
        let load = Load { books: &self.books, now, slot_free, paused: self.paused };
        admit(&self.config, &about, &load, request, origin, facts)
    }
}

/// Returns the rules for the spawns of a child, where they differ from those of its parent.
fn other_rules(parent: &Arc<Terms>, child: &Arc<Terms>) -> Option<Arc<Rules>> {
    if Arc::ptr_eq(parent, child) {
        return None;
    }
    let rules = child.rules();
    (rules != parent.rules()).then(|| Arc::new(rules))
}

/// A session's own part of its key is its run's id, so that either finds the other.
fn segment(run: RunId) -> Segment {
    let mut text = [0; RunId::TEXT_BYTES];
    Segment::parse(run.encode(&mut text)).expect("a UUID is a segment")
}
