//! Everything that the contract asks, asked across the interface: what `offshoot plugin check` does.
//!
//! It runs in a process of its own, and each rule is announced before it is tried: a plugin that ends that process breaks
//! the rule that was announced last.

mod children;
mod listener;
mod merge;
mod probing;
mod runtime;

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use offshoot_model::{JsonText, path_text};
use offshoot_process::{Options, Processes};
use offshoot_runtime::contract::{Note, Violation};
use serde::{Deserialize, Serialize};

use crate::error::PluginError;
use crate::host::Surroundings;
use crate::plugin::Plugin;
use crate::search::Checked;
use crate::trial::{Ended, Trier, child, mark, marked};

/// The parts that are to be checked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Suite {
    /// The settings of the plugin.
    pub config: JsonText,
    /// The runtimes, each with its settings.
    pub runtimes: Vec<(String, JsonText)>,
    /// The merges, each with its settings.
    pub merges: Vec<(String, JsonText)>,
    /// A task that the runtimes complete by themselves.
    pub task: String,
    /// A task that they do not end before they are stopped.
    pub hanging_task: Option<String>,
    /// A task with which they ask for a child, wait for it, and complete.
    pub asking_task: Option<String>,
}

/// The finding about one rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The subject of the finding: `runtime upper`.
    pub subject: String,
    /// The rule, as a sentence.
    pub rule: String,
    /// The verdict about it.
    pub verdict: Verdict,
}

/// The verdict about a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The rule holds.
    Kept,
    /// The rule is broken, and this was seen instead.
    Broken(String),
    /// The rule could not be tried.
    Skipped(String),
}

#[derive(Serialize, Deserialize)]
struct Order {
    #[serde(with = "path_text")]
    library: PathBuf,
    suite: Suite,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Trying { subject: String, rule: String },
    Found(Finding),
    Unusable { message: String, hint: Option<String>, details: Option<String> },
}

/// Longer than all rules together take on a slow machine.
const LIMIT: Duration = Duration::from_secs(300);
/// No rule waits longer for anything: a plugin that answers later breaks it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// The time that a plugin may take to end.
const GRACE: Duration = Duration::from_secs(2);

/// Checks a plugin in a process of its own.
///
/// # Errors
/// Fails if it cannot even be loaded.
pub async fn check(
    trier: &Trier,
    checked: &Checked,
    suite: Suite,
) -> Result<Vec<Finding>, PluginError> {
    let path = || checked.path().to_owned();
    let no_trial = |why: String| PluginError::NoTrial { path: path(), why };
    let order = serde_json::to_vec(&Order { library: path(), suite });
    let order = order.map_err(|error| no_trial(error.to_string()))?;
    let Ended { stdout, stderr, how } = child(trier, checked.path(), order, LIMIT).await?;
    let mut findings = Vec::new();
    let mut trying = None;
    for line in marked(&stdout) {
        match serde_json::from_str(line).map_err(|error| no_trial(error.to_string()))? {
            Line::Trying { subject, rule } => trying = Some((subject, rule)),
            Line::Found(finding) => {
                trying = None;
                findings.push(finding);
            }
            Line::Unusable { message, hint, details } => {
                return Err(PluginError::InTrial { message, hint, details });
            }
        }
    }
    match (how, trying) {
        (None, _) => Ok(findings),
        (Some(how), Some((subject, rule))) => {
            let said =
                if stderr.is_empty() { String::new() } else { format!("; it said: {stderr}") };
            let verdict = Verdict::Broken(format!("it ended the process: {how}{said}"));
            findings.push(Finding { subject, rule, verdict });
            Ok(findings)
        }
        (Some(how), None) => Err(PluginError::Died { path: path(), how, stderr }),
    }
}

/// Is the process that checks. Each line goes out before the next rule is tried. A program is started with this environment.
///
/// # Errors
/// Fails if the order cannot be read.
pub async fn suite(
    order: &[u8],
    environment: Vec<(OsString, OsString)>,
    mut out: impl FnMut(&str),
) -> Result<(), serde_json::Error> {
    let Order { library, suite } = serde_json::from_slice(order)?;
    let mut book = Book { out: &mut out };
    if let Err(error) = run(&library, &suite, environment, &mut book).await {
        book.write(&Line::Unusable {
            message: error.to_string(),
            hint: error.hint(),
            details: error.details().map(str::to_owned),
        });
    }
    Ok(())
}

