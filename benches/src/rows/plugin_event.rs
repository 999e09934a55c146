//! Events of a plugin's run, on their way to the receiver of a channel.

use offshoot_plugin_host::{Checked, PluginRuntime};
use offshoot_runtime::{Launch, RunEvent, Runtime};
use tokio::sync::mpsc;

use super::Row;
use crate::Result;
use crate::comparison::{Side, compare, timed};
use crate::outcome::{Outcome, Unit};
use crate::plugins::{context, copy, load, settings};
use crate::setting::Setting;

pub(crate) const ROW: Row = Row {
    name: "plugin-event",
    what: "an event of a plugin, from its run through a channel to a listener",
    measure,
};

/// The floor: a thread of this process that tells as many by the same channel.
const CHANNEL: &str = "a thread and the same channel";

fn measure(setting: &Setting) -> Result<Outcome> {
    let events = setting.pick(1_000_000, 10_000);
    let folder = setting.scratch()?;
    let plugin = load(&Checked::file(&copy("misbehave", folder.path())?)?)?;
    let flood = plugin.runtime("misbehave", &settings()?)?;
    let ours = || ours(setting, &flood, events);
    let samples = compare(
        setting,
        setting.rounds(),
        vec![Side::new("offshoot", ours), Side::new(CHANNEL, || channel(setting, events))],
    )?;
    Ok(Outcome::new(Unit::Seconds("event"), samples)
        .at_most("offshoot", 300e-9)
        .beside("offshoot", CHANNEL)
        .note("where the listener is faster than the teller, it is woken for most events: then that is most of the time"))
}

/// The same events without a plugin.
fn channel(setting: &Setting, events: u64) -> Result<f64> {
    let (tx, mut rx) = mpsc::unbounded_channel();
    let (seconds, heard) = timed(|| {
        let teller = std::thread::spawn(move || {
            (0..events).all(|line| tx.send(RunEvent::Progress(line.to_string().into())).is_ok())
        });
        let heard = setting.runtime()?.block_on(async {
            let mut heard = 0;
            while let Some(event) = rx.recv().await {
                heard += u64::from(matches!(event, RunEvent::Progress(_)));
            }
            heard
        });
        assert!(teller.join().is_ok_and(|told| told), "each is told");
        Ok(heard)
    })?;
    assert_eq!(heard, events, "each is heard");
    Ok(seconds / events as f64)
}

fn ours(setting: &Setting, flood: &PluginRuntime, events: u64) -> Result<f64> {
    let (tx, mut rx) = mpsc::unbounded_channel();
    let (seconds, heard) = timed(|| {
        Ok(setting.runtime()?.block_on(async {
            let run = flood.start(Launch::bare(format!("flood {events}")), context(&tx));
            drop(tx);
            let hear = async {
                let mut heard = 0;
                while let Some(event) = rx.recv().await {
                    heard += u64::from(matches!(event, RunEvent::Progress(_)));
                }
                heard
            };
            tokio::join!(run, hear).1
        }))
    })?;
    assert_eq!(heard, events, "each is heard");
    Ok(seconds / events as f64)
}
