//! A tree of which a test says at which millisecond things happen.

use std::sync::Arc;

use offshoot_model::{
    Admitted, AgentId, Cleanup, Cost, Ending, Event, EventKind, Grant, OnNeedFailed, Origin,
    Payload, Reason, RootId, Rules, RunId, SessionKey, Timestamp,
};

/// The events of one tree.
#[derive(Clone, Debug, Default)]
pub struct Timed {
    /// The events so far.
    pub events: Vec<Event>,
    admitted: u8,
}

impl Timed {
    /// A tree that runs at most so many at once, and its root. A root without a runtime only holds pieces.
    pub fn tree(max_concurrent: u32, runtime: Option<&str>) -> (Self, RunId) {
        Self::under(Rules { max_concurrent, max_spawns: 1000, ..Rules::default() }, runtime)
    }

    /// A tree under these rules, and its root.
    pub fn under(rules: Rules, runtime: Option<&str>) -> (Self, RunId) {
        let mut timed = Self::default();
        let root = timed.admit(0, None, "main", |admitted| {
            admitted.origin = Origin::Root;
            admitted.runtime = runtime.map(Into::into);
            admitted.rules = Some(Arc::new(rules));
        });
        (timed, root)
    }

    /// Admits a run below another.
    pub fn child(&mut self, ms: u64, parent: RunId, agent: &str) -> RunId {
        self.admit(ms, Some(parent), agent, |_| {})
    }

    /// Admits a run that is not like the others.
    pub fn admit(
        &mut self,
        ms: u64,
        parent: Option<RunId>,
        agent: &str,
        change: impl FnOnce(&mut Admitted),
    ) -> RunId {
        let run = super::scenario::run(self.admitted);
        self.admitted += 1;
        let above = parent.and_then(|parent| {
            self.events.iter().find_map(|event| match &event.kind {
                EventKind::Admitted(admitted) if event.run == parent => Some(admitted),
                _ => None,
            })
        });
        let (key, depth) = match above {
            None => (format!("agent:{agent}:run:{run}"), 0),
            Some(above) if above.depth == 0 => (format!("agent:{agent}:subagent:{run}"), 1),
            Some(above) => (format!("{}:sub:{run}", above.key), above.depth + 1),
        };
        let mut admitted = Admitted {
            key: SessionKey::parse(&key).expect("a key"),
            parent,
            agent: AgentId::parse(agent).expect("an agent"),
            depth,
            origin: Origin::Agent,
            label: None,
            runtime: Some("exec".into()),
            task: Payload::text("count the words"),
            input: None,
            place: None,
            instead: None,
            needs: Vec::new(),
            on_need_failed: OnNeedFailed::Skip,
            particulars: None,
            grant: Arc::new(Grant::unbounded()),
            rules: None,
            cleanup: Cleanup::Keep,
            archive_after_minutes: None,
            plan: None,
        };
        change(&mut admitted);
        self.say(ms, run, EventKind::Admitted(Box::new(admitted)));
        run
    }

    /// Adds an event.
    pub fn say(&mut self, ms: u64, run: RunId, kind: EventKind) {
        let root = RootId::new(self.events.first().map_or(run, |first| first.run));
        let (seq, at) = (self.events.len() as u64 + 1, Timestamp::from_micros(ms * 1000));
        self.events.push(Event { root, seq, at, run, kind });
    }

    /// The run has a slot.
    pub fn start(&mut self, ms: u64, run: RunId) {
        self.say(ms, run, EventKind::Starting);
    }

    /// The run is to have a second attempt: after this end of the first, or after its supervisor was killed.
    pub fn again(&mut self, ms: u64, run: RunId, after: Option<Reason>, wait_ms: Option<u64>) {
        let after = after.map(Box::new);
        let kind =
            EventKind::Resumed { attempt: 2, continues: false, after, wait_ms, changes: None };
        self.say(ms, run, kind);
    }

    /// The run has completed.
    pub fn complete(&mut self, ms: u64, run: RunId) {
        self.end(ms, run, Reason::Completed { exit_code: Some(0) }, Cost::NONE);
    }

    /// The run is over.
    pub fn end(&mut self, ms: u64, run: RunId, reason: Reason, cost: Cost) {
        let ending = Ending { cost, ..Ending::of(reason) };
        self.say(ms, run, EventKind::Ended(Box::new(ending)));
    }
}
