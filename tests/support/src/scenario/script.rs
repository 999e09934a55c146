//! Writing events down with the numbers and moments they need.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use offshoot_model::{
    Admitted, AgentId, BudgetGrant, Cleanup, DeliveryId, Ending, Event, EventClass, EventKind,
    Grant, InputRange, OnNeedFailed, Origin, Payload, ProcessIdentity, Rights, RootId, Rules,
    RunId, SessionKey, Timestamp,
};

use super::{NOON, json, numbered};

/// Writes events with the numbers and moments they need.
#[derive(Default)]
pub(super) struct Script {
    pub(super) events: Vec<Event>,
    admitted: u32,
    processes: u32,
    root: Option<RootId>,
    seq: u64,
    elapsed: Duration,
    /// The reservation of the run that is admitted next.
    pub(super) budget: BudgetGrant,
}

impl Script {
    pub(super) fn after(&mut self, milliseconds: u64) -> &mut Self {
        self.elapsed += Duration::from_millis(milliseconds);
        self
    }

    pub(super) fn say(&mut self, run: RunId, kind: EventKind) {
        if kind.class() == EventClass::Kept {
            self.seq += 1;
        }
        let root = self.root.expect("a root comes first");
        let at = Timestamp::from_micros(NOON).plus(self.elapsed);
        self.events.push(Event { root, seq: self.seq, at, run, kind });
    }

    pub(super) fn root(&mut self, agent: &str, label: &str, runtime: Option<&str>) -> RunId {
        let run = numbered(self.admitted);
        (self.root, self.seq) = (Some(RootId::new(run)), 0);
        let key = format!("agent:{agent}:run:{run}");
        let plan = json("{\"split\":\"files\"}");
        let runtime = runtime.map(Arc::from);
        self.admit(None, &key, agent, |admitted| {
            admitted.origin = Origin::Root;
            admitted.label = Some(label.into());
            admitted.runtime = runtime;
            admitted.plan = Some(plan);
        })
    }

    pub(super) fn piece(&mut self, parent: RunId, name: &str) -> RunId {
        let path = PathBuf::from(format!("/data/{name}"));
        let input =
            InputRange { path: Arc::new(path), offset: 0, length: 4096, header: 0, hash: None };
        let key = format!("agent:main:subagent:{}", numbered(self.admitted));
        self.admit(Some(parent), &key, "main", |admitted| {
            admitted.origin = Origin::Piece;
            admitted.label = Some(name.into());
            admitted.input = Some(input);
        })
    }

    pub(super) fn child(&mut self, parent: RunId, agent: &str, label: Option<&str>) -> RunId {
        let key = match self.key(parent) {
            key if key.is_subagent() => format!("{key}:sub:{}", numbered(self.admitted)),
            _ => format!("agent:{agent}:subagent:{}", numbered(self.admitted)),
        };
        let label = label.map(Arc::from);
        self.admit(Some(parent), &key, agent, |admitted| admitted.label = label)
    }

    /// What was admitted last is to be deleted once its answer was handed over.
    pub(super) fn is_to_go(&mut self, run: RunId) {
        match self.events.last_mut() {
            Some(Event { run: last, kind: EventKind::Admitted(admitted), .. }) if *last == run => {
                admitted.cleanup = Cleanup::Delete;
            }
            other => panic!("{run} was not admitted last, but {other:?}"),
        }
    }

    /// A piece has this place, which another run had before.
    pub(super) fn placed(&mut self, piece: RunId, place: u32, instead: Option<RunId>) {
        let admitted = self.events.iter_mut().find_map(|event| match &mut event.kind {
            EventKind::Admitted(admitted) if event.run == piece => Some(admitted),
            _ => None,
        });
        let admitted = admitted.expect("the piece was not admitted");
        (admitted.place, admitted.instead) = (Some(place), instead);
    }

    fn admit(
        &mut self,
        parent: Option<RunId>,
        key: &str,
        agent: &str,
        change: impl FnOnce(&mut Admitted),
    ) -> RunId {
        let run = numbered(self.admitted);
        self.admitted += 1;
        let key = SessionKey::parse(key).expect("a key");
        let budget = self.budget;
        let mut admitted = Admitted {
            depth: key.depth() as u32,
            key,
            parent,
            agent: AgentId::parse(agent).expect("an agent"),
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
            grant: Arc::new(grant(parent.is_some(), budget)),
            rules: parent.is_none().then(|| Arc::new(rules())),
            cleanup: Cleanup::Keep,
            archive_after_minutes: None,
            plan: None,
        };
        change(&mut admitted);
        self.say(run, EventKind::Admitted(Box::new(admitted)));
        run
    }

    pub(super) fn start(&mut self, run: RunId) {
        self.say(run, EventKind::Starting);
        self.processes += 1;
        let process = ProcessIdentity::new(4000 + self.processes, 123_456);
        self.say(run, EventKind::Started { process: Some(process) });
    }

    pub(super) fn end(&mut self, run: RunId, mut ending: Ending) {
        // An earlier attempt does not count.
        let started = self.events.iter().rev().find_map(|event| match event.kind {
            EventKind::Starting if event.run == run => Some(event.at),
            _ => None,
        });
        let now = Timestamp::from_micros(NOON).plus(self.elapsed);
        ending.execution_time_ms = started.map_or(0, |at| now.since(at).as_millis() as u64);
        self.say(run, EventKind::Ended(Box::new(ending)));
    }

    pub(super) fn deliver(&mut self, run: RunId, redelivered: bool) {
        let delivery = DeliveryId::new(&self.key(run), run);
        self.say(run, EventKind::Delivered { delivery, redelivered });
    }

    pub(super) fn undelivered(&mut self, run: RunId) {
        let delivery = DeliveryId::new(&self.key(run), run);
        self.say(run, EventKind::Undelivered { delivery });
    }

    fn key(&self, run: RunId) -> SessionKey {
        let found = self.events.iter().find_map(|event| match &event.kind {
            EventKind::Admitted(admitted) if event.run == run => Some(admitted.key.clone()),
            _ => None,
        });
        found.expect("the run was not admitted")
    }
}

/// The grant of a run; below a root it lacks the rights that only roots have.
fn grant(is_below: bool, budget: BudgetGrant) -> Grant {
    let roots_alone = [
        "agents_list",
        "cron",
        "gateway",
        "memory_get",
        "memory_search",
        "session_status",
        "whatsapp_login",
    ];
    let deny = roots_alone.into_iter().filter(|_| is_below).map(str::to_owned).collect();
    let tools = Rights { allow: None, deny };
    Grant {
        run_timeout_seconds: 65,
        max_depth: 3,
        tools: tools.into(),
        budget,
        ..Grant::unbounded()
    }
}

fn rules() -> Rules {
    Rules { max_concurrent: 4, max_spawns: 100, ..Rules::default() }
}
