//! Runs that hear that others wait for memory of the computer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use offshoot_policy::memory::HostMemory;
use offshoot_runtime::{Finished, FnRuntime};
use offshoot_spawner::{FanOut, Piece, RootSpec, Spawner};
use tokio::time::timeout;

/// The first piece runs in any case; it goes on as soon as the second one waits for memory.
#[tokio::test]
async fn a_run_hears_when_another_one_waits_for_memory() {
    let heard = Arc::new(AtomicBool::new(false));
    let hears = Arc::clone(&heard);
    let agent = FnRuntime::new("agent", move |launch, cx| {
        let (is_first, hears) = (&*launch.task == "one", Arc::clone(&hears));
        async move {
            if is_first {
                let memory_short = timeout(Duration::from_secs(20), cx.host.memory_short());
                hears.store(memory_short.await.is_ok(), Ordering::SeqCst);
            }
            Finished::text("made room")
        }
    });
    let host = HostMemory { total: 100 << 30, available: 1 << 30, stalled: None };
    let spawner = Spawner::builder().runtime(agent).host_memory(move || Some(host));
    let spawner = spawner.build().expect("a spawner");
    let session = spawner.open(RootSpec::new("pieces")).await.expect("a root");
    let order = FanOut::new(["one", "two"].map(Piece::task));
    let answer = session.fan_out(order).await.expect("it was admitted").answer().await;
    let answer = answer.expect("an answer");
    assert_eq!((answer.completed, heard.load(Ordering::SeqCst)), (2, true));
    session.conclude(&answer).await.expect("a whole record");
}
