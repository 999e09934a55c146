//! Proof of the limits over all trees of a user: two trees together ask for more slots than there are, and more is reserved than a day
//! allows.
//!
//! All of it is counted in folders of its own, so that trees of the user neither count nor wait. Nothing is started and nothing is paid.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::future::try_join_all;
use offshoot_audit::{HostAudit, HostFindings, HostTree};
use offshoot_config::{Config, HostSettings, Loader, Source, SourceKind, Valued};
use offshoot_model::{BudgetGrant, Cost, EventKind, MicroUsd, Usage, error_chain};
use offshoot_runtime::{Finished, FnRuntime};
use offshoot_spawner::{
    Clock, Fan, FanOut, Piece, RootSpec, RunSpec, Session, Spawner, SystemClock,
};
use offshoot_store::{MemoryStore, Store, StoreError};
use tokio::sync::watch;

use crate::day_budget::{DayBudget, DayError};
use crate::error::HostError;
use crate::limit_proof::LimitProof;
use crate::slot_folder::SlotFolder;

/// A limit over all trees, with the result of its proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostProof {
    /// The key of the limit in the whole configuration.
    pub limit: &'static str,
    /// The value that holds, as the configuration writes it; none where the limit is not set.
    pub value: Option<String>,
    /// The place where the value was set.
    pub origin: Option<String>,
    /// The settings of the two trees, as `key=value`.
    pub with: Vec<String>,
    /// The result.
    pub result: HostResult,
}

/// The result of a proof over all trees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostResult {
    /// The limit is not set.
    NotSet,
    /// The limit cannot be tried here.
    NotTried {
        /// The reason.
        why: String,
    },
    /// The limit was tried.
    Tried(LimitProof),
}

/// The most runs at once that are started for a proof.
const MOST: u32 = 1_000;

const RUNTIME: &str = "probe";

/// The number of trees that share each limit.
const TREES: usize = 2;

/// The time after which a slot that is free, and that a waiting run has not taken, is a fault.
const PATIENCE: Duration = Duration::from_secs(20);

/// Tries each limit over all trees that is set. A free slot that no run takes is waited for 20 seconds.
pub async fn prove_host(settings: &HostSettings) -> Vec<HostProof> {
    let HostSettings { max_concurrent, max_concurrent_per_account, .. } = settings;
    let HostSettings { usd_per_day, tokens_per_day, .. } = settings;
    let mut proofs = Vec::new();
    for (limit, most) in [
        ("host.maxConcurrent", max_concurrent),
        ("host.maxConcurrentPerAccount", max_concurrent_per_account),
    ] {
        let Some(Valued { value, origin }) = most else {
            proofs.push(HostProof::not_set(limit));
            continue;
        };
        let most = value.get();
        let result = match most {
            ..=MOST => HostResult::of(slots(limit, most).await),
            _ => HostResult::NotTried { why: format!("more than {MOST} would be asked for") },
        };
        let with = vec![format!("maxConcurrent={}", most + 1), format!("{TREES} trees")];
        proofs.push(HostProof::new(limit, value, origin, with, result));
    }
    proofs.push(of_day("host.usdPerDay", usd_per_day.as_ref(), |most, settings| {
        settings.usd_per_day = Some(most.clone());
        let (whole, more) = (most.value, MicroUsd::from_micros(1));
        let usd = |usd| BudgetGrant { usd: Some(usd), tokens: None };
        ([usd(whole), usd(more)], [format!("${whole}"), format!("${more} more")])
    }));
    proofs.push(of_day("host.tokensPerDay", tokens_per_day.as_ref(), |most, settings| {
        settings.tokens_per_day = Some(most.clone());
        let whole = most.value;
        let tokens = |tokens| BudgetGrant { usd: None, tokens: Some(tokens) };
        ([tokens(whole), tokens(1)], [format!("{whole} tokens"), "one more".to_owned()])
    }));
    proofs
}

impl HostProof {
    fn new(
        limit: &'static str,
        value: &impl ToString,
        origin: &impl ToString,
        with: Vec<String>,
        result: HostResult,
    ) -> Self {
        let (value, origin) = (Some(value.to_string()), Some(origin.to_string()));
        Self { limit, value, origin, with, result }
    }

    fn not_set(limit: &'static str) -> Self {
        let result = HostResult::NotSet;
        Self { limit, value: None, origin: None, with: Vec::new(), result }
    }
}

impl HostResult {
    fn of(tried: Result<LimitProof, HostError>) -> Self {
        tried.map_or_else(|error| Self::NotTried { why: error_chain(&error) }, Self::Tried)
    }
}

/// Tries a limit of a day. `asks` sets it alone, and returns all of it and the least amount more, as amounts and in words.
fn of_day<T: ToString>(
    limit: &'static str,
    most: Option<&Valued<T>>,
    asks: impl FnOnce(&Valued<T>, &mut HostSettings) -> ([BudgetGrant; 2], [String; 2]),
) -> HostProof {
    let Some(most) = most else { return HostProof::not_set(limit) };
    let mut settings = HostSettings::default();
    let (amounts, words) = asks(most, &mut settings);
    let result = HostResult::of(day(&settings, amounts, words));
    let with = vec!["a day without other trees".to_owned()];
    HostProof::new(limit, &most.value, &most.origin, with, result)
}

