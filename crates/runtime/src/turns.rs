//! Further turns of a run that can take them: what is sent into it, and how it goes on after an answer.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::RunHost;

/// The continuation of a run after a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextTurn {
    /// Not at all: its last answer is the answer of the run.
    End,
    /// With this prompt: results of its children, letters, or both.
    Go(String),
}

/// The ruling of the engine when a turn is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// No further turn follows.
    End,
    /// The results that came of its children, if any. Letters may have come as well.
    Go(Option<String>),
}

/// A run's own side of its turns. One per run.
#[derive(Debug)]
pub struct Turns {
    host: RunHost,
    letters: LetterBox,
    /// The number of messages that were taken, which tells the engine whether one is still on its way.
    taken: u32,
}

/// The box for messages to a run. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct LetterBox(Arc<Letters>);

/// Every run has one and few get a letter: a channel would take a kilobyte of each.
#[derive(Debug, Default)]
struct Letters {
    waiting: Mutex<VecDeque<Arc<str>>>,
    came: Notify,
}

impl Turns {
    /// The turns of a run, letters to which are put into this box. One run reads from a box.
    pub fn new(host: RunHost, letters: LetterBox) -> Self {
        Self { host, letters, taken: 0 }
    }

    /// The next letter, as the prompt it is. Never answers where no letter comes. Dropping the future loses nothing.
    ///
    /// A runtime that can hand a letter to a turn that is under way listens here; another one need not: what was not
    /// taken comes with the next turn.
    pub async fn letter(&mut self) -> Arc<str> {
        loop {
            if let Some(letter) = self.take() {
                return letter;
            }
            self.letters.0.came.notified().await;
        }
    }

    /// Tells that a turn is over, with its answer, and waits for how the run goes on: at once where no child is
    /// pending and nothing was held for it, else, with its slot lent, until all children have ended or a letter comes.
    ///
    /// Not cancel-safe: a runtime that drops the future has been asked to stop and asks no more.
    pub async fn ended(&mut self, answer: Option<Arc<str>>) -> NextTurn {
        let ruling = self.host.turn_ended(answer, self.taken).await;
        let Ruling::Go(results) = ruling else { return NextTurn::End };
        let mut prompts: Vec<Arc<str>> = Vec::new();
        prompts.extend(std::iter::from_fn(|| self.take()));
        prompts.extend(results.map(Arc::from));
        NextTurn::Go(prompts.join("\n\n"))
    }

    fn take(&mut self) -> Option<Arc<str>> {
        let letter = self.letters.0.waiting.lock().pop_front()?;
        self.taken += 1;
        Some(letter)
    }
}

impl LetterBox {
    /// Puts a letter in. A run that is over reads no more.
    pub fn put(&self, letter: Arc<str>) {
        self.0.waiting.lock().push_back(letter);
        // One run listens. Where it does not yet, it finds the letter before it would wait.
        self.0.came.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use futures_util::FutureExt;
    use futures_util::future::BoxFuture;
    use offshoot_model::{Refusal, RefusalCode, RunId, SpawnRequest};

    use super::*;
    use crate::{Host, RunEvent, WaitAnswer, WaitFor};

    /// Rules as it was told to, and notes what it was told.
    struct Rules(Mutex<Vec<Ruling>>, Mutex<Vec<u32>>);

    impl Host for Rules {
        fn hear(&self, _event: RunEvent) {}

        fn spawn(&self, _request: SpawnRequest) -> BoxFuture<'static, Result<RunId, Refusal>> {
            let refusal = Refusal::new(RefusalCode::RecursionDisabled, "none here");
            ready(Err(refusal)).boxed()
        }

        fn wait(&self, _wait: WaitFor) -> BoxFuture<'static, Result<WaitAnswer, Refusal>> {
            ready(Ok(WaitAnswer::default())).boxed()
        }

        fn turn_ended(&self, _answer: Option<Arc<str>>, taken: u32) -> BoxFuture<'static, Ruling> {
            self.1.lock().push(taken);
            let ruling = self.0.lock().pop().expect("as many as asked");
            ready(ruling).boxed()
        }
    }

    #[tokio::test]
    async fn letters_come_once_and_before_results() {
        let rulings = vec![Ruling::End, Ruling::Go(None), Ruling::Go(Some("results".to_owned()))];
        let host = RunHost::new(Rules(Mutex::new(rulings), Mutex::default()));
        let letters = LetterBox::default();
        let mut turns = Turns::new(host, letters.clone());
        letters.put("one".into());
        letters.put("two".into());
        assert_eq!(&*turns.letter().await, "one");
        assert_eq!(turns.ended(None).await, NextTurn::Go("two\n\nresults".to_owned()));
        letters.put("three".into());
        assert_eq!(turns.ended(None).await, NextTurn::Go("three".to_owned()));
        assert_eq!(turns.ended(None).await, NextTurn::End);
        assert_eq!(turns.taken, 3, "each is counted once");
    }
}
