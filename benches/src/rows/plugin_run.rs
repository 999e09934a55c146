//! A run of a plugin that does nothing beside the same in this process, many at once and without an engine.

use offshoot_plugin_host::Checked;
use offshoot_runtime::{Finished, FnRuntime, Launch, Output, Runtime};
use tokio::sync::mpsc;

use super::Row;
use crate::Result;
use crate::comparison::{Side, compare, timed};
use crate::outcome::{Outcome, Unit};
use crate::plugins::{context, copy, load, settings};
use crate::setting::Setting;

pub(crate) const ROW: Row = Row {
    name: "plugin-run",
    what: "one run of a plugin that answers at once; 64 in flight, no engine",
    measure,
};

pub(super) const IN_FLIGHT: u64 = 64;

fn measure(setting: &Setting) -> Result<Outcome> {
    let runs = setting.pick(64_000, 640);
    let folder = setting.scratch()?;
    let plugin = load(&Checked::file(&copy("echo", folder.path())?)?)?;
    let echo = plugin.runtime("echo", &settings()?)?;
    let closure = FnRuntime::new("echo", |launch, _cx| async move { Finished::text(launch.task) });
    let both = || Ok(each(setting, &echo, runs)? - each(setting, &closure, runs)?);
    let samples = compare(
        setting,
        setting.few_rounds(),
        vec![
            Side::new("plugin", || each(setting, &echo, runs)),
            Side::new("closure", || each(setting, &closure, runs)),
            Side::new("what the plugin takes more", both),
        ],
    )?;
    Ok(Outcome::new(Unit::Seconds("run"), samples)
        .at_most("what the plugin takes more", 5e-6)
        .beside("plugin", "closure"))
}

/// Seconds for each of so many runs.
pub(super) fn each(setting: &Setting, runtime: &dyn Runtime, runs: u64) -> Result<f64> {
    // Without a listener: events are another row.
    let (tx, _) = mpsc::unbounded_channel();
    let (seconds, ()) = timed(|| {
        setting.runtime()?.block_on(async {
            for _ in 0..runs / IN_FLIGHT {
                let batch =
                    (0..IN_FLIGHT).map(|_| runtime.start(Launch::bare("hello"), context(&tx)));
                for finished in futures_util::future::join_all(batch).await {
                    assert_eq!(finished.output, Output::Text("hello".into()));
                }
            }
            Ok(())
        })
    })?;
    Ok(seconds / runs as f64)
}
