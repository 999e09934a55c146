//! The loop of one run: ask, use tools, ask again, until an answer stands; then perhaps a further turn.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use offshoot_model::{CancelledBy, Reason, Refusal, Stream, error_chain};
use offshoot_runtime::{
    Finished, NextTurn, Output, OutputFormat, Pressure, RunHost, SaidStream, Secrets, Turns,
    WaitFor, WaitMode,
};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::chunk::Chunk;
use crate::compaction::Due;
use crate::context::Sources;
use crate::failure::Failure;
use crate::history::{History, Message};
use crate::meter::{Bound, Meter};
use crate::reply::{Call, Reply};
use crate::service::Service;
use crate::tools::{self, Tool};
use crate::{Compaction, OpenAiOptions, Pruning, Tokens};

/// One run.
pub(crate) struct Session<'r> {
    pub(crate) options: &'r OpenAiOptions,
    pub(crate) service: &'r Service,
    pub(crate) pressure: &'r Pressure,
    pub(crate) host: RunHost,
    /// The texts that are struck out of the inputs of its tools.
    pub(crate) secrets: Secrets,
    pub(crate) turns: Turns,
    /// The fields of each request that do not change.
    pub(crate) fields: Map<String, Value>,
    /// The form of an answer, where one is asked for.
    pub(crate) response_format: Option<Value>,
    pub(crate) tools: Vec<Value>,
    /// The names of those among them that the host answers.
    pub(crate) tools_of_host: Vec<Arc<str>>,
    pub(crate) sources: Sources,
    pub(crate) history: History,
    /// After so many rounds of tools a turn fails.
    pub(crate) max_rounds: u32,
    pub(crate) compaction: &'r Compaction,
    pub(crate) pruning: &'r Pruning,
    pub(crate) due: Due,
    pub(crate) meter: Meter,
    /// Models that stand in for the one that is asked, in this order.
    pub(crate) models: VecDeque<String>,
    /// The one of them that is asked now, until it has answered.
    pub(crate) stand_in: Option<String>,
    /// From 0 to 1; another one for each run.
    pub(crate) chance: f64,
    /// The last text: the answer once a turn has ended, and part of one before.
    pub(crate) said: String,
    /// True if a turn has ended and no other one has begun.
    pub(crate) has_answered: bool,
    /// The usage of the current call, once the service has reported it.
    pub(crate) counted: Option<Tokens>,
    /// The number of bytes of its answer that have come.
    pub(crate) came: u64,
    /// The time of the last report.
    pub(crate) told: Instant,
    /// The time after which the service that refused the last call wants to be asked again.
    pub(crate) retry_after: Option<Duration>,
}

/// The purpose of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// To go on with the conversation. What comes is told.
    Answer,
    /// To sum it up.
    Summary,
}

/// The words of one answer on their way to those who follow the run, in lines of their own.
struct Words {
    said: SaidStream,
    is_open: bool,
}

impl Words {
    fn new(session: &Session<'_>) -> Self {
        let (host, secrets) = (session.host.clone(), session.secrets.clone());
        Self { said: SaidStream::new(host, Stream::Stdout, secrets), is_open: false }
    }

    fn take(&mut self, text: &str) {
        if !text.is_empty() {
            self.said.feed(text.as_bytes());
            self.is_open = !text.ends_with('\n');
        }
    }
}

impl Drop for Words {
    /// Ends the line, whether the answer is whole or broke off.
    fn drop(&mut self) {
        if self.is_open {
            self.said.feed(b"\n");
        }
    }
}

/// The field of a request that says in which form the service answers.
pub(crate) const RESPONSE_FORMAT: &str = "response_format";

/// Of what it says, this many characters are told to people.
const PROGRESS_CHARS: usize = 200;

/// While something comes that is no line of an answer yet, such as what the model thinks, a sign of life is given this
/// often.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

/// A wait for a service that another run has met is told from this length on.
const TOLD_FROM: Duration = Duration::from_secs(3);