async fn run(
    library: &std::path::Path,
    suite: &Suite,
    environment: Vec<(OsString, OsString)>,
    book: &mut Book<'_>,
) -> Result<(), PluginError> {
    let checked = Checked::file(library)?;
    let surroundings = surroundings(&checked, environment)?;
    let plugin = Arc::new(Plugin::open(&checked, &surroundings)?);
    plugin.init(surroundings, &suite.config)?;
    let probing = probing::check(&plugin, suite, book).await;
    for (name, config) in &suite.runtimes {
        runtime::check(&plugin, name, config, suite, probing, book).await;
    }
    for (name, config) in &suite.merges {
        merge::check(&plugin, name, config, probing, book).await;
    }
    let live = match &suite.hanging_task {
        Some(task) => runtime::under_way(&plugin, suite, task).await,
        None => Vec::new(),
    };
    book.rule("the plugin", "it ends within its grace when it is asked to", async {
        plugin.shutdown(GRACE).await.map_err(|error| error.to_string())
    })
    .await;
    let rule = "runs that are under way end with it";
    match suite.hanging_task {
        Some(_) => book.rule("the plugin", rule, runtime::are_over(live)).await,
        None => book.skip("the plugin", rule, runtime::NO_HANGING_TASK),
    }
    book.rule("the plugin", "it leaves no process behind", async { no_children() }).await;
    Ok(())
}

/// Returns what the plugin is given: a library nothing, a program what starts it.
fn surroundings(
    checked: &Checked,
    environment: Vec<(OsString, OsString)>,
) -> Result<Surroundings, PluginError> {
    if !checked.is_program() {
        return Ok(Surroundings::default());
    }
    let processes = Processes::start(Options::default()).map_err(|error| {
        PluginError::NotStarted { path: checked.path().to_owned(), why: error.to_string() }
    })?;
    let processes = Some(processes);
    Ok(Surroundings { processes, environment, ..Surroundings::default() })
}

/// The book of findings.
pub(crate) struct Book<'a> {
    out: &'a mut dyn FnMut(&str),
}

impl Book<'_> {
    /// Tries a rule: announced first, then what came of it.
    pub(crate) async fn rule(
        &mut self,
        subject: &str,
        rule: &str,
        attempt: impl Future<Output = Result<(), String>>,
    ) {
        let judged = async {
            match attempt.await {
                Ok(()) => Verdict::Kept,
                Err(found) => Verdict::Broken(found),
            }
        };
        self.judge(subject, rule, judged).await;
    }

    /// The same, for a rule of which only the attempt shows whether it can be tried.
    pub(crate) async fn judge(
        &mut self,
        subject: &str,
        rule: &str,
        attempt: impl Future<Output = Verdict>,
    ) {
        let (subject, rule) = (subject.to_owned(), rule.to_owned());
        self.write(&Line::Trying { subject: subject.clone(), rule: rule.clone() });
        let verdict = attempt.await;
        self.write(&Line::Found(Finding { subject, rule, verdict }));
    }

    /// Writes what the contract notes of a rule.
    pub(crate) fn note(&mut self, subject: &str, note: Note) {
        let (rule, verdict) = match note {
            Note::Trying(rule) => {
                let (subject, rule) = (subject.to_owned(), rule.to_owned());
                return self.write(&Line::Trying { subject, rule });
            }
            Note::Kept(rule) => (rule, Verdict::Kept),
            Note::Broken(Violation { rule, found }) => (rule, Verdict::Broken(found)),
        };
        let (subject, rule) = (subject.to_owned(), rule.to_owned());
        self.write(&Line::Found(Finding { subject, rule, verdict }));
    }

    /// A rule that cannot be tried.
    pub(crate) fn skip(&mut self, subject: &str, rule: &str, why: &str) {
        let verdict = Verdict::Skipped(why.to_owned());
        let (subject, rule) = (subject.to_owned(), rule.to_owned());
        self.write(&Line::Found(Finding { subject, rule, verdict }));
    }

    fn write(&mut self, line: &Line) {
        (self.out)(&mark(line).expect("findings are plain data"));
    }
}

/// Waits for something, but not for ever.
pub(crate) async fn soon<T>(what: &str, work: impl Future<Output = T>) -> Result<T, String> {
    let late = |_| format!("{what} took longer than {} s", PATIENCE.as_secs());
    tokio::time::timeout(PATIENCE, work).await.map_err(late)
}

/// Checks that this process has no children.
fn no_children() -> Result<(), String> {
    let tasks = fs::read_dir("/proc/self/task").map_err(|error| error.to_string())?;
    let children =
        tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let left: Vec<String> = children
        .flat_map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    match left.as_slice() {
        [] => Ok(()),
        left => Err(format!("processes {} are left", left.join(", "))),
    }
}
