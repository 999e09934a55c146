//! The loop around a running program: its lines in, prompts out, turn after turn.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use offshoot_model::{RunId, Stream, Timestamp, ToolUse};
use offshoot_process::{Identity, Lines, Stop, StopHandle, StopReceiver, StopSignal};
use offshoot_runtime::{
    NextTurn, Pressure, RunHost, Secrets, Stop as RunStopRequest, StopSignal as RunStop, Turns,
    UsageListener, UsageRequest,
};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use crate::lines::{Assistant, LONGEST_LINE, Line, QuotaLeft, parse_without};
use crate::parking::{AT_ONCE, KeptProcesses, Parking};
use crate::talk::{BASELINE, Effect, Talk, USAGE};
use crate::{ClaudeOptions, prompt};

/// Puts lines together from what the program prints, and hands them on.
pub(crate) struct Feed {
    lines: Lines,
    secrets: Secrets,
    host: RunHost,
    tx: mpsc::UnboundedSender<Line>,
}

/// One process of a session, and the parts that its loop works with.
pub(crate) struct Session<'a> {
    pub(crate) run: RunId,
    pub(crate) process: Identity,
    /// The number of messages that were sent to it.
    pub(crate) sent: u16,
    /// The number of times that it was asked what the session has used.
    pub(crate) asked: u64,
    /// Requests of others for the same, each with the first of ours whose answer is one to it.
    pub(crate) requests: Vec<(u64, UsageRequest)>,
    /// The source of these requests.
    pub(crate) usage: &'a mut UsageListener,
    pub(crate) lines: mpsc::UnboundedReceiver<Line>,
    /// Closed when this process gets no further turn.
    pub(crate) stdin: Option<pipe::Sender>,
    pub(crate) host: RunHost,
    /// Requests to stop from outside; the process itself hears them too.
    pub(crate) stop: RunStop,
    /// Requests to stop by this runtime.
    pub(crate) end: StopHandle,
    /// Between asking it to go and killing it.
    pub(crate) grace: Duration,
    pub(crate) options: &'a ClaudeOptions,
    pub(crate) parked: &'a KeptProcesses,
    pub(crate) pressure: &'a Pressure,
    /// The state that outlives the process.
    pub(crate) thread: &'a mut Thread,
}

/// The state of a session over all its processes.
pub(crate) struct Thread {
    pub(crate) talk: Talk,
    pub(crate) turns: Turns,
}

/// The continuation after a turn.
enum Next {
    /// Not at all.
    End,
    /// With this prompt.
    Here(String),
    /// With this prompt, in another process.
    Elsewhere(String),
}

/// Requests to stop, from others and from ourselves, in the words of processes.
///
/// A soft request of others reaches the process late: until then its session asks the program to break off its turn, because
/// it tells what that turn has cost only if it ends it by itself.
pub(crate) struct StopRequests {
    run: RunStop,
    own: StopReceiver,
    /// The moment at which the process is stopped all the same, and the time that it has then.
    late: Option<(Instant, Duration)>,
}

/// A feed and where its lines come out. What they say is kept by the host; that, and the tools in them, is told without these
/// secrets.
///
/// There is no bound: a feed must not wait, and its reader runs in the same task, after each block. What can gather is what
/// the program prints while a prompt is being written, which is little, because it waits for the prompt.
pub(crate) fn feed(secrets: Secrets, host: RunHost) -> (Feed, mpsc::UnboundedReceiver<Line>) {
    let (tx, rx) = mpsc::unbounded_channel();
    (Feed { lines: Lines::new(LONGEST_LINE), secrets, host, tx }, rx)
}

impl Feed {
    pub(crate) fn feed(&mut self, block: &[u8]) {
        let Self { lines, secrets, host, tx } = self;
        lines.feed(block, |line| {
            let line = parse_without(secrets, line);
            keep(&line, secrets, host);
            // An error says that the run was dropped: its lines have no reader.
            drop(tx.send(line));
        });
    }
}

