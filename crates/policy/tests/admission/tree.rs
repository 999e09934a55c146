//! A tree as its owner keeps it, as far as admission is concerned.

use std::sync::Arc;
use std::time::Duration;

use offshoot_config::{AgentId, Config, Format, Loader, Source, SourceKind};
use offshoot_model::{
    Account, BudgetGrant, BudgetRequest, CostKnowledge, MicroUsd, Origin, Refusal, Rights, RunId,
    SpawnRequest, Timestamp,
};
use offshoot_policy::budget::Unit;
use offshoot_policy::{
    Admission, Books, Caller, LastChild, Load, RuntimeFacts, Terms, admit, open,
};

/// Sessions by number; the root is 0.
pub(crate) struct Tree {
    pub(crate) config: Config,
    pub(crate) books: Books,
    pub(crate) sessions: Vec<Session>,
    pub(crate) now: Timestamp,
    pub(crate) slot_free: bool,
    pub(crate) paused: bool,
    pub(crate) runtime: RuntimeFacts,
}

pub(crate) struct Session {
    pub(crate) run: RunId,
    pub(crate) admission: Admission,
    pub(crate) over: bool,
    pub(crate) out_of_time: bool,
    pub(crate) under: Arc<Terms>,
    pub(crate) live_children: u32,
    named_tools: bool,
    /// The number of its last child.
    last_child: Option<usize>,
}

impl Session {
    fn of(run: RunId, admission: Admission, under: &Arc<Terms>) -> Self {
        let under = Arc::clone(under);
        Self {
            run,
            admission,
            over: false,
            out_of_time: false,
            under,
            live_children: 0,
            named_tools: false,
            last_child: None,
        }
    }
}

pub(crate) fn agent(id: &str) -> AgentId {
    AgentId::parse(id).expect("the text is no id")
}

pub(crate) fn run(number: usize) -> RunId {
    let mut bytes = [0; 16];
    bytes[8..].copy_from_slice(&(number as u64).to_be_bytes());
    RunId::from_bytes(bytes)
}

pub(crate) fn at(seconds: u64) -> Timestamp {
    Timestamp::EPOCH.plus(Duration::from_secs(seconds))
}

/// Configuration text of the user, in TOML.
pub(crate) fn loader(text: &str) -> Loader {
    Loader::new().file(Source {
        kind: SourceKind::User,
        path: "/u/config.toml".into(),
        text: text.to_owned(),
        format: Format::Toml,
    })
}

pub(crate) fn config(text: &str) -> Config {
    loader(text).load().expect("the configuration of a test is right")
}

pub(crate) fn rights(allow: Option<&[&str]>, deny: &[&str]) -> Rights {
    let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    Rights { allow: allow.map(set), deny: set(deny) }
}

/// A request for an agent, each with a task of its own unless the test says otherwise.
pub(crate) fn ask(target: &str) -> SpawnRequest {
    SpawnRequest {
        task: format!("work for {target}").into(),
        agent: Some(agent(target)),
        ..SpawnRequest::default()
    }
}

pub(crate) fn tokens(tokens: u64) -> Option<BudgetRequest> {
    Some(BudgetRequest { tokens: Some(tokens), usd: None })
}

pub(crate) fn usd(micros: u64) -> Option<BudgetRequest> {
    Some(BudgetRequest { tokens: None, usd: Some(MicroUsd::from_micros(micros)) })
}

/// A paid runtime that reports what it costs and withholds any right.
pub(crate) fn paid(cost: CostKnowledge) -> RuntimeFacts {
    let account = Arc::new(Account::of_runtime("claude"));
    let name = "claude".into();
    RuntimeFacts {
        name,
        cost,
        unasked_cost: CostKnowledge::None,
        default_usd: None,
        is_free: false,
        enforces: None,
        turns: true,
        resumes: true,
        memory: 600 << 20,
        own_prompt: None,
        inline_bytes: 0,
        account,
        others: Arc::default(),
    }
}

