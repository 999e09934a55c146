//! The order of what a run tells, whatever its plugin does: it starts once, before all else, what it used never becomes less, and it is
//! silent after its end.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use offshoot_model::{
    Cost, Delegated, JsonText, Refusal, RunId, SpawnRequest, Stream, TokenCount, Usage,
};
use offshoot_runtime::{Finished, Host, Ruling, RunEvent, RunHost, ToolOffer, WaitAnswer, WaitFor};

/// Stands before the host of a run.
pub(crate) struct InOrder {
    host: RunHost,
    told: Mutex<Told>,
}

struct Told {
    stage: Stage,
    /// The usage and the cost that it had told, where it told them.
    used: Option<(Usage, Cost)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    NotStarted,
    Started,
    Over,
}

impl InOrder {
    /// The host that is given to the run.
    pub(crate) fn of(host: RunHost) -> Arc<Self> {
        Arc::new(Self { host, told: Mutex::new(Told { stage: Stage::NotStarted, used: None }) })
    }

    /// The run is over: what still comes is not heard. What it says last of its use is not less than what it told before.
    pub(crate) fn over(&self, finished: Finished) -> Finished {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.stage = Stage::Over;
        let Some((usage, cost)) = told.used else { return finished };
        Finished {
            usage: finished.usage.map(|last| usage_since(usage, last)),
            cost: finished.cost.map(|last| cost_since(cost, last)),
            ..finished
        }
    }
}

/// A usage that is told after another one. A plugin that tells what each call used, instead of the sum, would have its run
/// spend more than its budget.
fn usage_since(before: Usage, now: Usage) -> Usage {
    let larger = |before: TokenCount, now: TokenCount| {
        if now.charged() < before.charged() { before } else { now }
    };
    Usage {
        input: larger(before.input, now.input),
        output: larger(before.output, now.output),
        cache_read: larger(before.cache_read, now.cache_read),
        cache_write: larger(before.cache_write, now.cache_write),
    }
}

/// A cost that is told after another one, taken in the same way.
fn cost_since(before: Cost, now: Cost) -> Cost {
    let sum = |cost: Cost| cost.dollars();
    if sum(now) < sum(before) { before } else { now }
}

#[deny(clippy::missing_trait_methods, reason = "it passes everything on")]
impl Host for InOrder {
    fn hear(&self, mut event: RunEvent) {
        // Held while the event is told, because two threads of a plugin may tell at once and the order must be one.
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        match (told.stage, &event) {
            (Stage::NotStarted, RunEvent::Started(_)) => told.stage = Stage::Started,
            (Stage::NotStarted, _) => {
                told.stage = Stage::Started;
                self.host.started(None);
            }
            (Stage::Started, RunEvent::Started(_)) | (Stage::Over, _) => return,
            (Stage::Started, _) => {}
        }
        // Its lines of progress are all that it says beside its answer.
        match &mut event {
            RunEvent::Used { usage, cost } => {
                if let Some((usage_before, cost_before)) = told.used {
                    *usage = usage_since(usage_before, *usage);
                    *cost = cost_since(cost_before, *cost);
                }
                told.used = Some((*usage, *cost));
            }
            RunEvent::Progress(line) => self.host.said_line(Stream::Stderr, line),
            RunEvent::ToolUsed(used) => self.host.said_line(Stream::Stderr, &used.to_string()),
            RunEvent::Started(_)
            | RunEvent::Answers
            | RunEvent::BacksOff { .. }
            | RunEvent::ModelChanged(_)
            | RunEvent::StrayEnded { .. }
            | RunEvent::QuotaLeft { .. } => {}
        }
        self.host.tell(event);
    }

    fn said(&self, stream: Stream, bytes: &[u8]) {
        self.host.said(stream, bytes);
    }