/// Keeps what a line says for people: text, tools, and what is no message.
fn keep(line: &Line, secrets: &Secrets, host: &RunHost) {
    let said = |stream, text: &str| {
        if !text.trim().is_empty() {
            host.said_line(stream, &secrets.strike_out(text));
        }
    };
    match line {
        Line::Assistant(Assistant { text, calls, error, .. }) => {
            said(if error.is_some() { Stream::Stderr } else { Stream::Stdout }, text);
            // Their inputs are without secrets already.
            calls.iter().for_each(|used| host.said_line(Stream::Stderr, &used.to_string()));
        }
        Line::ToolResults(results) => results.iter().for_each(|text| said(Stream::Stderr, text)),
        Line::Garbage(garbage) => said(Stream::Stderr, garbage),
        _ => {}
    }
}

impl Drop for Feed {
    /// The program has died in the middle of a line, or ends its last one without a newline.
    fn drop(&mut self) {
        if !self.lines.rest().is_empty() {
            let line = parse_without(&self.secrets, self.lines.rest());
            keep(&line, &self.secrets, &self.host);
            let _ = self.tx.send(line);
        }
    }
}

impl Session<'_> {
    /// Runs until the program prints no more. The answer is the prompt with which another process goes on, where one does.
    pub(crate) async fn run(mut self, prompt: &str) -> Option<String> {
        self.ask(BASELINE, "get_usage").await;
        self.say(prompt).await;
        loop {
            let line = tokio::select! {
                biased;
                request = self.stop.heard() => {
                    self.stopped(request).await;
                    continue;
                }
                // A letter that comes with the last line of a turn belongs to the next one.
                line = self.lines.recv() => line,
                request = self.usage.asked() => {
                    self.ask_usage().await;
                    self.requests.push((self.asked, request));
                    continue;
                }
                letter = self.thread.turns.letter(), if self.thread.talk.takes_letters() => {
                    self.say(&letter).await;
                    continue;
                }
            };
            self.host.sign();
            let line = line?;
            if let Line::Retry(retry) = &line
                && let Some(wait) = retry.pressure()
            {
                self.pressure.rises(wait);
            }
            if matches!(line, Line::CallBegan(_)) {
                self.host.answers();
            }
            match self.thread.talk.hear(line) {
                None => {}
                Some(Effect::Told { model, line, tools }) => {
                    tell(&self.host, model, line, tools);
                }
                Some(Effect::BacksOff { why, wait, is_pressure }) => {
                    self.host.backs_off(why, wait, is_pressure);
                }
                Some(Effect::Used) => self.used(),
                Some(Effect::QuotaLeft(quotas)) => tell_quotas(&self.host, quotas),
                Some(Effect::AskUsage) => self.ask_usage().await,
                Some(Effect::Answered(request)) => {
                    self.used();
                    self.answered(&request);
                }
                Some(Effect::TurnEnded) => {
                    self.used();
                    tracing::debug!("turn ended");
                    // The figures of a turn that is over are exact.
                    self.requests.clear();
                    if self.thread.talk.is_interrupted() {
                        self.leave().await;
                        return None;
                    }
                    match self.next_turn().await {
                        Next::Here(prompt) => self.say(&prompt).await,
                        Next::Elsewhere(prompt) => return Some(prompt),
                        Next::End => {
                            self.leave().await;
                            return None;
                        }
                    }
                }
                Some(Effect::End) => self.end.stop(Stop::Firm),
            }
        }
    }

    /// Handles a request to stop. A turn that is under way is broken off by the program itself, which then tells what it has
    /// cost; without one, or where that takes too long, the process is stopped.
    async fn stopped(&mut self, request: RunStopRequest) {
        match request {
            RunStopRequest::Soft { .. } if self.thread.talk.is_at_work() => {
                if !self.thread.talk.is_interrupted() {
                    tracing::debug!("program is asked to break off its turn");
                    self.thread.talk.interrupted();
                    self.ask("interrupt", "interrupt").await;
                }
            }
            RunStopRequest::Soft { grace } => self.end.stop(Stop::Soft { grace }),
            RunStopRequest::Firm => self.end.stop(Stop::Firm),
        }
    }

    async fn ask_usage(&mut self) {
        self.asked += 1;
        self.ask(&format!("{USAGE}{}", self.asked), "get_usage").await;
    }

    /// The program has answered this request, and each before it.
    fn answered(&mut self, request: &str) {
        let number = request.strip_prefix(USAGE).and_then(|number| number.parse().ok());
        if let Some(number) = number {
            self.requests.retain(|(asked, _)| *asked > number);
        }
    }

    /// Tells that the turn is over, and hears how it goes on. The process waits, or goes meanwhile.
    async fn next_turn(&mut self) -> Next {
        let Thread { talk, turns, .. } = &mut *self.thread;
        // A failed turn is the end, whatever results of children are still to come.
        let Some(answer) = talk.answer().map(Arc::from) else { return Next::End };
        let resumable = talk.session().is_some();
        let place = self.parked.park();
        let patience = match self.options.parking {
            parking if resumable => parking.keeps(place.taken),
            _ => Parking::Keep.keeps(place.taken),
        };
        let ends_for_others = resumable && self.options.parking == Parking::Auto;
        let asked = turns.ended(Some(answer));
        tokio::pin!(asked);
        let (lines, host, usage, stop) =
            (&mut self.lines, &self.host, &mut *self.usage, &mut self.stop);
        let kept = async {
            loop {
                tokio::select! {
                    biased;
                    next = &mut asked => return Some(next),
                    // It costs nothing now, so it need not break anything off.
                    () = stopped(stop) => return Some(NextTurn::End),
                    // It uses nothing between its turns.
                    request = usage.asked() => drop(request),
                    line = lines.recv() => {
                        host.sign();
                        match talk.hear(line?) {
                            Some(Effect::Told { model, line, tools }) => tell(host, model, line, tools),
                            Some(Effect::QuotaLeft(quotas)) => tell_quotas(host, quotas),
                            Some(Effect::Used | Effect::TurnEnded) => used(talk, host),
                            // Between its turns it asks for nothing.
                            Some(Effect::BacksOff { .. } | Effect::End) | None => {}
                            Some(Effect::AskUsage | Effect::Answered(_)) => {}
                        }
                    }
                }
            }
        };
        let wanted_by_others = async {
            loop {
                host.memory_short().await;
                sleep_until(Instant::now() + AT_ONCE).await;
                // It may be enough again.
                if host.memory_short().now_or_never().is_some() {
                    return;
                }
            }
        };
        let next = tokio::select! {
            biased;
            next = timeout(patience, kept) => next.ok().flatten(),
            () = wanted_by_others, if ends_for_others => None,
        };
        match next {
            Some(NextTurn::Go(prompt)) => return Next::Here(prompt),
            Some(NextTurn::End) => return Next::End,
            // It went by itself, or has to go now.
            None => {}
        }
        drop(place);
        tracing::debug!("process goes while the run waits");
        self.stdin = None;
        let exit = Exit { lines, usage, end: &self.end, stop, grace: self.grace };
        exit.passed(self.options.linger, talk).await;
        tokio::select! {
            biased;
            // A run that is being stopped takes no further turn.
            () = stopped(&mut self.stop) => Next::End,
            next = asked => match next {
                NextTurn::Go(prompt) => Next::Elsewhere(prompt),
                NextTurn::End => Next::End,
            },
        }
    }

    /// Listens on until the program is gone, and sees to it that it goes.
    async fn leave(&mut self) {
        self.stdin = None;
        if let Some(RunStopRequest::Soft { grace }) = self.stop.requested() {
            // A part of the grace is gone where it was asked to break off first.
            let interrupted = self.thread.talk.is_interrupted();
            self.end.stop(Stop::Soft { grace: if interrupted { rest(grace) } else { grace } });
        }
        let Self { lines, usage, end, stop, grace, .. } = self;
        let exit = Exit { lines, usage, end, stop, grace: *grace };
        exit.passed(self.options.linger, &mut self.thread.talk).await;
    }

    /// Asks something of the program itself.
    async fn ask(&mut self, id: &str, subtype: &str) {
        if let Some(stdin) = &mut self.stdin {
            // As below.
            let _ = stdin.write_all(&prompt::request(id, subtype)).await;
        }
    }

    async fn say(&mut self, prompt: &str) {
        if let Some(stdin) = &mut self.stdin {
            self.sent = self.sent.wrapping_add(1);
            let id = prompt::message_id(self.run, self.process, self.sent);
            let line = prompt::message(&id, prompt);
            self.thread.talk.said(id);
            // A program that reads no more has ended or is about to, which is what will be told.
            let _ = stdin.write_all(&line).await;
        }
    }

    fn used(&self) {
        used(&self.thread.talk, &self.host);
    }
}

