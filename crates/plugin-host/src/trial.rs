//! The first load of a library, in a process of its own: what ends that one is a message, and not the end of a tree.
//!
//! ```text
//!   try_out ── order, as JSON on standard input ──▶ child: `trial`
//!      ▲                                              │ opens, describes, begins, gives, ends
//!      └── last line of standard output, as JSON ◀────┘ or a signal, which is told as what it is
//! ```

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use offshoot_model::{ContentHash, JsonText, path_text};
use offshoot_plugin_abi::wire::manifest::{self, Manifest};
use offshoot_process::{Exit, Keep, Kept, Processes, Program, Stdin, Stop, StopHandle};
use serde::{Deserialize, Serialize};

use crate::error::PluginError;
use crate::host::Surroundings;
use crate::package::AbiVersion;
use crate::plugin::{Plugin, differs};
use crate::search::Checked;

/// The program that makes trials, and how it is started.
#[derive(Clone, Debug)]
pub struct Trier {
    /// Starts the process.
    pub processes: Processes,
    /// The program that calls [`trial`] when it is given `args`. Absolute.
    pub program: PathBuf,
    /// The arguments of the program.
    pub args: Vec<OsString>,
    /// The environment of the program.
    pub environment: Vec<(OsString, OsString)>,
}

/// The extent of a trial.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Extent {
    /// The settings with which it begins and gives what is named below. Without them it is only asked what it is.
    pub config: Option<JsonText>,
    /// Runtimes that it has to give, with their settings.
    pub runtimes: Vec<(String, JsonText)>,
    /// Merges that it has to give, with their settings.
    pub merges: Vec<(String, JsonText)>,
}

/// The result of a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// The manifest of the plugin.
    pub manifest: Manifest,
    /// The version of the interface that it was built for.
    pub abi: AbiVersion,
}

/// Opening a library takes milliseconds. One that takes longer than this hangs.
const LIMIT: Duration = Duration::from_secs(30);
/// The time that it may take to end what it began.
const GRACE: Duration = Duration::from_secs(2);
/// A manifest is a page; its schema may be some.
const ANSWER_BYTES: usize = 4 << 20;
/// The number of bytes of its last words that the message has.
const SAID_BYTES: usize = 1000;
/// The beginning of our own line: what a plugin prints itself does not begin so.
const MARK: &str = "offshoot-trial:";