    fn memory_short(&self) -> BoxFuture<'static, ()> {
        self.host.memory_short()
    }

    fn sign(&self) {
        self.host.sign();
    }

    fn spawn(&self, request: SpawnRequest) -> BoxFuture<'static, Result<RunId, Refusal>> {
        let host = self.host.clone();
        Box::pin(async move { host.spawn(request).await })
    }

    fn delegate(
        &self,
        request: SpawnRequest,
        choose_only: bool,
    ) -> BoxFuture<'static, Result<Delegated, Refusal>> {
        let host = self.host.clone();
        Box::pin(async move { host.delegate(request, choose_only).await })
    }

    fn observed(&self, observation: u32, success: bool) -> BoxFuture<'static, Result<(), Refusal>> {
        let host = self.host.clone();
        Box::pin(async move { host.observed(observation, success).await })
    }

    fn wait(&self, wait: WaitFor) -> BoxFuture<'static, Result<WaitAnswer, Refusal>> {
        let host = self.host.clone();
        Box::pin(async move { host.wait(wait).await })
    }

    fn goes_on(&self) -> BoxFuture<'static, bool> {
        let host = self.host.clone();
        Box::pin(async move { host.goes_on().await })
    }

    fn tools(&self) -> BoxFuture<'static, Vec<ToolOffer>> {
        let host = self.host.clone();
        Box::pin(async move { host.tools().await })
    }

    fn call_tool(&self, name: &str, arguments: &str) -> BoxFuture<'static, JsonText> {
        let (host, name, arguments) = (self.host.clone(), name.to_owned(), arguments.to_owned());
        Box::pin(async move { host.call_tool(&name, &arguments).await })
    }

    fn turn_ended(
        &self,
        answer: Option<Arc<str>>,
        letters_taken: u32,
    ) -> BoxFuture<'static, Ruling> {
        let host = self.host.clone();
        Box::pin(async move { host.turn_ended(answer, letters_taken).await })
    }
}

#[cfg(test)]
mod tests {
    use offshoot_model::{MicroUsd, RefusalCode};

    use super::*;

    struct Heard(Arc<Mutex<Vec<RunEvent>>>);

    impl Host for Heard {
        fn hear(&self, event: RunEvent) {
            self.0.lock().expect("no holder of the lock panics").push(event);
        }

        fn spawn(&self, _request: SpawnRequest) -> BoxFuture<'static, Result<RunId, Refusal>> {
            Box::pin(async { Err(Refusal::new(RefusalCode::RecursionDisabled, "none here")) })
        }

        fn wait(&self, _wait: WaitFor) -> BoxFuture<'static, Result<WaitAnswer, Refusal>> {
            Box::pin(async { Ok(WaitAnswer::default()) })
        }
    }

    #[test]
    fn a_run_starts_once_and_is_silent_after_its_end() {
        let check = |told: &[RunEvent], expected: &[RunEvent]| {
            let heard = Arc::new(Mutex::new(Vec::new()));
            let order = InOrder::of(RunHost::new(Heard(Arc::clone(&heard))));
            let host = RunHost::from(Arc::clone(&order));
            told.iter().cloned().for_each(|event| host.tell(event));
            order.over(Finished::text(""));
            host.progress("after its end");
            assert_eq!(*heard.lock().expect("no holder of the lock panics"), expected);
        };
        let (started, line) = (RunEvent::Started(None), RunEvent::Progress("a".into()));
        check(&[], &[]);
        check(std::slice::from_ref(&line), &[started.clone(), line.clone()]);
        check(&[started.clone(), line.clone()], &[started.clone(), line.clone()]);
        check(
            &[line.clone(), started.clone(), started.clone(), line.clone()],
            &[started, line.clone(), line],
        );
    }

    #[test]
    fn what_was_used_never_becomes_less() {
        let tokens = |tokens| Usage { input: TokenCount::Known(tokens), ..Usage::default() };
        let usd = |micros| Cost::known(MicroUsd::from_micros(micros));
        let heard = Arc::new(Mutex::new(Vec::new()));
        let order = InOrder::of(RunHost::new(Heard(Arc::clone(&heard))));
        let host = RunHost::from(Arc::clone(&order));
        let told = [
            (tokens(5), usd(5)),
            (tokens(3), usd(9)),
            (Usage::UNKNOWN, usd(1)),
            (tokens(6), usd(9)),
        ];
        told.into_iter().for_each(|(usage, cost)| host.used(usage, cost));
        let half = Usage { input: TokenCount::Known(5), ..Usage::UNKNOWN };
        let expected =
            [(tokens(5), usd(5)), (tokens(5), usd(9)), (half, usd(9)), (tokens(6), usd(9))];
        let used = expected.map(|(usage, cost)| RunEvent::Used { usage, cost });
        assert_eq!(heard.lock().expect("no holder of the lock panics")[1..], used);
        let last = Finished { usage: Some(tokens(2)), cost: Some(usd(10)), ..Finished::text("") };
        let last = order.over(last);
        assert_eq!((last.usage, last.cost), (Some(tokens(6)), Some(usd(10))));
    }
}
