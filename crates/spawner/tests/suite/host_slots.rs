//! Trees of a library that share slots of the host.

use std::io;
use std::sync::Arc;

use offshoot_config::{Loader, Source, SourceKind};
use offshoot_model::{EventKind, RootId};
use offshoot_runtime::{Finished, FnRuntime};
use offshoot_spawner::{
    FanOut, HostClaim, HostClaims, HostGrant, HostSlots, OnGrant, Piece, RootSpec, SlotPool,
    Spawner,
};
use offshoot_store::{MemoryStore, Store};
use parking_lot::Mutex;

/// A host with slots for all, which answers a claim before it returns.
struct Plenty;

struct Claims {
    on_grant: OnGrant,
    holds: Mutex<u32>,
}

impl HostSlots for Plenty {
    fn open(
        &self,
        _: RootId,
        _: &SlotPool,
        _: u32,
        on_grant: OnGrant,
    ) -> io::Result<Box<dyn HostClaims>> {
        Ok(Box::new(Claims { on_grant, holds: Mutex::new(0) }))
    }
}

impl HostClaims for Claims {
    fn claim(&self, claim: HostClaim) {
        let HostClaim { number, back, wants, .. } = claim;
        let mut holds = self.holds.lock();
        let more = wants - (*holds - back);
        *holds = wants;
        (self.on_grant)(HostGrant { more, due: wants, claim: number });
    }
}

/// A large request is taken in parts. What the host gives after one is used before the next.
#[tokio::test]
async fn slots_of_the_host_are_used_before_the_last_pieces_of_a_request_are_admitted() {
    const PIECES: u32 = 3_000;
    let user = "[host]\nmaxConcurrent = 8\nmaxConcurrentPerAccount = 8\n";
    let config = Loader::new().file(Source::new(SourceKind::User, "user.toml", user));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let agent = FnRuntime::new("agent", |_, _| async { Finished::text("1") });
    let spawner = Spawner::builder()
        .config(config.load().expect("a configuration"))
        .store(Arc::clone(&store))
        .host_slots(Arc::new(Plenty))
        .runtime(agent)
        .build()
        .expect("a spawner");
    let session = spawner.open(RootSpec::new("pieces")).await.expect("a root");
    let order = FanOut::new((0..PIECES).map(|_| Piece::task("one")));
    let answer = session.fan_out(order.merge("sum".parse().expect("sum"))).await;
    let answer = answer.expect("it was admitted").answer().await.expect("an answer");
    assert_eq!(answer.completed, PIECES);
    let events = store.events(session.root(), 0);
    let kinds: Vec<EventKind> = events.map(|event| event.expect("a whole record").kind).collect();
    let is_admission = |kind: &EventKind| matches!(kind, EventKind::Admitted(_));
    let first = kinds.iter().position(|kind| matches!(kind, EventKind::Starting));
    let last = kinds.iter().rposition(is_admission).expect("an admission");
    let first = first.expect("a start");
    assert!(first < last / 2, "{first} of {last}");
    session.conclude(&answer).await.expect("a whole record");
}
