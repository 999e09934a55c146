//! Admission: policy is asked, and what it grants is reserved in the same step.

use std::sync::Arc;

use offshoot_config::built_in;
use offshoot_model::{
    Admitted, Cleanup, EventKind, Origin, Particulars, Refusal, RefusalCode, Rules, RunId,
    SessionKey, Timestamp,
};
use offshoot_policy::{Admission, Caller, Load, RuntimeFacts, Terms, admit, open};
use offshoot_session_key::Segment;

use super::report::Allowance;
use super::run::{Live, Phase, RunClock, RunIndex};
use super::timer::Due;
use super::{Effect, Machine, Opening, Spawn};

impl Machine {
    /// Puts the root into an empty tree. A root that runs something stands in line like anybody else.
    ///
    /// # Errors
    ///
    /// As policy has it; the tree stays empty.
    pub(crate) fn open(
        &mut self,
        now: Timestamp,
        opening: Opening,
        out: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        let Opening { kind, run: id, agent, request, task, facts, plan } = opening;
        let admission = open(&self.config, &agent, &request, facts.as_deref())?;
        self.books.reserve(id, None, &admission, now);
        if let Some(seconds) = admission.terms.deadline_seconds() {
            self.timers.arm(now.plus(std::time::Duration::from_secs(seconds)), Due::Deadline);
        }
        let key = kind.key(&agent, &segment(id));
        let particulars = Particulars::of(&request, None);
        let phase = if facts.is_some() { Phase::Queued } else { Phase::Holder };
        let mut holder = live(key.clone(), &admission, phase);
        holder.takes_turns = facts.as_ref().is_some_and(|facts| facts.turns);
        holder.started_at = facts.is_none().then_some(now);
        let root = self.insert(id, None, 0, holder);
        let archive_after = self.config.root_settings(&agent).archive_after_minutes;
        let archive_after = archive_after.map_or(built_in::ARCHIVE_AFTER_MINUTES, |set| set.value);
        let archive_after_minutes = Some(archive_after).filter(|&minutes| minutes > 0);
        let admitted = Admitted {
            key,
            parent: None,
            agent,
            depth: 0,
            origin: Origin::Root,
            label: request.label,
            runtime: facts.map(|facts| Arc::clone(&facts.name)),
            task,
            input: None,
            place: None,
            particulars,
            rules: Some(Arc::new(admission.terms.rules())),
            cleanup: Cleanup::Keep,
            archive_after_minutes,
            grant: admission.grant,
            plan,
        };
        self.record(now, root, EventKind::Admitted(Box::new(admitted)), out);
        if self.runs[root.get()].status() == offshoot_model::RunStatus::Queued {
            self.stand_in_line(root);
        }
        self.schedule(now, out);
        Ok(())
    }

    /// A session asks for a child. Yes or no, there is exactly one answer.
    pub(super) fn spawn(&mut self, now: Timestamp, spawn: Spawn, out: &mut Vec<Effect>) {
        let Spawn { caller, run: id, request, task, input, place, folder, origin, facts, reply } =
            spawn;
        self.wake(now, caller, out);
        if let Some(caller) = self.runs[caller.get()].live_mut() {
            caller.clock.sign(now);
        }
        let admission = match self.ask_policy(now, caller, &request, origin, &facts) {
            Ok(admission) => admission,
            Err(refusal) => {
                self.refused(now, caller, &refusal, out);
                return out.push(Effect::Reply { reply, answer: Err(Box::new(refusal)) });
            }
        };
        self.books.reserve(id, Some(self.id(caller)), &admission, now);
        let parent = self.runs[caller.get()].live_mut().expect("a caller that is over is refused");
        parent.last_grant = Some(Arc::clone(&admission.grant));
        let key = parent.key.child(&admission.agent, &segment(id));
        let depth = admission.depth;
        let configured = configured(&parent.terms);
        let rules = other_rules(&parent.terms, &admission.terms);
        let mut child = live(key.clone(), &admission, Phase::Queued);
        child.takes_turns = facts.turns;
        child.resumes = facts.resumes;
        // A root that runs nothing itself reads no results: its owner follows its pieces, or waits.
        child.announces = origin == Origin::Agent && parent.phase != Phase::Holder;
        let run = self.insert(id, Some(caller), depth, child);
        let kept_above = configured == Some(Cleanup::Keep) || self.runs[caller.get()].keeps;
        let cleanup = match request.cleanup.or(configured) {
            Some(wish) if !kept_above => wish,
            _ => Cleanup::Keep,
        };
        self.runs[run.get()].cleanup = cleanup;
        self.runs[run.get()].keeps = keeps(self.runs[caller.get()].keeps, request.cleanup);
        // What all pieces have in common stands in the root's plan.
        let particulars = match origin {
            Origin::Agent => Particulars::of(&request, folder),
            Origin::Root | Origin::Piece => None,
        };
        let admitted = Admitted {
            key,
            parent: Some(self.id(caller)),
            agent: admission.agent,
            depth,
            origin,
            label: request.label,
            runtime: Some(Arc::clone(&facts.name)),
            task,
            input,
            place,
            particulars,
            grant: admission.grant,
            rules,
            cleanup,
            archive_after_minutes: None,
            plan: None,
        };
        self.record(now, run, EventKind::Admitted(Box::new(admitted)), out);
        out.push(Effect::Reply { reply, answer: Ok((run, id)) });
        self.stand_in_line(run);
    }

