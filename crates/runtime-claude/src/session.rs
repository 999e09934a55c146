//! The loop around a running program: its lines in, prompts out, turn after turn.

use std::time::Duration;

use offshoot_process::{Lines, Stop, StopHandle, StopReceiver, StopSignal};
use offshoot_runtime::{RunHost, StopSignal as RunStop};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::lines::{LONGEST_LINE, Line, parse};
use crate::prompt;
use crate::talk::{Effect, Talk};

/// How it goes on after a turn.
enum NextTurn {
    /// Not at all.
    End,
    /// With this prompt.
    #[expect(dead_code, reason = "the contract has no way to give one yet")]
    Go(String),
}

/// Puts lines together from what the program prints, and hands them on.
pub(crate) struct Feed {
    lines: Lines,
    tx: mpsc::UnboundedSender<Line>,
}

/// What the loop works with.
pub(crate) struct Session {
    pub(crate) lines: mpsc::UnboundedReceiver<Line>,
    /// Closed when there will be no further turn.
    pub(crate) stdin: Option<pipe::Sender>,
    pub(crate) host: RunHost,
    /// What others ask; the program's own ear hears it too.
    pub(crate) stop: RunStop,
    /// What we ask ourselves.
    pub(crate) end: StopHandle,
    /// Between asking it to go and killing it.
    pub(crate) grace: Duration,
    /// See [`ClaudeOptions`](crate::ClaudeOptions).
    pub(crate) linger: Duration,
    pub(crate) talk: Talk,
}

/// Requests to stop, from others and from ourselves, in the words of processes.
pub(crate) struct Ear {
    run: RunStop,
    own: StopReceiver,
}

/// A feed and where its lines come out.
///
/// There is no bound: a feed must not wait, and its reader runs in the same task, after each block. What can gather is what
/// the program prints while a prompt is being written, which is little, because it waits for the prompt.
pub(crate) fn feed() -> (Feed, mpsc::UnboundedReceiver<Line>) {
    let (tx, rx) = mpsc::unbounded_channel();
    (Feed { lines: Lines::new(LONGEST_LINE), tx }, rx)
}

impl Feed {
    pub(crate) fn feed(&mut self, block: &[u8]) {
        let tx = &self.tx;
        // Nobody listens any more where the run was dropped: then nobody is left to be told.
        self.lines.feed(block, |line| drop(tx.send(parse(line))));
    }
}

impl Drop for Feed {
    /// The program has died in the middle of a line, or ends its last one without a newline.
    fn drop(&mut self) {
        if !self.lines.rest().is_empty() {
            let _ = self.tx.send(parse(self.lines.rest()));
        }
    }
}

impl Session {
    /// Runs until the program prints no more, and answers what is known of it then.
    pub(crate) async fn run(mut self, prompt: String) -> Talk {
        self.say(&prompt).await;
        while let Some(line) = self.lines.recv().await {
            match self.talk.hear(line) {
                None => {}
                Some(Effect::Progress(text)) => self.host.progress(text),
                Some(Effect::Used) => self.used(),
                Some(Effect::TurnEnded) => {
                    self.used();
                    match self.next_turn().await {
                        NextTurn::Go(prompt) => {
                            self.talk.turn_begins();
                            self.say(&prompt).await;
                        }
                        NextTurn::End => {
                            self.stdin = None;
                            return self.leave().await;
                        }
                    }
                }
                Some(Effect::End) => self.end.stop(Stop::Firm),
            }
        }
        self.talk
    }

    /// Asks how it goes on. So far nobody has more to say than the first prompt.
    async fn next_turn(&mut self) -> NextTurn {
        NextTurn::End
    }

    /// Listens on until the program is gone, and sees to it that it goes.
    async fn leave(mut self) -> Talk {
        let talk = &mut self.talk;
        let lines = &mut self.lines;
        let rest = async {
            while let Some(line) = lines.recv().await {
                // What comes behind the last result says nothing about it.
                talk.hear(line);
            }
        };
        if timeout(self.linger, rest).await.is_err() {
            if self.stop.requested().is_none() {
                self.talk.lingers();
            }
            self.end.stop(Stop::Soft { grace: self.grace });
            while let Some(line) = self.lines.recv().await {
                self.talk.hear(line);
            }
        }
        self.talk
    }

    async fn say(&mut self, prompt: &str) {
        if let Some(stdin) = &mut self.stdin {
            // A program that reads no more has ended or is about to, which is what will be told.
            let _ = stdin.write_all(&prompt::message(prompt)).await;
        }
    }

    fn used(&self) {
        let meter = self.talk.meter();
        self.host.used(meter.usage(), meter.cost());
    }
}

impl Ear {
    pub(crate) fn new(run: RunStop) -> (StopHandle, Self) {
        let (end, own) = StopHandle::new();
        (end, Self { run, own })
    }
}

impl StopSignal for Ear {
    async fn heard(&mut self) -> Stop {
        tokio::select! {
            biased;
            stop = self.run.heard() => match stop {
                offshoot_runtime::Stop::Soft { grace } => Stop::Soft { grace },
                offshoot_runtime::Stop::Firm => Stop::Firm,
            },
            stop = self.own.heard() => stop,
        }
    }
}