impl Session<'_> {
    /// Runs turn after turn, to the end.
    pub(crate) async fn run(&mut self) -> Reason {
        let offers = self.host.tools().await;
        self.tools_of_host = tools::offer_of_host(offers, &mut self.tools);
        loop {
            let answer = match self.turn().await {
                Ok(answer) => answer,
                Err(reason) => return reason,
            };
            self.has_answered = true;
            match self.turns.ended(answer).await {
                NextTurn::End => return Reason::Completed { exit_code: None },
                NextTurn::Go(prompt) => self.history.begin_turn(prompt),
            }
            self.has_answered = false;
        }
    }

    /// The reason for the end of the run where it is asked to stop. Between two turns it has answered, and nothing is broken off.
    pub(crate) const fn stopped(&self) -> Reason {
        match self.has_answered {
            true => Reason::Completed { exit_code: None },
            // The party that asked knows why, and says so in the record.
            false => Reason::Cancelled { by: CancelledBy::Operator },
        }
    }

    /// Returns the result of the run.
    pub(crate) fn finish(self, reason: Reason, format: OutputFormat) -> Finished {
        let (usage, cost) = (self.meter.usage(), self.meter.cost());
        let completed = reason.status().is_success();
        Finished {
            usage: Some(usage),
            cost: Some(cost),
            retry_after: self.retry_after,
            output: output(self.said, completed, format),
            ..Finished::of(reason)
        }
    }

    /// One turn: rounds of tools, and an answer.
    async fn turn(&mut self) -> Result<Option<Arc<str>>, Reason> {
        let mut rounds = 0;
        loop {
            let reply = self.answer().await?;
            self.history.answered(&reply);
            if reply.calls.is_empty() {
                return Ok((!reply.text.is_empty()).then(|| reply.text.into()));
            }
            rounds += 1;
            if rounds > self.max_rounds {
                return Err(Reason::TurnLimit);
            }
            for call in &reply.calls {
                let used = call.used(&self.secrets);
                self.host.said_line(Stream::Stderr, &used.to_string());
                self.host.tool_used(used);
            }
            self.told = Instant::now();
            // Asked for in their order; waited for together, as the model means it.
            let answers = join_all(reply.calls.iter().map(|call| self.use_tool(call))).await;
            for (call, answer) in reply.calls.iter().zip(answers) {
                self.history.tool_answered(call, answer);
            }
            while let Some(letter) = self.turns.letter().now_or_never() {
                self.history.say(letter);
            }
            // What the last call used may have been the last of a budget.
            if !self.host.goes_on().await {
                return Err(Reason::Cancelled { by: CancelledBy::Operator });
            }
        }
    }

    /// The model's answer to the conversation, which is summed up where it has become too long.
    async fn answer(&mut self) -> Result<Reply, Reason> {
        if self.due.is_past(self.history.tokens()) {
            self.sum_up().await?;
        }
        let mut answer = self.ask(self.history.messages.clone(), Purpose::Answer).await;
        if answer.as_ref().is_err_and(Failure::is_overflow)
            && self.compaction.is_on()
            && self.sum_up().await?
        {
            answer = self.ask(self.history.messages.clone(), Purpose::Answer).await;
        }
        answer.map_err(|failure| self.reason(&failure))
    }

    /// The failure of a call that is given up as the reason of an ending. One that outlasts every wait between two calls is the wall of
    /// a quota.
    fn reason(&self, failure: &Failure) -> Reason {
        match failure.is_wall(self.options.retries.longest()) {
            // The time until then stands beside it.
            true => Reason::Quota { window: failure.window(), until: None },
            false => failure.reason(),
        }
    }

    /// Puts a summary in the place of the conversation; answers whether that was possible.
    async fn sum_up(&mut self) -> Result<bool, Reason> {
        let Some(request) = self.compaction.request(&self.history) else { return Ok(false) };
        let before = self.history.tokens();
        self.tell(format!("sums up a conversation of about {before} tokens"));
        let reply =
            self.ask(request, Purpose::Summary).await.map_err(|failure| self.reason(&failure))?;
        let summary = reply.text.trim();
        if summary.is_empty() {
            // Better a conversation that is too long than one that is lost.
            self.due.left(before);
            return Ok(false);
        }
        self.history.sum_up(summary);
        self.due.left(self.history.tokens());
        Ok(true)
    }

    /// Calls the service until it answers, or must be given up.
    async fn ask(&mut self, messages: Vec<Message>, purpose: Purpose) -> Result<Reply, Failure> {
        let mut request = self.request(&messages, purpose);
        let mut failed = 0;
        loop {
            // The first wait after a refusal of its own is told.
            let mut is_told = failed > 0;
            let (host, why) = (&self.host, "other runs of the account were told to wait");
            let tell = |wait| {
                if !std::mem::replace(&mut is_told, false) && wait >= TOLD_FROM {
                    host.backs_off(why, wait, false);
                }
            };
            self.pressure.passes(self.chance, tell).await;
            (self.counted, self.came) = (None, 0);
            self.meter.call_began(self.bound(request.len()));
            let (bytes, began) = (request.len(), Instant::now());
            let is_summary = purpose == Purpose::Summary;
            tracing::debug!(bytes, is_summary, model = self.model(), "request");
            let answer = self.attempt(request.clone(), purpose).await;
            if answer.as_ref().is_err_and(Failure::is_before_work) {
                self.meter.call_refused();
            } else {
                let bound = self.bound(request.len());
                self.meter.call_ended(self.counted, bound);
                self.used();
            }
            let ms = began.elapsed().as_millis() as u64;
            let failure = match answer {
                Ok(reply) => {
                    tracing::debug!(ms, bytes = self.came, calls = reply.calls.len(), "answer");
                    if let Some(model) = self.stand_in.take() {
                        self.host.model_changed(model);
                    }
                    return Ok(reply);
                }
                Err(failure) => failure,
            };
            let (word, status) = (failure.word(), failure.status());
            tracing::warn!(ms, failure = word, status, "no answer");
            failed += 1;
            let retries = &self.options.retries;
            let wait = match failure.is_retryable() {
                true => retries.wait(failed, failure.after(), self.chance),
                false => None,
            };
            let Some(wait) = wait else {
                let stand_in = self.models.pop_front_if(|_| failure.is_of_the_model());
                let Some(model) = stand_in else {
                    tracing::warn!(attempts = failed, "given up");
                    self.retry_after = failure.after();
                    return Err(failure);
                };
                self.tell(format!("{}; goes on with {model}", error_chain(&failure)));
                tracing::warn!(model, "goes on with another model");
                self.stand_in = Some(model.clone());
                self.meter.goes_on_with(self.options.pricing(&model));
                self.fields.insert("model".to_owned(), model.into());
                request = self.request(&messages, purpose);
                failed = 0;
                continue;
            };
            let why = format!("{}; retry {failed} of {}", error_chain(&failure), retries.count);
            if failure.is_pressure() {
                self.pressure.rises(wait);
            }
            // Others may have been told to wait for longer.
            let left = wait.max(self.pressure.left().unwrap_or_default());
            self.host.backs_off(why, left, failure.is_pressure() || failure.is_unreachable());
            self.told = Instant::now();
            tracing::info!(attempts = failed, wait_ms = wait.as_millis() as u64, "tries again");
            if !failure.is_pressure() {
                #[expect(
                    clippy::disallowed_methods,
                    reason = "the wait is a length of time that the service asked for"
                )]
                tokio::time::sleep(wait).await;
            }
        }
    }

    /// Returns the model that is asked, where the request names one.
    fn model(&self) -> Option<&str> {
        self.fields.get("model")?.as_str()
    }

    /// Returns the most that a call with a request of so many bytes can have used.
    fn bound(&self, sent: usize) -> Bound {
        let limits = ["max_completion_tokens", "max_tokens"];
        let limit = limits.iter().find_map(|name| self.fields.get(*name)?.as_u64());
        let answers = self.fields.get("n").and_then(Value::as_u64).unwrap_or(1).max(1);
        let limit = limit.map(|limit| limit.saturating_mul(answers));
        // A service may pass over the limit.
        let output = limit.unwrap_or(0).max(self.came);
        let tokens = Tokens { input: sent as u64, output, ..Tokens::default() };
        Bound { tokens, is_whole: limit.is_some_and(|limit| self.came <= limit) }
    }

    async fn attempt(&mut self, request: Vec<u8>, purpose: Purpose) -> Result<Reply, Failure> {
        let mut reply = Reply::default();
        let mut line = 0;
        let mut began = false;
        let mut words = Words::new(self);
        let service = self.service;
        let mut answer = service.call(request).await?;
        if purpose == Purpose::Answer {
            self.said.clear();
        }
        let done = loop {
            let next = answer.next().await?;
            self.host.sign();
            match next {
                None => break false,
                Some(Chunk::Done) => break true,
                Some(Chunk::Delta(delta)) => {
                    if !std::mem::replace(&mut began, true) {
                        self.host.answers();
                    }
                    self.counted = delta.usage.or(self.counted);
                    if let Some(odd) = &delta.odd_usage {
                        self.tell(format!("what it used is unknown: the service says {odd}"));
                    }
                    reply.take(delta)?;
                    self.came = reply.size() as u64;
                }
                Some(Chunk::Error(_) | Chunk::Garbage(_)) => {
                    unreachable!("the service has made failures of these")
                }
            }
            if purpose == Purpose::Answer {
                words.take(&reply.text[self.said.len()..]);
                self.said.push_str(&reply.text[self.said.len()..]);
                line = self.tell_lines(line);
            }
        };
        reply.end(done)
    }

    /// Tells the lines that have become whole, and something now and then; answers where the next one begins.
    fn tell_lines(&mut self, from: usize) -> usize {
        let Some(end) = self.said[from..].rfind('\n').map(|end| from + end + 1) else {
            if self.told.elapsed() >= SIGN_OF_LIFE {
                let begun = self.said[from..].trim();
                let text = if begun.is_empty() { "thinks" } else { begun };
                self.tell(shortened(text));
            }
            return from;
        };
        let last = self.said[from..end].lines().rev().find(|line| !line.trim().is_empty());
        if let Some(text) = last.map(shortened) {
            self.tell(text);
        }
        end
    }

    /// The answer to a call of a tool; a refusal is one too.
    async fn use_tool(&self, call: &Call) -> String {
        let answer = self.answer_of(call).await;
        answer.unwrap_or_else(|refusal| tools::json_text(&refusal))
    }

    async fn answer_of(&self, call: &Call) -> Result<String, Refusal> {
        let most = self.options.result_bytes;
        if self.tools_of_host.iter().any(|name| **name == *call.name) {
            let answer = self.host.call_tool(&call.name, &call.arguments).await;
            return Ok(tools::of_host(&answer, most));
        }
        Ok(match tools::parse(&call.name, &call.arguments)? {
            Tool::Read(read) => self.sources.read(&read),
            Tool::Wait(wait) => tools::waited(wait.mode, self.host.wait(wait).await?, most),
            Tool::Spawn { request, wait: false } => {
                tools::accepted(self.host.spawn(*request).await?)
            }
            Tool::Spawn { request, wait: true } => {
                let run = self.host.spawn(*request).await?;
                let wait = WaitFor { runs: vec![run], mode: WaitMode::All, timeout: None };
                tools::ended(run, self.host.wait(wait).await?, most)
            }
        })
    }

    fn request(&self, messages: &[Message], purpose: Purpose) -> Vec<u8> {
        let mut request = self.fields.clone();
        let messages = self.pruning.apply(messages);
        request.insert("messages".to_owned(), json!(messages));
        request.insert("stream".to_owned(), true.into());
        if self.options.ask_usage {
            request.insert("stream_options".to_owned(), json!({"include_usage": true}));
        }
        if let (Purpose::Answer, Some(format)) = (purpose, &self.response_format) {
            request.insert(RESPONSE_FORMAT.to_owned(), format.clone());
        }
        if purpose == Purpose::Answer && !self.tools.is_empty() {
            request.insert("tools".to_owned(), json!(self.tools));
        }
        Value::Object(request).to_string().into_bytes()
    }

    fn used(&mut self) {
        self.host.used(self.meter.usage(), self.meter.cost());
        self.told = Instant::now();
    }

    fn tell(&mut self, text: String) {
        self.host.progress(text);
        self.told = Instant::now();
    }
}

fn shortened(text: &str) -> String {
    text.trim().chars().take(PROGRESS_CHARS).collect()
}

/// Returns the text in the form that was asked for: JSON where it begins like an object or an array and is one.
fn output(said: String, completed: bool, format: OutputFormat) -> Output {
    match completed {
        _ if said.is_empty() => Output::None,
        true => Output::of_text(said, format),
        false => Output::Text(said.into()),
    }
}
