//! The operator's command that is told what happens in a tree while it happens.
//!
//! ```text
//!   events ──▶ fold of the tree ──▶ lines that wait ──▶ one command at a time, on its standard input
//!   silences, looked at when the longest could be over ──┘
//! ```
//!
//! A failure of the command is a warning: no run waits for it. Events that were recorded in an earlier life of a tree are not told
//! again.

use std::collections::HashSet;
use std::time::Duration;

use offshoot_config::{Config, NotifySettings, Occasion};
use offshoot_display::json::{self, Document, Format};
use offshoot_display::{number, why};
use offshoot_host::OperatorCommands;
use offshoot_model::{Event, EventKind, Reason, RunId, Timestamp, Tree};
use offshoot_process::Processes;
use offshoot_spawner::{Agents, Clock, SystemClock};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::operator_command::OperatorCommand;
use crate::code::NoteCode;
use crate::invocation::Invocation;
use crate::output::Output;

/// The command, and what it is told.
#[derive(Clone, Debug)]
pub(crate) struct Notify {
    command: OperatorCommand,
    settings: NotifySettings,
    /// Events from before are those of an earlier life of the tree.
    since: Timestamp,
}

/// One thing that happened.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told<'a> {
    on: Occasion,
    root_id: RunId,
    run_id: RunId,
    agent: Option<&'a str>,
    label: Option<&'a str>,
    #[serde(serialize_with = "offshoot_model::rfc3339")]
    at: Timestamp,
    /// The words for people.
    text: String,
    /// The event as `events --json` prints it; none for a silence, which is no event.
    event: Option<Box<RawValue>>,
}

impl Notify {
    /// Takes the command from the configuration; none where there is none.
    pub(crate) fn new(
        config: &Config,
        processes: Processes,
        since: Timestamp,
        cx: &Invocation,
    ) -> Option<Self> {
        let settings = config.notify().clone();
        let words = settings.command.as_ref()?;
        let folder = words.origin.project().unwrap_or(&cx.environment.working_folder).into();
        let command = OperatorCommand::new(&words.value, folder, &cx.environment, processes);
        Some(Self { command, settings, since })
    }

    /// Tells of a tree until it is over and its end was told.
    pub(crate) fn follow(&self, session: &offshoot_host::Tree, output: Output) -> Telling {
        let teller = Teller {
            notify: self.clone(),
            commands: session.operator_commands(),
            agents: session.agents(),
            tree: Tree::new(),
            silent: HashSet::new(),
            lines: String::new(),
        };
        let mut task = JoinSet::new();
        task.spawn(teller.run(session.events(), output));
        Telling(task)
    }
}

/// The task that tells of a tree. Dropped, it tells no more.
#[derive(Debug, Default)]
pub(crate) struct Telling(JoinSet<()>);

impl Telling {
    /// The same for a tree that failed, of which the events may have no end.
    pub(crate) async fn finish_soon(self) {
        // What is not told by then stays untold: the failure itself is printed.
        drop(tokio::time::timeout(Duration::from_secs(10), self.finish()).await);
    }

    /// Waits until all was told.
    pub(crate) async fn finish(mut self) {
        if let Some(Err(error)) = self.0.join_next().await {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}

/// The state of one tree.
struct Teller {
    notify: Notify,
    commands: OperatorCommands,
    agents: Agents,
    tree: Tree,
    /// The silent runs that were told.
    silent: HashSet<RunId>,
    /// The lines that were not told yet.
    lines: String,
}

impl Teller {
    /// Tells the command of `notify` until the tree is over.
    async fn run(mut self, mut events: offshoot_spawner::EventStream, output: Output) {
        let looks = self.notify.settings.is_told(Occasion::Silent);
        let command = self.notify.command.clone();
        let mut next_look = Instant::now() + self.notify.settings.silence();
        let (mut is_over, mut telling) = (false, None);
        while !is_over || telling.is_some() || !self.lines.is_empty() {
            if telling.is_none() && !self.lines.is_empty() {
                let lines = std::mem::take(&mut self.lines);
                telling = Some(Box::pin(command.tell(lines, Some(self.commands.clone()))));
            }
            tokio::select! {
                told = async { telling.as_mut().expect("it is asked for").await },
                    if telling.is_some() =>
                {
                    telling = None;
                    if let Err(failure) = told {
                        output.warning(NoteCode::NotifyFailed, format_args!("`notify.command` was not told: {failure}"));
                    }
                }
                event = events.next(), if !is_over => match event {
                    Some(Ok(event)) => self.take(&event),
                    // A record that cannot be read any more is reported by what waits for the answer.
                    Some(Err(_)) | None => is_over = true,
                },
                () = sleep_until(next_look), if looks && !is_over => {
                    next_look = Instant::now() + self.look().await;
                }
            }
        }
    }

    fn take(&mut self, event: &Event) {
        self.tree.apply(event);
        if event.at < self.notify.since {
            return;
        }
        let Some((occasion, text)) = self.occasion(event) else { return };
        self.tell(occasion, event.run, event.at, text, Some(event));
    }

    /// Returns what an event means to the operator; the first that is wanted.
    fn occasion(&self, event: &Event) -> Option<(Occasion, String)> {
        let wanted = |occasion| self.notify.settings.is_told(occasion).then_some(occasion);
        let on = match &event.kind {
            EventKind::Ended(ending) => {
                let failed = !ending.reason.status().is_success()
                    && !matches!(ending.reason, Reason::Cancelled { .. });
                let is_root = event.run == event.root.run();
                let ended = wanted(Occasion::Ended).filter(|_| is_root);
                let on = ended.or_else(|| wanted(Occasion::Failed).filter(|_| failed))?;
                let node = self.tree.get(event.run)?;
                return Some((on, why(node).unwrap_or_else(|| ending.reason.to_string())));
            }
            EventKind::Resumed { after: Some(_), .. }
            | EventKind::Paused
            | EventKind::Parked { .. }
            | EventKind::BreakerOpened { .. } => Occasion::Parked,
            EventKind::BudgetNotice => Occasion::Budget80,
            _ => return None,
        };
        Some((wanted(on)?, event.kind.text()))
    }

    /// Tells of runs that have become silent. Returns when the next one can be.
    async fn look(&mut self) -> Duration {
        let threshold = self.notify.settings.silence();
        // Of a tree that is just over nothing is silent.
        let silences = self.agents.silences().await.unwrap_or_default();
        let mut longest = Duration::ZERO;
        for (run, silence) in silences {
            if silence < threshold {
                self.silent.remove(&run);
                longest = longest.max(silence);
            } else if self.silent.insert(run) {
                let text = format!("silent for {}", number::duration(silence));
                self.tell(Occasion::Silent, run, SystemClock.now(), text, None);
            }
        }
        threshold - longest
    }

    fn tell(
        &mut self,
        on: Occasion,
        run: RunId,
        at: Timestamp,
        text: String,
        event: Option<&Event>,
    ) {
        let node = self.tree.get(run);
        let told = Told {
            on,
            root_id: self.agents.root().run(),
            run_id: run,
            agent: node.map(|node| node.agent.as_str()),
            label: node.and_then(|node| node.label.as_deref()),
            at,
            text,
            event: event.map(|event| {
                let text = serde_json::to_string(event).expect("an event is plain data");
                RawValue::from_string(json::printed(text, Document::Event, Format::V2))
                    .expect("what is printed is JSON")
            }),
        };
        self.lines += &serde_json::to_string(&told).expect("what is told is plain data");
        self.lines.push('\n');
    }
}