impl Tree {
    /// A tree whose root runs `main`.
    pub(crate) fn new(text: &str) -> Self {
        Self::open(config(text), "main", paid(CostKnowledge::Reported))
            .expect("the root of a test is admitted")
    }

    pub(crate) fn open(config: Config, root: &str, runtime: RuntimeFacts) -> Result<Self, Refusal> {
        let request = SpawnRequest { task: "the whole".into(), ..SpawnRequest::default() };
        let admission = open(&config, &agent(root), &request, Some(&runtime))?;
        let mut books = Books::default();
        books.reserve(run(0), None, &admission, at(0));
        let terms = Arc::clone(&admission.terms);
        let root = Session::of(run(0), admission, &terms);
        Ok(Self {
            config,
            books,
            sessions: vec![root],
            now: at(0),
            slot_free: true,
            paused: false,
            runtime,
        })
    }

    /// Asks, and changes nothing.
    pub(crate) fn ask(
        &self,
        caller: usize,
        request: &SpawnRequest,
        origin: Origin,
    ) -> Result<Admission, Refusal> {
        let session = &self.sessions[caller];
        let added = |unit| self.books.ledger.added(session.run, unit);
        let dollars = MicroUsd::from_micros(added(Unit::Usd));
        let last_child = session.last_child.map(|last| {
            let last = &self.sessions[last];
            LastChild {
                agent: last.admission.agent.clone(),
                grant: Arc::clone(&last.admission.grant),
                named_tools: last.named_tools,
            }
        });
        let caller = Caller {
            run: session.run,
            depth: session.admission.depth,
            over: session.over,
            out_of_time: session.out_of_time,
            terms: &session.admission.terms,
            under: &session.under,
            grant: &session.admission.grant,
            raised: BudgetGrant { tokens: Some(added(Unit::Tokens)), usd: Some(dollars) },
            lineage: &session.admission.lineage,
            live_children: session.live_children,
            last_child: last_child.as_ref(),
        };
        let load = Load {
            books: &self.books,
            now: self.now,
            slot_free: self.slot_free,
            paused: self.paused,
        };
        let answer = admit(&self.config, &caller, &load, request, origin, &self.runtime);
        // What is shared with the last child is what would be made anew.
        let alone = Caller { last_child: None, ..caller };
        let anew = admit(&self.config, &alone, &load, request, origin, &self.runtime);
        assert_eq!(answer, anew, "{request:?}");
        answer
    }

    /// Asks, and reserves what was admitted. The number of the new session.
    pub(crate) fn spawn(
        &mut self,
        caller: usize,
        request: &SpawnRequest,
    ) -> Result<usize, Refusal> {
        self.spawn_as(caller, request, Origin::Agent)
    }

    pub(crate) fn spawn_as(
        &mut self,
        caller: usize,
        request: &SpawnRequest,
        origin: Origin,
    ) -> Result<usize, Refusal> {
        let admission = self.ask(caller, request, origin)?;
        let number = self.sessions.len();
        self.books.reserve(run(number), Some(self.sessions[caller].run), &admission, self.now);
        self.sessions[caller].live_children += 1;
        let under = Arc::clone(self.terms(caller));
        let session = Session::of(run(number), admission, &under);
        self.sessions.push(Session { named_tools: request.tools.is_some(), ..session });
        self.sessions[caller].last_child = Some(number);
        Ok(number)
    }

    /// A chain of sub-agents below the root. The number of the last.
    pub(crate) fn chain(&mut self, targets: &[&str]) -> usize {
        targets.iter().fold(0, |caller, target| {
            let request = SpawnRequest {
                task: format!("part {} for {target}", self.sessions.len()).into(),
                ..ask(target)
            };
            self.spawn(caller, &request).expect("the chain of a test is admitted")
        })
    }

    pub(crate) fn terms(&self, session: usize) -> &Arc<Terms> {
        &self.sessions[session].admission.terms
    }
}
