//! Merges that ask an agent or a program, under way: results in, runs asked for level by level, an answer out.
//!
//! `offshoot-merge` plans which question is asked about which results. Here the runs that answer them are asked for, as any other run
//! is: by admission, under the slots and the budget of the tree, and on its record.

mod session;

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use futures_util::future::{BoxFuture, try_join_all};
use offshoot_merge::{Asked, Asking, Choice, Fold, MergeError, OnFailure, Strategy};
use offshoot_model::{
    Chosen, ContentHash, Envelope, EnvelopeError, InputRange, JsonText, Payload, Refusal,
    SpawnRequest, VariableRef, error_chain,
};
use offshoot_store::{NewValue, Store, StoreError};

use crate::blocking::blocking;
use crate::error::SpawnerError;
use crate::stored_values::StoredValues;
use crate::tree_context::TreeContext;

pub(super) use session::Session;

/// The most bytes of the answers of pieces that are held until they are merged. Those of a hundred thousand would be
/// hundreds of megabytes, and each stands on record.
pub(crate) const HELD_BYTES: u64 = 32 << 20;

/// The shell that reads a command.
const SHELL: [&str; 2] = ["sh", "-c"];

/// The most groups whose results are written for their runs at once: each is a file, and a file system flushes together what is
/// asked for together.
const FILES: usize = 64;

/// The longest answer in which a choice is looked for.
const LONGEST_CHOICE: u64 = 64 * 1024;

/// So much of an answer that is no choice is shown, in characters.
const SHOWN: usize = 80;

/// A merge that asks, until it has its answer.
pub(super) struct AskedMerge {
    pub(super) asking: Asking,
    asker: Box<dyn Asker>,
    tree: Arc<TreeContext>,
    /// The results by their place, with their names.
    results: BTreeMap<u32, Named>,
    /// The number of bytes of results that may still be held. Further ones are kept as values.
    room: u64,
}

/// A result with its name.
type Named = (Arc<str>, Payload);

/// A run that is asked for: what it is told, and the file that it reads.
pub(super) struct Question {
    pub(super) label: String,
    task: String,
    pub(super) input: InputRange,
    /// The hash of all of it.
    pub(super) hash: ContentHash,
}

/// A group of results of one level.
#[derive(Clone)]
struct About {
    level: u32,
    /// The number of the group, from 1.
    number: usize,
    members: Range<usize>,
}

/// The outcome of a merge that asks.
pub(super) struct Made {
    pub(super) answer: Payload,
    /// Name of the result that a judge chose, and the reason; none where no judge was asked.
    pub(super) chosen: Option<Chosen>,
}

/// The end of a run that was asked for, or the reason why there is no run.
pub(super) type Outcome = Result<Envelope, Refusal>;

/// The side that asks: the owner of a tree, or a running session.
pub(super) trait Asker: Send + Sync {
    /// Asks all questions at once, and returns what came of the runs, in this order.
    fn ask<'a>(
        &'a mut self,
        asking: &'a Asking,
        questions: Vec<Question>,
    ) -> BoxFuture<'a, Result<Vec<Outcome>, MergeError>>;
}

impl Question {
    /// The request for the run, without its input.
    pub(super) fn request(self, asking: &Asking) -> SpawnRequest {
        let agent = match &asking.asked {
            Asked::Agent(agent) => Some(agent.clone()),
            Asked::Command(_) => None,
        };
        SpawnRequest {
            task: self.task.into(),
            agent,
            label: Some(self.label.into()),
            merges: Some(self.hash),
            ..SpawnRequest::default()
        }
    }
}

impl AskedMerge {
    pub(super) fn new(asking: Asking, asker: Box<dyn Asker>, tree: &Arc<TreeContext>) -> Self {
        let tree = Arc::clone(tree);
        Self { asking, asker, tree, results: BTreeMap::new(), room: HELD_BYTES }
    }

