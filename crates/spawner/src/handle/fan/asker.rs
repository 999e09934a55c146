//! The owner of a tree asks for what a merge of its pieces has to know.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::BoxFuture;
use offshoot_merge::{Asked, Asking, MergeError};
use offshoot_model::{AgentId, ContentHash, EventKind, RootId, error_chain};
use offshoot_store::{Store, StoreError};
use tokio::sync::watch;

use super::{Fan, FanOut, Piece};
use crate::blocking::blocking;
use crate::error::SpawnerError;
use crate::handle::asked_merge::{Asker, Outcome, Question, words};
use crate::message::TreeState;
use crate::message::link::Link;
use crate::run_spec::RunSpec;
use crate::tree_context::TreeContext;

/// The owner of a tree: what it asks for are pieces of the root.
pub(super) struct Owner {
    link: Link,
    state: watch::Receiver<TreeState>,
    /// Of a tree that was read back: the places of runs that were asked for before. Read with the first question.
    recorded: Option<HashMap<ContentHash, u32>>,
}

impl Owner {
    pub(super) fn new(link: &Link, state: &watch::Receiver<TreeState>) -> Self {
        Self { link: link.clone(), state: state.clone(), recorded: None }
    }

    /// Asks as pieces of the root, each in a place of its own. A run that was asked the same in an earlier life of the tree has its
    /// place, and answers at once if it is over.
    async fn outcomes(
        &mut self,
        asking: &Asking,
        questions: Vec<Question>,
    ) -> Result<Vec<Outcome>, MergeError> {
        let tree = &self.link.tree;
        if self.recorded.is_none() {
            self.recorded = Some(recorded_places(tree).await.map_err(broken)?);
        }
        let known = self.recorded.as_ref().expect("they were read just now");
        let run_spec = Arc::new(run_spec(asking, tree));
        let mut places = Vec::with_capacity(questions.len());
        let mut pieces = Vec::with_capacity(questions.len());
        for question in questions {
            let place = known.get(&question.hash).copied();
            places.push(place.unwrap_or_else(|| tree.mint_places(1)));
            let input = Some(question.input.clone());
            let decides = matches!(asking.asked, Asked::Command(_)).then(|| Arc::clone(&run_spec));
            pieces.push(Piece { input, run_spec: decides, ..question.request(asking).into() });
        }
        let total = pieces.len();
        let order = FanOut { run_spec: Some((*run_spec).clone()), ..FanOut::new(pieces) };
        let fan = Fan::start(self.link.clone(), self.state.clone(), order, Some(places)).await;
        let mut fan = fan.map_err(|error| failed(&error))?;
        let mut outcomes: Vec<Option<Outcome>> = vec![None; total];
        while let Some(outcome) = fan.next().await.map_err(|error| failed(&error))? {
            outcomes[outcome.place as usize] = Some(outcome.result);
        }
        Ok(outcomes.into_iter().map(|outcome| outcome.expect("each piece is told of")).collect())
    }
}

impl Asker for Owner {
    fn ask<'a>(
        &'a mut self,
        asking: &'a Asking,
        questions: Vec<Question>,
    ) -> BoxFuture<'a, Result<Vec<Outcome>, MergeError>> {
        Box::pin(self.outcomes(asking, questions))
    }
}

/// Makes sure that the agent can be asked, before anything runs for its answer.
pub(super) fn check(asking: &Asking, tree: &TreeContext) -> Result<(), MergeError> {
    let Asked::Agent(agent) = &asking.asked else { return Ok(()) };
    if *agent == tree.agent || tree.config.agent(agent).is_some() {
        return Ok(());
    }
    Err(MergeError::Elsewhere {
        message: format!("{}: there is no agent `{agent}`", asking.name()),
    })
}

/// Runtime, command and folder of a run that the owner asks for. The command of the tree is that of its pieces, unless their agent
/// is asked.
fn run_spec(asking: &Asking, tree: &TreeContext) -> RunSpec {
    let of_tree = &*tree.run_spec;
    let folder = of_tree.working_folder.to_path_buf();
    match &asking.asked {
        Asked::Command(line) => RunSpec::command(folder, words(line).iter().cloned()),
        Asked::Agent(agent) => RunSpec {
            runtime: of_tree.runtime.clone(),
            command: of_tree.command.clone().filter(|_| is_of_tree(agent, tree)),
            plain: of_tree.plain && is_of_tree(agent, tree),
            ..RunSpec::in_folder(folder)
        },
    }
}

fn is_of_tree(agent: &AgentId, tree: &TreeContext) -> bool {
    *agent == tree.agent
}

/// Reads the places of the runs that merges have asked for in an earlier life of this tree; none of a tree that was opened just
/// now. No place that stands on record is given again.
async fn recorded_places(tree: &Arc<TreeContext>) -> Result<HashMap<ContentHash, u32>, StoreError> {
    if tree.chosen.get().is_none() {
        return Ok(HashMap::new());
    }
    let (store, root) = (Arc::clone(&tree.store), tree.root);
    let read = move || read_places(&*store, root);
    let (places, free) = blocking(read).await?;
    tree.places.fetch_max(free, Ordering::Relaxed);
    Ok(places)
}

/// Returns the places by what was asked, and the first place that no run has.
fn read_places(
    store: &dyn Store,
    root: RootId,
) -> Result<(HashMap<ContentHash, u32>, u32), StoreError> {
    let (mut places, mut free) = (HashMap::new(), 0);
    for event in store.events(root, 0) {
        if let EventKind::Admitted(admitted) = event?.kind
            && let Some(place) = admitted.place
        {
            free = free.max(place + 1);
            places.extend(admitted.merges().map(|hash| (hash, place)));
        }
    }
    Ok((places, free))
}

fn failed(error: &SpawnerError) -> MergeError {
    MergeError::Elsewhere { message: error_chain(error) }
}

#[expect(clippy::needless_pass_by_value, reason = "it is the argument of `map_err`")]
fn broken(error: StoreError) -> MergeError {
    MergeError::Elsewhere { message: error_chain(&error) }
}
