//! Slots that all trees of a user share.

use std::io;
use std::num::NonZeroU32;

use offshoot_model::RootId;
use tokio::sync::mpsc;

/// The host of the trees of a user, which shares out its slots among them.
pub trait HostSlots: Send + Sync + 'static {
    /// Begins to share with a tree, of which nothing runs yet. At most `max` runs of all trees hold a slot at once. What the tree is given is
    /// sent to `grants`; each claim for more than the tree has is answered so, with 0 where nothing is free.
    ///
    /// # Errors
    ///
    /// Fails where the tree cannot be counted with the others.
    fn open(
        &self,
        root: RootId,
        max: u32,
        grants: mpsc::UnboundedSender<HostGrant>,
    ) -> io::Result<Box<dyn HostClaims>>;
}

/// The claims of one tree. Once this is dropped the tree holds no slot of the host.
pub trait HostClaims: Send {
    /// Takes in what the tree claims now. Does not wait.
    fn claim(&self, claim: HostClaim);
}

/// The claim of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostClaim {
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
}

/// A tree's end of both ways between it and the host.
pub(crate) struct HostShare {
    pub(crate) claims: Box<dyn HostClaims>,
    pub(crate) grants: mpsc::UnboundedReceiver<HostGrant>,
}

impl HostShare {
    /// Begins to share with a tree; nothing where the host bounds nothing.
    pub(crate) fn open(
        host: Option<&dyn HostSlots>,
        root: RootId,
        max: Option<NonZeroU32>,
    ) -> io::Result<Option<Self>> {
        let (Some(host), Some(max)) = (host, max) else { return Ok(None) };
        let (sender, grants) = mpsc::unbounded_channel();
        let claims = host.open(root, max.get(), sender)?;
        Ok(Some(Self { claims, grants }))
    }

    /// Returns the next grant; never where there is no host.
    pub(crate) async fn next(share: &mut Option<Self>) -> HostGrant {
        let grant = match share {
            Some(share) => share.grants.recv().await,
            None => None,
        };
        match grant {
            Some(grant) => grant,
            None => std::future::pending().await,
        }
    }
}