#[derive(Serialize, Deserialize)]
struct Order {
    #[serde(with = "path_text")]
    library: PathBuf,
    /// The digest of what was checked: a trial of other bytes says nothing about these.
    digest: ContentHash,
    extent: Extent,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Report {
    Fine { manifest: String, abi: String },
    Wrong { message: String, hint: Option<String>, details: Option<String> },
}

/// Loads a plugin in a process of its own, to see whether it can be loaded here.
///
/// # Errors
/// What was wrong with it there, or what it did to that process.
pub async fn try_out(
    trier: &Trier,
    checked: &Checked,
    extent: &Extent,
) -> Result<Described, PluginError> {
    let path = || checked.path().to_owned();
    let no_trial = |why: String| PluginError::NoTrial { path: path(), why };
    if checked.is_program() {
        // It has a process of its own.
        return attempt(checked, extent, trier.surroundings()).await;
    }
    let order = Order { library: path(), digest: checked.digest(), extent: extent.clone() };
    let order = serde_json::to_vec(&order).map_err(|error| no_trial(error.to_string()))?;
    let Ended { stdout, stderr, how } = child(trier, &path(), order, LIMIT).await?;
    if let Some(how) = how {
        return Err(PluginError::Died { path: path(), how, stderr });
    }
    let report = marked(&stdout).last();
    let report = report.ok_or_else(|| no_trial("it ended without a word".to_owned()))?;
    let described = read(report).unwrap_or_else(|why| Err(no_trial(why)))?;
    let package = checked.package.as_ref();
    match package.and_then(|package| differs(package, &described.manifest)) {
        Some(what) => Err(PluginError::Disagrees { path: path(), what }),
        None => Ok(described),
    }
}

/// The remains of a child that has ended.
pub(crate) struct Ended {
    pub(crate) stdout: String,
    /// The last that it said.
    pub(crate) stderr: String,
    /// The words for its end, where it was unusual.
    pub(crate) how: Option<String>,
}

/// Runs a child with an order on its standard input, for so long at most.
pub(crate) async fn child(
    trier: &Trier,
    library: &Path,
    order: Vec<u8>,
    limit: Duration,
) -> Result<Ended, PluginError> {
    let child = trier
        .processes
        .spawn(Program {
            args: trier.args.clone(),
            env: trier.environment.clone(),
            stdin: Stdin::Bytes(order.into()),
            stdout: Keep::Last(ANSWER_BYTES).into(),
            stderr: Keep::Last(SAID_BYTES).into(),
            ..Program::new(trier.program.clone(), "/")
        })
        .map_err(|error| PluginError::NoTrial {
            path: library.to_owned(),
            why: error.to_string(),
        })?;
    let (handle, stop) = StopHandle::new();
    let waited = child.wait(stop);
    tokio::pin!(waited);
    let (finished, late) = match tokio::time::timeout(limit, &mut waited).await {
        Ok(finished) => (finished, false),
        Err(_) => {
            handle.stop(Stop::Firm);
            (waited.await, true)
        }
    };
    let how = match finished.exit {
        _ if late => Some(format!("it took longer than {} s and was ended", limit.as_secs())),
        Exit::Code(0) => None,
        Exit::Code(code) => Some(format!("it ended with code {code}")),
        Exit::Signal(signal) => Some(format!("it was ended by {}", signal_name(signal))),
        Exit::Lost => Some("how it ended is not known".to_owned()),
    };
    let stderr = text(finished.stderr.kept).trim().to_owned();
    Ok(Ended { stdout: text(finished.stdout.kept), stderr, how })
}

/// The lines that are ours, without their mark.
pub(crate) fn marked(stdout: &str) -> impl DoubleEndedIterator<Item = &str> {
    stdout.lines().filter_map(|line| line.strip_prefix(MARK))
}

/// A line of its own, whatever the plugin has printed before it.
pub(crate) fn mark(report: &impl Serialize) -> Result<String, serde_json::Error> {
    Ok(format!("\n{MARK}{}\n", serde_json::to_string(report)?))
}

/// Is the process that tries: reads the order, loads, and gives back the line to be printed. It must have nothing else
/// to do.
///
/// # Errors
/// Fails if the order cannot be read.
pub fn trial(order: &[u8]) -> Result<String, serde_json::Error> {
    let order: Order = serde_json::from_slice(order)?;
    let report = match load(&order) {
        Ok(Described { manifest, abi }) => {
            Report::Fine { manifest: manifest::encode(manifest), abi: abi.to_string() }
        }
        Err(error) => Report::Wrong {
            message: error.to_string(),
            hint: error.hint(),
            details: error.details().map(str::to_owned),
        },
    };
    mark(&report)
}

fn load(order: &Order) -> Result<Described, PluginError> {
    let checked = Checked::file(&order.library)?;
    if checked.digest() != order.digest {
        return Err(PluginError::Swapped { path: order.library.clone() });
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|source| PluginError::read(checked.path(), source))?;
    let attempt = attempt(&checked, &order.extent, Surroundings::default());
    runtime.block_on(attempt.boxed())
}

async fn attempt(
    checked: &Checked,
    extent: &Extent,
    surroundings: Surroundings,
) -> Result<Described, PluginError> {
    let plugin = Arc::new(Plugin::open(checked, &surroundings)?);
    let tried = extent.try_with(&plugin, surroundings);
    // A library that did not begin has nothing to end.
    if extent.config.is_some() && tried.is_ok() || checked.is_program() {
        plugin.shutdown(GRACE).await?;
    }
    tried?;
    Ok(Described { manifest: plugin.manifest().clone(), abi: plugin.abi() })
}

impl Extent {
    fn try_with(
        &self,
        plugin: &Arc<Plugin>,
        surroundings: Surroundings,
    ) -> Result<(), PluginError> {
        let Some(config) = &self.config else { return Ok(()) };
        plugin.init(surroundings, config)?;
        for (name, config) in &self.runtimes {
            drop(plugin.runtime(name, config)?);
        }
        for (name, config) in &self.merges {
            drop(plugin.merge(name, config)?);
        }
        Ok(())
    }
}

impl Trier {
    fn surroundings(&self) -> Surroundings {
        Surroundings {
            log: None,
            processes: Some(self.processes.clone()),
            offshoot: Some(self.program.clone()),
            environment: self.environment.clone(),
        }
    }
}

fn read(report: &str) -> Result<Result<Described, PluginError>, String> {
    let report = serde_json::from_str(report).map_err(|error| error.to_string())?;
    Ok(match report {
        Report::Fine { manifest, abi } => Ok(Described {
            manifest: manifest::decode(&manifest).map_err(|error| error.to_string())?,
            abi: AbiVersion::parse(&abi).ok_or("it has no version")?,
        }),
        Report::Wrong { message, hint, details } => {
            Err(PluginError::InTrial { message, hint, details })
        }
    })
}

fn text(kept: Kept) -> String {
    match kept {
        Kept::Memory(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Kept::File(_) => String::new(),
    }
}

/// The names of the signals by which broken code ends.
fn signal_name(signal: i32) -> String {
    let name = match signal {
        4 => "SIGILL: an instruction that this processor does not have",
        6 => "SIGABRT: it aborted",
        7 => "SIGBUS: its file is shorter than it was",
        8 => "SIGFPE: an arithmetic fault",
        9 => "SIGKILL",
        11 => "SIGSEGV: it touched memory that is not its own",
        _ => return format!("signal {signal}"),
    };
    name.to_owned()
}