    /// Takes the result at this place. One that did not complete is taken as its envelope.
    pub(super) async fn push(
        &mut self,
        place: u32,
        key: Arc<str>,
        result: Result<Payload, Box<Envelope>>,
    ) {
        let payload = result.unwrap_or_else(|envelope| {
            Payload::Json(JsonText::of(&envelope).expect("an envelope is plain data"))
        });
        let payload = match self.room.checked_sub(payload.size()) {
            _ if matches!(payload, Payload::Stored(_)) => payload,
            Some(left) => {
                self.room = left;
                payload
            }
            // What cannot be kept is held after all.
            None => self.kept(&payload).await.map_or(payload, Payload::Stored),
        };
        self.results.entry(place).or_insert((key, payload));
    }

    /// Asks, and returns the answer.
    ///
    /// # Errors
    ///
    /// Fails if a run is refused, does not complete or gives an answer that is none, or if what it is to read cannot be written.
    pub(super) async fn finish(mut self) -> Result<Made, MergeError> {
        let mut items: Vec<Named> = std::mem::take(&mut self.results).into_values().collect();
        let (mut reason, mut was_asked) = (None, false);
        for level in 1.. {
            let tokens = self.tokens(&items).await?;
            let groups = self.asking.groups(level, &tokens);
            let asked = (1..).zip(&groups).filter(|(_, group)| group.asks);
            let asked: Vec<About> = asked
                .map(|(number, group)| About { level, number, members: group.members.clone() })
                .collect();
            was_asked |= !asked.is_empty();
            let mut answers = match self.asking.chooses() {
                true => self.chosen(&items, &asked, &mut reason).await?,
                false => self.merged(&items, &asked).await?,
            }
            .into_iter();
            let next = groups.into_iter().map(|group| match group.asks {
                true => answers.next().expect("there is an answer to each question"),
                false => items[group.members.start].clone(),
            });
            items = next.collect();
            if items.len() <= 1 {
                break;
            }
        }
        Ok(match items.pop() {
            Some((winner, answer)) => Made {
                // Of one result none was chosen.
                chosen: (self.asking.chooses() && was_asked).then(|| Chosen {
                    winner: winner.to_string(),
                    reason: reason.unwrap_or_default(),
                }),
                answer,
            },
            None => Made { answer: Payload::text(""), chosen: None },
        })
    }

    /// Asks about these groups, and returns an answer in place of each.
    async fn merged(&mut self, items: &[Named], asked: &[About]) -> Result<Vec<Named>, MergeError> {
        let answers = self.ask(items, asked, false).await?;
        let mut named = Vec::with_capacity(asked.len());
        for (about, answer) in asked.iter().zip(answers) {
            let label = self.asking.label(about.level, about.number);
            if self.asking.may_be_too_long(answer.size()) {
                let results = self.counted(&items[about.members.clone()]).await?;
                let own = self.counted(&[(Arc::from(""), answer.clone())]).await?;
                if let Some(why) = self.asking.too_long(own.iter().sum(), results.iter().sum()) {
                    return Err(self.not_answered(label, why));
                }
            }
            named.push((label.into(), answer));
        }
        Ok(named)
    }

    /// Returns the tokens by which results are grouped. Where all fit by their bytes, and where no limit asks for them, these stand for
    /// tokens: no token is shorter.
    async fn tokens(&self, items: &[Named]) -> Result<Vec<u64>, MergeError> {
        let bytes: Vec<u64> = items.iter().map(|(_, payload)| payload.size()).collect();
        let all = bytes.iter().fold(0_u64, |sum, bytes| sum.saturating_add(*bytes));
        match self.asking.token_limit() {
            Some(most) if all > most => self.counted(items).await,
            _ => Ok(bytes),
        }
    }

    /// Counts the tokens of results.
    async fn counted(&self, items: &[Named]) -> Result<Vec<u64>, MergeError> {
        let (store, items) = (Arc::clone(&self.tree.store), items.to_vec());
        let count = move || items.iter().map(|(_, payload)| tokens(&*store, payload)).collect();
        let counted: io::Result<Vec<u64>> = blocking(count).await;
        counted.map_err(|error| MergeError::Elsewhere {
            message: format!("the results cannot be read: {}", error_chain(&error)),
        })
    }