/// A tree with one run more than all trees may have at once.
struct ProbeTree {
    session: Session,
    fan: Fan,
    store: Arc<MemoryStore>,
}

impl ProbeTree {
    async fn open(
        config: &Config,
        slots: &Arc<SlotFolder>,
        agent: &Agent,
        runs: u32,
    ) -> Result<Self, HostError> {
        let store = Arc::new(MemoryStore::new());
        let shared: Arc<dyn Store> = Arc::<MemoryStore>::clone(&store);
        let agent = agent.clone();
        let runtime = FnRuntime::new(RUNTIME, move |_, cx| {
            cx.host.started(None);
            agent.clone().work()
        });
        let spawner = Spawner::builder().runtime(runtime).config(config.clone()).store(shared);
        let slots = Arc::<SlotFolder>::clone(slots);
        let spawner = spawner.host_slots(slots).build()?;
        let run_spec = RunSpec { runtime: Some(RUNTIME.into()), ..RunSpec::in_folder("/") };
        let spec = RootSpec { run_spec, ..RootSpec::new("asks for more than all trees may have") };
        let session = spawner.open(spec).await?;
        let pieces = (0..runs).map(|number| Piece::task(format!("piece {number}")));
        let fan = session.fan_out(FanOut::new(pieces)).await?;
        Ok(Self { session, fan, store })
    }

