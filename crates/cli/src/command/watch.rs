//! `offshoot watch`.

mod act;
mod arrivals;
mod events;
mod said;
mod trees;

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use clap::Args;
use futures_util::StreamExt;
use futures_util::future::{FutureExt, LocalBoxFuture};
use futures_util::stream::FuturesUnordered;
use offshoot_door::{Activities, Activity};
use offshoot_model::{EventKind, RootId, RunId};
use offshoot_spawner::{Clock, SystemClock};
use offshoot_watch::{Intent, News, Screen};
use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::time::{Interval, MissedTickBehavior, interval};

use self::arrivals::Found;
use self::said::Wanted;
use self::trees::Trees;
use crate::code::FailureCode;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::output::{Loudness, Output};
use crate::record::Record;
use crate::terminal::{self, Pressed, Terminal};
use crate::work::engine::block_on;
use crate::work::interrupt::Interrupts;

/// Show trees live on the whole terminal: what runs, what is silent, what it says
///
/// Lists the runs with their status, time, silence, tokens and cost, and shows of the selected one its output, what it was asked and
/// granted, and its events. From here a run is cancelled, a tree paused, a budget raised, a letter written. A tree that is over is
/// shown too, and `r` replays it. To leave (`q`) ends nothing.
#[derive(Debug, Args)]
#[command(after_help = after_help())]
pub(crate) struct WatchArguments {
    /// A run with what is below it [default: all trees of this user that run, of any data folder]; a run id, its unique beginning, a
    /// session key, a label, `last`, `main` or `@N`
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,
}

/// The keys and examples.
fn after_help() -> String {
    let mut text = "Keys:\n".to_owned();
    let keys = offshoot_watch::KEYS;
    let width = keys.iter().map(|(key, _)| key.chars().count()).max().unwrap_or(0);
    for (key, what) in keys {
        text.push_str(&format!("  {key:width$}  {what}\n"));
    }
    text.push_str(
        "
Of the output, lines on standard error begin with `!`. Colours are off with NO_COLOR.

Examples:
  offshoot watch
  offshoot watch last
  offshoot watch 0198c7a2-41f3",
    );
    text
}

/// News for the screen, from whatever thread.
pub(super) enum Told {
    /// Events of a tree, in order.
    Events(Vec<offshoot_model::Event>),
    /// All that was on record was told.
    Read,
    /// The supervisor of a tree has gone, and all that it has recorded was told.
    Gone(RootId),
    /// Lines that a run said.
    Said(RunId, News),
    /// A supervisor of this user has come or gone.
    Arrivals,
    /// Something cannot be read.
    Failed(Failure),
}

/// The end of an action that the screen has asked for.
enum Done {
    Acted(Result<String, Failure>),
    Silences(HashMap<RunId, Duration>),
    /// Trees that were not shown before.
    Found(Result<Found, Failure>),
}

/// Ages are drawn anew so often, and silences asked for.
const TICK: Duration = Duration::from_secs(1);

/// The time of a replay goes on so often.
const PLAY: Duration = Duration::from_millis(50);

/// Pictures are at least so far apart: what happens meanwhile is in the next one.
const FRAME: Duration = Duration::from_millis(33);
/// So many frames are left out while the record is read at first: a small one is shown whole, and a large one as far as it is read.
const LEFT_OUT: u32 = 3;

/// Messages to the screen that wait for a picture. More would only be memory: their senders wait.
const UNTOLD: usize = 16;

/// Shows a tree on the terminal until the user leaves.
pub(crate) fn run(arguments: &WatchArguments, cx: &Invocation) -> Result<Exit, Failure> {
    if !terminal::is_there() {
        return Err(Failure::input(
            FailureCode::NoTerminal,
            "`watch` draws on a terminal, and there is none",
        )
        .hint("`offshoot tree RUN` prints the tree once, `offshoot events -f RUN` what happens"));
    }
    if cx.environment.log.is_some() && cx.global.log_file.is_none() && terminal::has_messages() {
        let failure = "`watch` draws on the terminal to which OFFSHOOT_LOG logs";
        return Err(Failure::input(FailureCode::LogOnTerminal, failure)
            .hint("log to a file with `--log-file FILE`, or unset OFFSHOOT_LOG"));
    }
    // Notes would stand across the screen.
    let cx = Invocation { output: Output::new(Loudness::Quiet, false), ..cx.clone() };
    let mut screen = Screen::new(SystemClock.now());
    let trees = Arc::new(Trees::new(cx.clone()));
    if let Some(run) = &arguments.run {
        let (record, found) = Record::open_to_look(&cx, run)?;
        if found.run != found.root.run() {
            screen = screen.top(found.run);
        }
        trees.add(found.root, record, None);
    } else {
        screen.is_read();
    }
    block_on(show(screen, trees, arguments.run.is_none()))
}

