//! Proof of the limits over all trees of a user: two trees together ask for more than each limit allows.
//!
//! The trees share a folder of their own, so that other trees of the user neither count nor wait. Nothing is started and nothing is paid.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::future::try_join_all;
use offshoot_audit::{HostAudit, HostFindings, HostTree};
use offshoot_config::{Config, HostSettings, Loader, Source, SourceKind};
use offshoot_model::{BudgetGrant, Cost, EventKind, MicroUsd, Usage};
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
    /// The result; none where the limit is not set, or is more runs than are started for a proof.
    pub proof: Option<LimitProof>,
}

impl HostProof {
    /// The most runs at once that are started for a proof.
    pub const MOST: u32 = 1_000;
}

const RUNTIME: &str = "probe";

/// The number of trees that share each limit.
const TREES: usize = 2;

/// The time after which a slot that is free, and that a waiting run has not taken, is a fault.
const PATIENCE: Duration = Duration::from_secs(20);

/// Tries each limit over all trees that is set. A free slot that no run takes is waited for 20 seconds.
///
/// # Errors
///
/// Fails if a folder cannot be made, or a tree of the proof cannot be opened or recorded.
pub async fn prove_host(settings: &HostSettings) -> Result<Vec<HostProof>, HostError> {
    let HostSettings { max_concurrent, max_concurrent_per_account, .. } = settings;
    let pools = [
        ("host.maxConcurrent", "maxConcurrent", max_concurrent),
        ("host.maxConcurrentPerAccount", "maxConcurrentPerAccount", max_concurrent_per_account),
    ];
    let mut proofs = Vec::new();
    for (limit, key, most) in pools {
        let set = most.as_ref().map(|most| (most.value.to_string(), most.origin.to_string()));
        let most = most.as_ref().map(|most| most.value.get());
        let most = most.filter(|most| *most <= HostProof::MOST);
        let with = most.map_or_else(Vec::new, |most| with(format!("maxConcurrent={}", most + 1)));
        let proof = match most {
            Some(most) => Some(slots(key, most).await?),
            None => None,
        };
        proofs.push(HostProof::new(limit, set, with, proof));
    }
    let HostSettings { usd_per_day, tokens_per_day, .. } = settings;
    let usd = |usd| BudgetGrant { usd: Some(usd), tokens: None };
    let tokens = |tokens| BudgetGrant { usd: None, tokens: Some(tokens) };
    let of_usd = usd_per_day.as_ref().map(|most| {
        let settings = HostSettings { usd_per_day: Some(most.clone()), ..HostSettings::default() };
        let more = MicroUsd::from_micros(1);
        let words = [format!("${}", most.value), format!("${more} more")];
        let proof = day(&settings, [usd(most.value), usd(more)], words);
        (most.value.to_string(), most.origin.to_string(), proof)
    });
    let of_tokens = tokens_per_day.as_ref().map(|most| {
        let settings =
            HostSettings { tokens_per_day: Some(most.clone()), ..HostSettings::default() };
        let words = [format!("{} tokens", most.value), "one more".to_owned()];
        let proof = day(&settings, [tokens(most.value), tokens(1)], words);
        (most.value.to_string(), most.origin.to_string(), proof)
    });
    for (limit, of_day) in [("host.usdPerDay", of_usd), ("host.tokensPerDay", of_tokens)] {
        let Some((value, origin, proof)) = of_day else {
            proofs.push(HostProof::new(limit, None, Vec::new(), None));
            continue;
        };
        let with = with("a day without other trees".to_owned());
        proofs.push(HostProof::new(limit, Some((value, origin)), with, Some(proof?)));
    }
    Ok(proofs)
}

fn with(setting: String) -> Vec<String> {
    vec![setting, format!("{TREES} trees")]
}

impl HostProof {
    fn new(
        limit: &'static str,
        set: Option<(String, String)>,
        with: Vec<String>,
        proof: Option<LimitProof>,
    ) -> Self {
        let (value, origin) = set.unzip();
        Self { limit, value, origin, with, proof }
    }
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

    /// Ends the tree once all its runs have ended, and returns the slots that it held.
    async fn close(self, audit: &mut HostAudit) -> Result<(), HostError> {
        let root = self.session.root();
        let answer = self.fan.answer().await?;
        self.session.conclude(&answer).await?;
        let mut tree = HostTree::default();
        for event in self.store.events(root, 0) {
            tree.apply(&event?);
        }
        audit.add(root, tree);
        Ok(())
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
async fn slots(key: &str, most: u32) -> Result<LimitProof, HostError> {
    let runs = most + 1;
    let text = format!(
        "[host]\n{key} = {most}\n[agents.defaults.subagents]\nmaxConcurrent = {runs}\nmaxSpawns = {runs}\n"
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
    for tree in trees {
        tree.close(&mut audit).await?;
    }
    let at_once = agent.at_once.load(Ordering::Relaxed);
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

/// A tree reserves all that a day allows, and another one the least amount that can be asked for.
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
        (Err(refused), _) => Some(format!("a tree with the whole amount is not opened: {refused}")),
        (Ok(_), Ok(_)) => Some("a tree was opened with more than the day has left".to_owned()),
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
        let proofs = prove_host(&settings(text)).await.expect("trees can be opened");
        let told = proofs.iter().map(|proof| {
            let of = proof.proof.as_ref().expect("each of them is set");
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
        let proofs =
            prove_host(&settings("maxConcurrent = 1001")).await.expect("nothing is opened");
        let told = proofs.iter().map(|it| (it.value.as_deref(), it.proof.is_some()));
        let nothing = (None, false);
        assert_eq!(told.collect::<Vec<_>>(), [(Some("1001"), false), nothing, nothing, nothing]);
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