    /// Asks about these groups, and returns the result of each that was chosen. Where the answer is no choice, once more.
    async fn chosen(
        &mut self,
        items: &[Named],
        asked: &[About],
        reason: &mut Option<String>,
    ) -> Result<Vec<Named>, MergeError> {
        let mut choices: Vec<Option<Choice>> = Vec::with_capacity(asked.len());
        for (about, answer) in asked.iter().zip(self.ask(items, asked, false).await?) {
            choices.push(self.choice(items, about, &answer).await.ok());
        }
        let unclear = asked.iter().zip(&choices).filter(|(_, choice)| choice.is_none());
        let unclear: Vec<About> = unclear.map(|(about, _)| about.clone()).collect();
        let mut again = Vec::with_capacity(unclear.len());
        for (about, answer) in unclear.iter().zip(self.ask(items, &unclear, true).await?) {
            let choice = self.choice(items, about, &answer).await;
            let label = || again_label(self.asking.label(about.level, about.number));
            again.push(choice.map_err(|why| self.not_answered(label(), why))?);
        }
        let mut again = again.into_iter();
        let winner = |(about, choice): (&About, Option<Choice>)| {
            let Choice { winner, reason: why } =
                choice.or_else(|| again.next()).expect("it was asked again");
            *reason = Some(why);
            items[about.members.start + winner].clone()
        };
        Ok(asked.iter().zip(choices).map(winner).collect())
    }

    /// Reads the answer of a judge; where it is no choice, says what it is instead.
    async fn choice(
        &self,
        items: &[Named],
        about: &About,
        answer: &Payload,
    ) -> Result<Choice, String> {
        let text: Arc<str> = match answer.at_hand() {
            Ok(text) => text.into(),
            Err(value) if value.size > LONGEST_CHOICE => {
                return Err(format!("chose none: its answer has {} bytes", value.size));
            }
            Err(value) => {
                let (store, value) = (Arc::clone(&self.tree.store), *value);
                let read = blocking(move || store.read(&value)).await;
                let bytes =
                    read.map_err(|error| format!("cannot be read: {}", error_chain(&error)))?;
                String::from_utf8_lossy(&bytes).into()
            }
        };
        let names = items[about.members.clone()].iter().map(|(name, _)| &**name);
        Choice::parse(&text, names).ok_or_else(|| {
            let shown: String = text.chars().take(SHOWN).collect();
            let more = if shown.len() < text.len() { "…" } else { "" };
            let many = about.members.len();
            format!(
                "chose none: it answered {shown:?}{more}; expected {{\"winner\": NUMBER, \"reason\": TEXT}}, from 1 to {many}"
            )
        })
    }

    /// Asks about these groups, all at once, and returns the answers.
    async fn ask(
        &mut self,
        items: &[Named],
        asked: &[About],
        again: bool,
    ) -> Result<Vec<Payload>, MergeError> {
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        let mut questions = Vec::with_capacity(asked.len());
        for together in asked.chunks(FILES) {
            let question =
                |about: &About| self.question(about.clone(), &items[about.members.clone()], again);
            let each: Vec<_> = together.iter().map(question).collect();
            questions.extend(try_join_all(each).await?);
        }
        let labels: Vec<String> = questions.iter().map(|it| it.label.clone()).collect();
        let outcomes = self.asker.ask(&self.asking, questions).await?;
        let answers = labels.into_iter().zip(outcomes);
        answers.map(|(label, outcome)| answer(&self.asking, label, outcome)).collect()
    }