/// The way out of a program that has been told to go.
struct Exit<'a> {
    lines: &'a mut mpsc::UnboundedReceiver<Line>,
    usage: &'a mut UsageListener,
    end: &'a StopHandle,
    stop: &'a RunStop,
    grace: Duration,
}

impl Exit<'_> {
    /// Listens until it is gone; one that lingers is stopped.
    async fn passed(self, linger: Duration, talk: &mut Talk) {
        let Self { lines, usage, end, stop, grace } = self;
        let rest = async {
            loop {
                tokio::select! {
                    // Lines behind the last result say nothing about it.
                    line = lines.recv() => match line {
                        Some(line) => drop(talk.hear(line)),
                        None => return,
                    },
                    // It uses nothing any more.
                    request = usage.asked() => drop(request),
                }
            }
        };
        if timeout(linger, rest).await.is_err() {
            tracing::warn!("program did not end after its last turn, stopped");
            if stop.requested().is_none() {
                talk.lingers();
            }
            end.stop(Stop::Soft { grace });
            while let Some(line) = lines.recv().await {
                talk.hear(line);
            }
        }
    }
}

/// Tells what is left of quotas of the account.
fn tell_quotas(host: &RunHost, quotas: Vec<QuotaLeft>) {
    for QuotaLeft { window, left, resets_at } in quotas {
        // Seconds beyond all reason are no reset.
        let Some(micros) = resets_at.checked_mul(1_000_000) else { continue };
        host.quota_left(window, left, Timestamp::from_micros(micros));
    }
}

