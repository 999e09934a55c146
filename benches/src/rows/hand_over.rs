//! The time for which a slot stands empty: from the end of one run to the start of the next, one at a time.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use futures_util::future::BoxFuture;
use offshoot_merge::Strategy;
use offshoot_runtime::{Abilities, Finished, Launch, RunContext, Runtime};
use offshoot_spawner::RunSpec;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::Row;
use crate::Result;
use crate::comparison::{Samples, Side, alternate, percentile};
use crate::engine::{Engine, Record, closure, config, exec, pieces};
use crate::outcome::{Outcome, Unit};
use crate::programs::true_program;
use crate::setting::Setting;

pub(crate) const ROW: Row = Row {
    name: "hand-over",
    what: "from the end of a run to the call that starts the next, one at a time",
    measure,
};

const MEDIAN: f64 = 100e-6;
const NINETY_NINTH: f64 = 1e-3;

fn measure(setting: &Setting) -> Result<Outcome> {
    let (closures, processes) = setting.pick((10_000, 1_000), (200, 20));
    let program = &true_program()?;
    let sides = alternate(
        setting,
        setting.few_rounds(),
        vec![
            Side::new("closures, memory", || ours(setting, Record::Memory, None, closures)),
            Side::new("closures, SQLite", || ours(setting, Record::Sqlite, None, closures)),
            Side::new("processes, memory", || {
                ours(setting, Record::Memory, Some(program), processes)
            }),
            Side::new("processes, SQLite", || {
                ours(setting, Record::Sqlite, Some(program), processes)
            }),
            Side::new("tokio semaphore", || peer(setting, closures)),
        ],
    )?;
    let mut samples = Vec::new();
    for (name, turns) in &sides {
        for (percent, word) in [(50, "median"), (99, "99th percentile")] {
            let values = turns.iter().map(|gaps| percentile(gaps, percent)).collect();
            samples.push(Samples { name: format!("{name}, {word}"), values });
        }
    }
    let mut outcome = Outcome::new(Unit::Seconds("hand-over"), samples)
        .note("a process has ended when its group is gone and it is reaped");
    for (name, _) in sides.iter().filter(|(name, _)| *name != "tokio semaphore") {
        outcome = outcome
            .at_most(&format!("{name}, median"), MEDIAN)
            .at_most(&format!("{name}, 99th percentile"), NINETY_NINTH);
    }
    Ok(outcome)
}

/// The moments at which runs started and ended, one after the other.
#[derive(Clone, Default)]
struct Moments(Arc<Mutex<Vec<(Turn, Instant)>>>);

#[derive(Clone, Copy, PartialEq)]
enum Turn {
    Start,
    End,
}

/// A runtime that takes down its moments.
struct Watched<R> {
    inner: R,
    moments: Moments,
}

fn ours(setting: &Setting, record: Record, program: Option<&Path>, runs: u64) -> Result<Vec<f64>> {
    let folder = setting.scratch()?;
    let moments = Moments::default();
    setting.runtime()?.block_on(async {
        let (config, moments) = (config(1)?, moments.clone());
        match program {
            None => {
                let watched = Watched { inner: closure(), moments };
                let engine = Engine::new(record, folder.path(), config, watched)?;
                engine.run(pieces(runs), RunSpec::in_folder("/"), Strategy::Concatenate).await
            }
            Some(program) => {
                let watched = Watched { inner: exec()?, moments };
                let engine = Engine::new(record, folder.path(), config, watched)?;
                let run_spec = RunSpec::command("/", [program.to_string_lossy()]);
                engine.run(pieces(runs), run_spec, Strategy::Concatenate).await
            }
        }
    })?;
    moments.gaps()
}

fn peer(setting: &Setting, runs: u64) -> Result<Vec<f64>> {
    let moments = Moments::default();
    setting.runtime()?.block_on(async {
        let slots = Arc::new(Semaphore::new(1));
        let mut tasks = JoinSet::new();
        for _ in 0..runs {
            let (slots, moments) = (Arc::clone(&slots), moments.clone());
            tasks.spawn(async move {
                let _slot = slots.acquire().await.expect("it is never closed");
                moments.note(Turn::Start);
                moments.note(Turn::End);
            });
        }
        while let Some(ended) = tasks.join_next().await {
            ended?;
        }
        Result::Ok(())
    })?;
    moments.gaps()
}

impl Moments {
    fn note(&self, turn: Turn) {
        self.0.lock().expect("nothing panics while it holds the list").push((turn, Instant::now()));
    }

    /// From each end to the start after it. With one at a time, starts and ends take turns.
    fn gaps(&self) -> Result<Vec<f64>> {
        let moments = self.0.lock().expect("nothing panics while it holds the list");
        let gap = |pair: &[(Turn, Instant)]| match pair {
            [(Turn::End, end), (Turn::Start, start)] => Ok((*start - *end).as_secs_f64()),
            _ => Err("two runs at once where one was asked for".into()),
        };
        moments
            .get(1..moments.len().saturating_sub(1))
            .unwrap_or_default()
            .chunks(2)
            .map(gap)
            .collect()
    }
}

impl<R: Runtime> Runtime for Watched<R> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn abilities(&self) -> Abilities {
        self.inner.abilities()
    }

    fn start(&self, launch: Launch, cx: RunContext) -> BoxFuture<'static, Finished> {
        self.moments.note(Turn::Start);
        let (run, moments) = (self.inner.start(launch, cx), self.moments.clone());
        Box::pin(async move {
            let finished = run.await;
            moments.note(Turn::End);
            finished
        })
    }
}
