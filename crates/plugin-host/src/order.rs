//! The order of what a run tells, whatever its plugin does: it starts once, before all else, and is silent after its end.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use offshoot_model::{Refusal, RunId, SpawnRequest};
use offshoot_runtime::{Host, Ruling, RunEvent, RunHost, WaitAnswer, WaitFor};

/// Stands before the host of a run.
pub(crate) struct InOrder {
    host: RunHost,
    stage: Mutex<Stage>,
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    NotStarted,
    Started,
    Over,
}

impl InOrder {
    /// What is given to the run, as its host.
    pub(crate) fn of(host: RunHost) -> Arc<Self> {
        Arc::new(Self { host, stage: Mutex::new(Stage::NotStarted) })
    }

    /// The run is over: what still comes is not heard.
    pub(crate) fn over(&self) {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = Stage::Over;
    }
}

impl Host for InOrder {
    fn hear(&self, event: RunEvent) {
        // Held while the event is told, because two threads of a plugin may tell at once and the order must be one.
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        match (*stage, &event) {
            (Stage::NotStarted, RunEvent::Started(_)) => *stage = Stage::Started,
            (Stage::NotStarted, _) => {
                *stage = Stage::Started;
                self.host.started(None);
            }
            (Stage::Started, RunEvent::Started(_)) | (Stage::Over, _) => return,
            (Stage::Started, _) => {}
        }
        self.host.tell(event);
    }

    fn sign(&self) {
        self.host.sign();
    }

    fn spawn(&self, request: SpawnRequest) -> BoxFuture<'static, Result<RunId, Refusal>> {
        let host = self.host.clone();
        Box::pin(async move { host.spawn(request).await })
    }

    fn wait(&self, wait: WaitFor) -> BoxFuture<'static, Result<WaitAnswer, Refusal>> {
        let host = self.host.clone();
        Box::pin(async move { host.wait(wait).await })
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
    use offshoot_model::RefusalCode;

    use super::*;

    struct Heard(Arc<Mutex<Vec<RunEvent>>>);

    impl Host for Heard {
        fn hear(&self, event: RunEvent) {
            self.0.lock().expect("nobody panics").push(event);
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
            order.over();
            host.progress("after its end");
            assert_eq!(*heard.lock().expect("nobody panics"), expected);
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
}