/// Shows trees until the user leaves; with `all` each that a supervisor of this user runs, also those that come later.
async fn show(mut screen: Screen, trees: Arc<Trees>, all: bool) -> Result<Exit, Failure> {
    let (tx, mut told) = mpsc::channel(UNTOLD);
    let (look, looked) = watch::channel(Wanted::default());
    for (root, record) in trees.records() {
        events::follow(root, record, tx.clone())?;
    }
    said::follow(Arc::clone(&trees), looked, tx.clone())?;
    if all {
        arrivals::follow(&trees.cx, tx.clone())?;
    }
    let mut interrupts = Interrupts::listen()?;
    let stop = SignalKind::from_raw(Signal::TSTP.as_raw());
    let mut stopped = signal(stop).map_err(|error| {
        Failure::new(FailureCode::NoSignals, Exit::NoRuntime, "cannot listen for signals")
                .hint("the system has too few threads or descriptors left: end other programs, or raise `ulimit -n -u`")
            .caused_by(Some(&error))
    })?;
    let mut terminal = Terminal::open()?;
    let mut doing: FuturesUnordered<LocalBoxFuture<'_, Done>> = FuturesUnordered::new();
    let [mut tick, mut play, mut frame] = [TICK, PLAY, FRAME].map(every);
    let (mut is_new, mut is_asking, mut left_out) = (true, false, 0);
    // Supervisors that have come before; later also those that did not yet answer when they came.
    let mut is_sought = all;
    loop {
        tokio::select! {
            biased;
            () = interrupts.hear() => return Ok(Exit::Interrupted),
            _ = stopped.recv() => terminal.suspend()?,
            pressed = terminal.pressed() => {
                let intent = match pressed {
                    Pressed::Key(key) => screen.key(key),
                    Pressed::Nothing => None,
                    Pressed::Drawn => continue,
                    Pressed::End => return Ok(Exit::Interrupted),
                };
                match intent {
                    None => {}
                    Some(Intent::Quit) => return Ok(Exit::Done),
                    Some(Intent::Suspend) => terminal.suspend()?,
                    Some(Intent::Redraw) => terminal.redraw(),
                    Some(Intent::Copy(text)) => {
                        terminal.copy(&text);
                        screen.told(Ok(format!("copied: {text}")));
                    }
                    Some(intent) => {
                        let paused_since = match intent {
                            Intent::Pause { root, .. } => screen.paused(root),
                            _ => None,
                        };
                        let act = act::act(intent, paused_since, Arc::clone(&trees));
                        doing.push(act.map(Done::Acted).boxed_local());
                    }
                }
            }
            _ = frame.tick(), if is_new && terminal.is_ready() => {
                if screen.reads() && left_out < LEFT_OUT {
                    left_out += 1;
                    continue;
                }
                terminal.draw(&mut screen)?;
                is_new = false;
                continue;
            }
            Some(done) = doing.next(), if !doing.is_empty() => match done {
                Done::Acted(outcome) => screen.told(outcome.map_err(|failure| failure.to_string())),
                Done::Silences(silences) => {
                    is_asking = false;
                    screen.silences(silences, SystemClock.now());
                }
                Done::Found(Ok(Found { new, later })) => {
                    for (root, record, folder) in new {
                        screen.folder(root, folder);
                        events::follow(root, record, tx.clone())?;
                    }
                    is_sought = later;
                }
                Done::Found(Err(failure)) => screen.told(Err(failure.to_string())),
            },
            _ = tick.tick() => {
                screen.tick(SystemClock.now());
                if std::mem::take(&mut is_sought) {
                    doing.push(arrivals::find(Arc::clone(&trees)).map(Done::Found).boxed_local());
                }
                if !is_asking {
                    is_asking = true;
                    let open: Vec<RootId> = screen.open().collect();
                    doing.push(silences(Arc::clone(&trees), open).map(Done::Silences).boxed_local());
                }
            }
            _ = play.tick(), if screen.is_playing() => screen.tick(SystemClock.now()),
            Some(told) = told.recv() => match told {
                Told::Events(events) => for event in events {
                    // What its runs say from now on is looked for again.
                    if matches!(event.kind, EventKind::Reopened) {
                        look.send_modify(|wanted| wanted.changes += 1);
                    }
                    screen.event(event);
                },
                Told::Read => {
                    screen.tick(SystemClock.now());
                    screen.is_read();
                }
                Told::Gone(root) => {
                    screen.lose(root);
                    trees.forget(root);
                    look.send_modify(|wanted| wanted.changes += 1);
                }
                Told::Arrivals => {
                    doing.push(arrivals::find(Arc::clone(&trees)).map(Done::Found).boxed_local());
                }
                Told::Said(run, news) => screen.said(run, news),
                Told::Failed(failure) => screen.told(Err(failure.to_string())),
            },
        }
        is_new = true;
        let run = screen.wants_output();
        look.send_if_modified(|wanted| std::mem::replace(&mut wanted.run, run) != run);
    }
}

fn every(period: Duration) -> Interval {
    let mut interval = interval(period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

/// Starts a thread of this name, which ends with the process if not before.
fn start_thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    let thread = thread::Builder::new().name(name.to_owned()).spawn(work);
    thread.map(drop).map_err(|error| {
        Failure::new(FailureCode::NoThread, Exit::NoRuntime, "cannot start a thread")
            .hint("the system has too few threads or descriptors left: end other programs, or raise `ulimit -n -u`")
            .caused_by(Some(&error))
    })
}

/// The time for which each run of these trees has been silent. Of a tree whose supervisor does not answer nothing is known.
async fn silences(trees: Arc<Trees>, open: Vec<RootId>) -> HashMap<RunId, Duration> {
    let mut silences = HashMap::new();
    for root in open {
        let Ok(supervisor) = trees.supervisor(root).await else { continue };
        match supervisor.call(Activity {}).await {
            Ok(Activities { runs }) => silences.extend(
                runs.into_iter().map(|run| (run.run_id, Duration::from_millis(run.silent_ms))),
            ),
            Err(_) => trees.forget(root),
        }
    }
    silences
}