    pub(super) fn ask_policy(
        &self,
        now: Timestamp,
        caller: RunIndex,
        request: &offshoot_model::SpawnRequest,
        origin: Origin,
        facts: &RuntimeFacts,
    ) -> Result<Admission, Refusal> {
        let entry = &self.runs[caller.get()];
        let over =
            || Refusal::new(RefusalCode::CallerEnded, "this session is over and cannot spawn");
        let live = entry.live().ok_or_else(over)?;
        let about = Caller {
            run: entry.id,
            depth: entry.depth,
            // Somebody who was asked to stop is as good as over, and so is everybody in a tree that is closing.
            over: self.closing || live.stopping.is_some(),
            terms: &live.terms,
            grant: &live.grant,
            lineage: &live.lineage,
            live_children: live.live_children,
            last_grant: live.last_grant.as_ref(),
        };
        let slot_free = self.slots.free_at(entry.depth + 1) && self.queued() == 0;
        let load = Load { books: &self.books, now, slot_free, paused: self.paused };
        admit(&self.config, &about, &load, request, origin, facts)
    }
}

pub(super) fn live(key: SessionKey, admission: &Admission, phase: Phase) -> Live {
    Live {
        key,
        agent: admission.agent.clone(),
        terms: Arc::clone(&admission.terms),
        lineage: Arc::clone(&admission.lineage),
        grant: Arc::clone(&admission.grant),
        last_grant: None,
        phase,
        clock: RunClock::default(),
        started_at: None,
        idle_armed: None,
        live_children: 0,
        waits: Vec::new(),
        watchers: Vec::new(),
        mail: None,
        takes_turns: false,
        announces: false,
        earlier_children: 0,
        earlier: None,
        attempt: 1,
        faults: 0,
        resumes: false,
        stopping: None,
        reports: Allowance::default(),
        refusals: None,
        cut_off: false,
    }
}

/// Whether nothing below a run goes: somebody asked to keep it, or one above it.
pub(super) fn keeps(above: bool, asked: Option<Cleanup>) -> bool {
    above || asked == Some(Cleanup::Keep)
}

/// What somebody has configured for the chain; what is built in is nobody's wish.
fn configured(terms: &Terms) -> Option<Cleanup> {
    terms.cleanup.as_ref().map(|wish| match wish.value {
        offshoot_config::Cleanup::Keep => Cleanup::Keep,
        offshoot_config::Cleanup::Delete => Cleanup::Delete,
    })
}

/// What a child's spawns are held to, where that is not what its parent's are held to.
fn other_rules(parent: &Arc<Terms>, child: &Arc<Terms>) -> Option<Arc<Rules>> {
    if Arc::ptr_eq(parent, child) {
        return None;
    }
    let rules = child.rules();
    (rules != parent.rules()).then(|| Arc::new(rules))
}

/// A session's own part of its key is its run's id, so that either finds the other.
fn segment(run: RunId) -> Segment {
    Segment::parse(&run.to_string()).expect("a UUID is a segment")
}