fn tell(host: &RunHost, model: Option<String>, line: Option<String>, tools: Vec<ToolUse>) {
    if let Some(model) = model {
        host.model_changed(model);
    }
    if let Some(line) = line {
        host.progress(line);
    }
    tools.into_iter().for_each(|used| host.tool_used(used));
}

fn used(talk: &Talk, host: &RunHost) {
    let meter = talk.meter();
    host.used(meter.usage(), meter.cost());
}

/// Waits until the run is asked to stop.
async fn stopped(stop: &mut RunStop) {
    if stop.requested().is_none() {
        stop.heard().await;
    }
}

impl StopRequests {
    pub(crate) fn new(run: RunStop) -> (StopHandle, Self) {
        let (end, own) = StopHandle::new();
        (end, Self { run, own, late: None })
    }
}

impl StopSignal for StopRequests {
    async fn heard(&mut self) -> Stop {
        loop {
            let late = self.late;
            tokio::select! {
                biased;
                stop = self.run.heard() => match stop {
                    RunStopRequest::Soft { grace } => {
                        // One that no clock reaches never comes.
                        let at = Instant::now().checked_add(grace - rest(grace));
                        self.late = at.map(|at| (at, rest(grace)));
                    }
                    RunStopRequest::Firm => return Stop::Firm,
                },
                stop = self.own.heard() => return stop,
                rest = past(late) => {
                    self.late = None;
                    return Stop::Soft { grace: rest };
                }
            }
        }
    }
}

/// Of the grace of a run, the half that its process has after it was signalled. In the other half the program may break off
/// by itself.
fn rest(grace: Duration) -> Duration {
    grace / 2
}

/// Waits until the process is late, and returns the time that it has left. Waits for ever where the process cannot be late.
async fn past(late: Option<(Instant, Duration)>) -> Duration {
    match late {
        Some((at, rest)) => {
            sleep_until(at).await;
            rest
        }
        None => std::future::pending().await,
    }
}