    /// Returns what is asked about a group of results, which are written into a value of the store.
    async fn question(
        &self,
        about: About,
        results: &[Named],
        again: bool,
    ) -> Result<Question, MergeError> {
        let input = self.input(results).await?;
        let label = self.asking.label(about.level, about.number);
        let (label, task) = match again {
            true => (again_label(label), self.asking.task_again(results.len())),
            false => (label, self.asking.task(results.len())),
        };
        let (asking, value) = (&self.asking, input.hash);
        let hash = format!("{label}\0{asking}\0{task}\0{value:?}");
        Ok(Question { hash: ContentHash::of(hash.as_bytes()), label, task, input })
    }

    fn not_answered(&self, label: String, why: String) -> MergeError {
        MergeError::NotAnswered { merge: self.asking.name(), label, why, code: None, hint: None }
    }

    async fn input(&self, results: &[Named]) -> Result<InputRange, MergeError> {
        let names = self.asking.names_results();
        let strategy = if names { Strategy::Summarize } else { Strategy::Concatenate };
        let mut fold = Fold::new(strategy, OnFailure::Fail).separate_by("\n");
        let mut count = 0;
        for (key, payload) in results {
            fold.push(count, Arc::clone(key), Ok(payload.clone()));
            count += 1;
        }
        if !names {
            // Nothing more, behind a newline that ends the last line.
            fold.push(count, Arc::from(""), Ok(Payload::text("")));
            count += 1;
        }
        let answer = fold.finish(count).map_err(|error| match error {
            MergeError::NotText { merge: _, key } => {
                MergeError::NotText { merge: self.asking.name(), key }
            }
            error => error,
        })?;
        let unwritten = |error: &SpawnerError| MergeError::Elsewhere {
            message: format!("the results cannot be written: {}", error_chain(error)),
        };
        let values = StoredValues::new(Arc::clone(&self.tree.store));
        let value = values.put(answer, Arc::clone(&self.tree.folder)).await;
        let value = value.map_err(|error| unwritten(&error))?;
        let path = self.tree.store.path(&value).map_err(|error| unwritten(&error.into()))?;
        Ok(InputRange {
            path: Arc::new(path),
            offset: 0,
            length: value.size,
            header: 0,
            hash: Some(value.hash),
        })
    }

    async fn kept(&self, payload: &Payload) -> Result<VariableRef, StoreError> {
        match payload.at_hand() {
            Ok(text) => self.tree.store.put(NewValue::bytes(payload.kind(), text.as_bytes())).await,
            Err(value) => Ok(*value),
        }
    }
}

/// Counts the tokens of a result, which is read part by part where it is long.
fn tokens(store: &dyn Store, payload: &Payload) -> io::Result<u64> {
    let value = match payload.at_hand() {
        Ok(text) => return Ok(offshoot_tokens::count(text.as_bytes())),
        Err(value) => value,
    };
    let mut counter = offshoot_tokens::Counter::default();
    counter.read(store.open(value).map_err(io::Error::other)?)?;
    Ok(counter.finish())
}

/// The label of a run that is asked once more.
fn again_label(label: String) -> String {
    label + " again"
}

/// The program that runs this line of the shell.
pub(super) fn words(line: &str) -> Arc<[String]> {
    SHELL.into_iter().chain([line]).map(str::to_owned).collect()
}

/// The answer of one run.
fn answer(asking: &Asking, label: String, outcome: Outcome) -> Result<Payload, MergeError> {
    let merge = asking.name();
    let (why, code, hint) = match outcome {
        Ok(envelope) => match envelope.into_result() {
            Ok(payload) => return Ok(payload),
            Err(envelope) => {
                let error = envelope.error.as_ref();
                let summary = error.map_or("", EnvelopeError::summary);
                let code = error.map(|error| Arc::from(&*error.code));
                let hint = error.and_then(|error| error.recovery_suggestion.clone());
                (format!("did not complete: {summary}"), code, hint)
            }
        },
        Err(refusal) => {
            let code = Some(refusal.code.as_ref().into());
            (format!("was refused: {}", refusal.message), code, refusal.hint)
        }
    };
    Err(MergeError::NotAnswered { merge, label, why, code, hint })
}