    /// Returns when a run of the tree has to wait for a slot that trees share.
    async fn is_full(&self) -> Result<(), StoreError> {
        let mut events = self.session.events();
        while let Some(event) = events.next().await {
            if matches!(event?.kind, EventKind::HostFull | EventKind::AccountFull { .. }) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Ends the tree once all its runs have ended, and adds the slots that it held. Returns why one of its runs has failed.
    async fn close(self, audit: &mut HostAudit) -> Result<Option<String>, HostError> {
        let root = self.session.root();
        let answer = self.fan.answer().await?;
        let failure = answer.failures.iter().find_map(|(_, piece)| piece.error.as_ref());
        let failure = failure.map(|error| error.summary().to_owned());
        self.session.conclude(&answer).await?;
        let mut tree = HostTree::default();
        for event in self.store.events(root, 0) {
            tree.apply(&event?);
        }
        audit.add(root, tree);
        Ok(failure)
    }
}

/// An agent that works until it is released, and counts how many do so at once.
#[derive(Clone)]
struct Agent {
    running: Arc<watch::Sender<u32>>,
    at_once: Arc<AtomicU32>,
    released: Arc<watch::Sender<bool>>,
}

impl Agent {
    fn new() -> Self {
        Self {
            running: Arc::new(watch::Sender::new(0)),
            at_once: Arc::default(),
            released: Arc::new(watch::Sender::new(false)),
        }
    }

    async fn work(self) -> Finished {
        self.running.send_modify(|running| {
            *running += 1;
            self.at_once.fetch_max(*running, Ordering::Relaxed);
        });
        // The sender is this agent's own, so that it lives as long as this waits.
        let _ = self.released.subscribe().wait_for(|released| *released).await;
        self.running.send_modify(|running| *running -= 1);
        Finished::text("done")
    }

    /// Returns when as many work as this.
    async fn are(&self, number: u32) {
        let _ = self.running.subscribe().wait_for(|running| *running >= number).await;
    }
}

/// Two trees ask for one run more each than both may have.
async fn slots(limit: &str, most: u32) -> Result<LimitProof, HostError> {
    let runs = most + 1;
    let text = format!(
        "{limit} = {most}\n[agents.defaults.subagents]\nmaxConcurrent = {runs}\nmaxSpawns = {runs}\n"
    );
    let user = Source::new(SourceKind::User, "the proof", text);
    let config =
        Loader::new().file(user).load().expect("the settings of a proof are within bounds");
    let home = tempfile::tempdir().map_err(HostError::Proof)?;
    let folder = Arc::new(SlotFolder::of_user(Some(home.path())));
    let agent = Agent::new();
    let open = (0..TREES).map(|_| ProbeTree::open(&config, &folder, &agent, runs));
    let trees = try_join_all(open).await?;
    let all_wait = async {
        agent.are(most).await;
        try_join_all(trees.iter().map(ProbeTree::is_full)).await
    };
    let waited = tokio::select! {
        waited = tokio::time::timeout(PATIENCE, all_wait) => match waited {
            Ok(all) => all.map(|_| true)?,
            Err(_) => false,
        },
        () = agent.are(runs) => false,
    };
    agent.released.send_replace(true);
    let mut audit = HostAudit::default();
    let ends = async {
        let mut failure = None;
        for tree in trees {
            failure = tree.close(&mut audit).await?.or(failure);
        }
        Ok::<_, HostError>(failure)
    };
    // A run that gets no slot does not end.
    let failure = tokio::time::timeout(PATIENCE, ends).await.unwrap_or(Ok(None))?;
    let at_once = agent.at_once.load(Ordering::Relaxed);
    if let Some(failure) = failure {
        return Err(HostError::Proof(io::Error::other(failure)));
    }
    Ok(LimitProof {
        asked: format!("{} at once", u64::from(runs) * TREES as u64),
        got: format!("{at_once} at once"),
        answer: waited.then(|| "queued".to_owned()),
        broken: difference(most, at_once, waited, &audit.finish()),
    })
}

/// Returns the difference between what trees had at once and what they may have.
fn difference(most: u32, at_once: u32, waited: bool, found: &HostFindings) -> Option<String> {
    let peak = found.peak.or_else(|| found.accounts.first().map(|account| account.peak));
    if at_once > most {
        Some(format!("{at_once} ran at once"))
    } else if at_once < most {
        Some(format!("only {at_once} ran at once after {} s", PATIENCE.as_secs()))
    } else if !waited {
        Some("a tree does not say that its runs wait".to_owned())
    } else if let Some(breach) = found.breaches.first() {
        Some(format!("the audit of the records: {breach}"))
    } else {
        (peak != Some(most)).then(|| format!("the records tell of {} at once", peak.unwrap_or(0)))
    }
}

/// All that a day allows is reserved, as for a tree that is opened, and then the least amount that can be asked for.
fn day(
    settings: &HostSettings,
    [most, more]: [BudgetGrant; 2],
    [asked, further]: [String; 2],
) -> Result<LimitProof, HostError> {
    let home = tempfile::tempdir().map_err(HostError::Proof)?;
    let day = DayBudget::of_user(Some(home.path()), settings).expect("the limit is set");
    let now = SystemClock.now();
    let reserve = |budget| match day.reserve(None, budget, (Usage::default(), Cost::NONE), now) {
        Ok(share) => Ok(Ok(share)),
        Err(refused @ DayError::Over { .. }) => Ok(Err(refused)),
        Err(error) => Err(error),
    };
    // The first share is held while the second one is asked for.
    let (whole, beyond) = (reserve(most)?, reserve(more)?);
    let broken = match (&whole, &beyond) {
        (Ok(_), Err(_)) => None,
        (Err(refused), _) => Some(format!("the whole amount is not reserved: {refused}")),
        (Ok(_), Ok(_)) => Some("more was reserved than the day has left".to_owned()),
    };
    Ok(LimitProof {
        got: if whole.is_ok() { asked.clone() } else { "nothing".to_owned() },
        asked: format!("{asked}, and {further}"),
        answer: beyond.is_err().then(|| "not_opened".to_owned()),
        broken,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> HostSettings {
        let user = Source::new(SourceKind::User, "user.toml", format!("[host]\n{text}"));
        Loader::new().file(user).load().expect("it is right").host().clone()
    }

    #[tokio::test]
    async fn limits_over_all_trees_hold() {
        let text =
            "maxConcurrent = 3\nmaxConcurrentPerAccount = 1\nusdPerDay = 0\ntokensPerDay = 5000\n";
        let proofs = prove_host(&settings(text)).await;
        let told = proofs.iter().map(|proof| {
            let HostResult::Tried(of) = &proof.result else { panic!("{proof:?}") };
            assert_eq!(of.broken, None, "{proof:?}");
            [proof.limit, &of.asked, &of.got, of.answer.as_deref().expect("more was asked for")]
        });
        assert_eq!(
            told.collect::<Vec<_>>(),
            [
                ["host.maxConcurrent", "8 at once", "3 at once", "queued"],
                ["host.maxConcurrentPerAccount", "4 at once", "1 at once", "queued"],
                ["host.usdPerDay", "$0.00, and $0.000001 more", "$0.00", "not_opened"],
                ["host.tokensPerDay", "5000 tokens, and one more", "5000 tokens", "not_opened"],
            ]
        );
    }

    #[tokio::test]
    async fn what_is_not_set_or_is_too_much_to_try_has_no_result() {
        let proofs = prove_host(&settings("maxConcurrent = 1001")).await;
        let [first, others @ ..] = proofs.as_slice() else { panic!("{proofs:?}") };
        let why = "more than 1000 would be asked for".to_owned();
        assert_eq!(first.result, HostResult::NotTried { why });
        assert_eq!(first.value.as_deref(), Some("1001"));
        assert!(others.iter().all(|proof| proof.result == HostResult::NotSet), "{others:?}");
    }

    #[test]
    fn a_limit_that_does_not_hold_is_named() {
        let found = |peak| HostFindings { peak: Some(peak), ..HostFindings::default() };
        let said = |at_once, waited, peak| difference(3, at_once, waited, &found(peak));
        assert_eq!(said(3, true, 3), None);
        assert_eq!(said(4, false, 4).as_deref(), Some("4 ran at once"));
        assert_eq!(said(2, true, 2).as_deref(), Some("only 2 ran at once after 20 s"));
        assert_eq!(said(3, false, 3).as_deref(), Some("a tree does not say that its runs wait"));
        assert_eq!(said(3, true, 2).as_deref(), Some("the records tell of 2 at once"));
    }
}
