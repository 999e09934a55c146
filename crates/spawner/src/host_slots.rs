//! Slots that all trees of a user share.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroU32;
use std::sync::Arc;

use offshoot_config::HostSettings;
use offshoot_model::{Account, RootId};
use tokio::sync::mpsc;

/// The runs that share slots over all trees of a user.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SlotPool {
    /// All runs, as `host.maxConcurrent` bounds them.
    Host,
    /// The runs of one account, as `host.maxConcurrentPerAccount` bounds them.
    Account(Arc<Account>),
}

/// Called with what a tree is given of a pool.
pub type OnGrant = Box<dyn Fn(HostGrant) + Send>;

/// The host of the trees of a user, which shares out slots among them.
pub trait HostSlots: Send + Sync + 'static {
    /// Begins to share the slots of a pool with a tree, of which no run holds one yet. At most `max` runs of all trees hold one at once. What the
    /// tree is given is told to `on_grant`; each claim for more than the tree has is answered so, with 0 where nothing is free.
    ///
    /// # Errors
    ///
    /// Fails where the tree cannot be counted with the others.
    fn open(
        &self,
        root: RootId,
        pool: &SlotPool,
        max: u32,
        on_grant: OnGrant,
    ) -> io::Result<Box<dyn HostClaims>>;
}

/// The claims of one tree. Once this is dropped the tree holds no slot of the pool.
pub trait HostClaims: Send {
    /// Takes in what the tree claims now. Does not wait.
    fn claim(&self, claim: HostClaim);
}

/// The claim of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostClaim {
    /// The number of the claim, from 1.
    pub number: u64,
    /// The number of slots that go back to the host, of those that it has given.
    pub back: u32,
    /// The number of runs that hold a slot of the tree and none of the host: they went on because a wait of theirs failed.
    pub debt: u32,
    /// The number of runs that hold a slot or could start now.
    pub wants: u32,
}

/// The answer to a claim, or news of what other trees claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostGrant {
    /// The number of slots that are given to the tree, beyond those that it has.
    pub more: u32,
    /// The number of slots that are due to the tree in all.
    pub due: u32,
    /// The number of the last claim that the host has taken in: the tree may have claimed something else since.
    pub claim: u64,
}

/// A tree's end of both ways between it and the host.
pub(crate) struct HostShare {
    host: Arc<dyn HostSlots>,
    root: RootId,
    /// The most runs of one account.
    per_account: Option<NonZeroU32>,
    pools: BTreeMap<SlotPool, Claims>,
    sender: mpsc::UnboundedSender<(SlotPool, News)>,
    news: mpsc::UnboundedReceiver<(SlotPool, News)>,
}

/// The claims of one pool.
enum Claims {
    /// The pool is being opened; the tree claims this meanwhile.
    Opening(HostClaim),
    Open(Box<dyn HostClaims>),
    /// The pool cannot be opened, which was told.
    Failed,
}

/// The news of one pool.
enum News {
    Opened(io::Result<Box<dyn HostClaims>>),
    Gives(HostGrant),
}

impl HostShare {
    /// Begins to share with a tree; nothing where the host bounds nothing.
    pub(crate) fn open(
        host: Option<&Arc<dyn HostSlots>>,
        root: RootId,
        settings: &HostSettings,
    ) -> io::Result<Option<Self>> {
        let (max, per_account) = (settings.max_concurrent(), settings.max_concurrent_per_account());
        let Some(host) = host.filter(|_| max.is_some() || per_account.is_some()) else {
            return Ok(None);
        };
        let (sender, news) = mpsc::unbounded_channel();
        let (host, pools) = (Arc::clone(host), BTreeMap::new());
        let mut share = Self { host, root, per_account, pools, sender, news };
        if let Some(max) = max {
            let on_grant = share.on_grant(&SlotPool::Host);
            let claims = share.host.open(root, &SlotPool::Host, max.get(), on_grant)?;
            share.pools.insert(SlotPool::Host, Claims::Open(claims));
        }
        Ok(Some(share))
    }

    /// Tells the host what the tree claims of a pool. That of an account is opened with its first claim, on another thread: it waits for a lock.
    pub(crate) fn claim(&mut self, pool: &SlotPool, claim: HostClaim) {
        match self.pools.get_mut(pool) {
            Some(Claims::Open(claims)) => claims.claim(claim),
            Some(Claims::Opening(before)) => {
                *before = HostClaim { back: before.back + claim.back, ..claim };
            }
            Some(Claims::Failed) => {}
            None => {
                self.pools.insert(pool.clone(), Claims::Opening(claim));
                let Some(max) = self.per_account else { return };
                let (host, root, sender) = (Arc::clone(&self.host), self.root, self.sender.clone());
                let (pool, on_grant) = (pool.clone(), self.on_grant(pool));
                drop(tokio::task::spawn_blocking(move || {
                    let opened = host.open(root, &pool, max.get(), on_grant);
                    // A tree that is over has no receiver.
                    let _ = sender.send((pool, News::Opened(opened)));
                }));
            }
        }
    }

    fn on_grant(&self, pool: &SlotPool) -> OnGrant {
        let (sender, pool) = (self.sender.clone(), pool.clone());
        Box::new(move |grant| drop(sender.send((pool.clone(), News::Gives(grant)))))
    }

    /// Returns the next grant, or the reason why a pool cannot be opened; never where there is no host.
    pub(crate) async fn next(share: &mut Option<Self>) -> (SlotPool, io::Result<HostGrant>) {
        let Some(share) = share else { return std::future::pending().await };
        while let Some((pool, news)) = share.news.recv().await {
            if let Some(grant) = share.hear(&pool, news) {
                return (pool, grant);
            }
        }
        std::future::pending().await
    }

    /// Returns the same where it is there already.
    pub(crate) fn next_now(&mut self) -> Option<(SlotPool, io::Result<HostGrant>)> {
        while let Ok((pool, news)) = self.news.try_recv() {
            if let Some(grant) = self.hear(&pool, news) {
                return Some((pool, grant));
            }
        }
        None
    }

    /// Takes in news of a pool. Returns what the tree is to hear of it.
    fn hear(&mut self, pool: &SlotPool, news: News) -> Option<io::Result<HostGrant>> {
        let now = match news {
            News::Gives(grant) => return Some(Ok(grant)),
            News::Opened(Ok(claims)) => Claims::Open(claims),
            News::Opened(Err(error)) => {
                self.pools.insert(pool.clone(), Claims::Failed);
                return Some(Err(error));
            }
        };
        let before = self.pools.insert(pool.clone(), now);
        if let Some(Claims::Opening(claim)) = before {
            self.claim(pool, claim);
        }
        None
    }
}
