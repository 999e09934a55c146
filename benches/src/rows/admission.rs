//! Agents in memory that start while quotas, slots of the host and memory of the computer are known, beside the same that start while
//! nothing of that is.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use offshoot_config::{Source, SourceKind};
use offshoot_host::{SlotFolder, WallFolder};
use offshoot_merge::Strategy;
use offshoot_model::{Account, Timestamp};
use offshoot_runtime::{Finished, FnRuntime};
use offshoot_spawner::{
    AccountBoard as _, Clock as _, HostMemory, ParkedAccount, RunSpec, SpawnerBuilder, SystemClock,
};

use super::Row;
use crate::Result;
use crate::comparison::{Samples, Side, compare, timed};
use crate::engine::{Engine, Record, closure, loader, pieces};
use crate::outcome::{Outcome, Unit};
use crate::setting::Setting;

pub(crate) const ROW: Row = Row {
    name: "admission",
    what: "one in-process agent in memory on one thread, 64 at once; what is known when it starts",
    measure,
};

const AT_ONCE: u32 = 64;
const NOTHING: &str = "nothing known";
const WINDOWS: &str = "quotas known";
const SLOTS: &str = "slots of the host known";
const MEMORY: &str = "memory known";
const ALL: &str = "all three known";
const MORE: &str = "more for each, all three known";

/// The facts that a tree looks at before it starts a run.
#[derive(Clone, Copy, Default)]
struct Known {
    windows: bool,
    slots: bool,
    memory: bool,
}

fn measure(setting: &Setting) -> Result<Outcome> {
    // Many short turns: the machine changes its pace more than what is measured.
    let (runs, rounds) = (setting.pick(20_000, 1_000), setting.pick(41, 1));
    let side = |name, known| Side::new(name, move || ours(setting, known, runs));
    let nothing = Known::default();
    let mut samples = compare(
        setting,
        rounds,
        vec![
            side(NOTHING, nothing),
            side(WINDOWS, Known { windows: true, ..nothing }),
            side(SLOTS, Known { slots: true, ..nothing }),
            side(MEMORY, Known { memory: true, ..nothing }),
            side(ALL, Known { windows: true, slots: true, memory: true }),
        ],
    )?;
    let of = |name: &str| samples.iter().find(|side| side.name == name).map(|side| &side.values);
    let rounds = of(ALL).into_iter().flatten().zip(of(NOTHING).into_iter().flatten());
    let values = rounds.map(|(all, nothing)| all - nothing).collect();
    samples.push(Samples { name: MORE.to_owned(), values });
    Ok(Outcome::new(Unit::Seconds("run"), samples)
        .at_most(MORE, 2e-6)
        .beside(WINDOWS, NOTHING)
        .beside(SLOTS, NOTHING)
        .beside(MEMORY, NOTHING)
        .beside(ALL, NOTHING)
        .note(format!("{runs} runs"))
        .note("quotas: what is left of one of the account, and the wall of another account, of which another tree has told"))
}

fn ours(setting: &Setting, known: Known, runs: u64) -> Result<f64> {
    let scratch = setting.scratch()?;
    // One thread: what other threads are woken for is more than what is measured.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let loader = loader(AT_ONCE).file(Source::new(SourceKind::User, "user.toml", known.settings()));
    let agent = if known.windows { with_quota() } else { closure() };
    // A task of the board ends with its tree.
    let _inside = runtime.enter();
    let know = |builder| known.tell(builder, scratch.path());
    let engine = Engine::with(Record::Memory, scratch.path(), loader.load()?, agent, know)?;
    let (seconds, ()) = timed(|| {
        let run_spec = RunSpec::in_folder("/");
        runtime.block_on(engine.run(pieces(runs), run_spec, Strategy::Sum))
    })?;
    Ok(seconds / runs as f64)
}

impl Known {
    /// The file of the user, where the host is configured.
    fn settings(self) -> String {
        let keep = if self.memory { 0.1 } else { 0.0 };
        let mut text = format!("[host]\nmemoryKeep = {keep:.1}\n");
        if self.slots {
            for key in ["maxConcurrent", "maxConcurrentPerAccount"] {
                text += &format!("{key} = {}\n", 2 * AT_ONCE);
            }
        }
        text
    }

    fn tell(self, mut builder: SpawnerBuilder, folder: &Path) -> SpawnerBuilder {
        if self.windows
            && let Some(board) = WallFolder::of_user(Some(folder))
        {
            board.tell(&ParkedAccount {
                account: Account { runtime: "another".into(), credential: None },
                window: Some("five_hour".into()),
                until: in_five_hours(),
            });
            builder = builder.account_board(Arc::new(board));
        }
        if self.slots {
            builder = builder.host_slots(Arc::new(SlotFolder::of_user(Some(folder))));
        }
        if self.memory {
            builder = builder.host_memory(host_memory);
        }
        builder
    }
}

/// An agent that answers at once, and the first time tells what is left of a quota.
fn with_quota() -> FnRuntime {
    let told = Arc::new(AtomicBool::new(false));
    FnRuntime::new("closure", move |_, cx| {
        if !told.swap(true, Ordering::Relaxed) {
            cx.host.quota_left("five_hour", 900_000, in_five_hours());
        }
        async { Finished::text("1") }
    })
}

fn in_five_hours() -> Timestamp {
    SystemClock.now().plus(Duration::from_secs(5 * 3600))
}

fn host_memory() -> Option<HostMemory> {
    let offshoot_process::HostMemory { total, available, stalled } =
        offshoot_process::HostMemory::read().ok()?;
    Some(HostMemory { total, available, stalled })
}
